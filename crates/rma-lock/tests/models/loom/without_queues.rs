//! The locks that back off, those of windows, and the recoverable lock, between two ranks. A rank that
//! backs off sleeps until a clock moves, so these locks are tried only.

use super::{
    HOME,
    LoomRole::{self, Read, TryRead, TryWrite, Write},
    Seen, broken_of, model_with,
};
use checks::lock::{
    BackOffMutant::{self, *},
    back_off_mutant,
    mutants::{QueuedMutant, assert_idle, queued_mutant},
};
use loom_fabric::{
    Config,
    Delivery::{self, AtFlush, AtPost},
    check, check_fails,
};
use rdma_fabric::{Fabric, GroupMemory, Rank, Time};
use rma_lock::{
    Access, AccessLock, Fairness, Lock, LockError, RmaLock,
    locks::{BackOffLock, EachLock, LockKind, PerRankLock, RecoverableLock, RpLock, WindowLock},
};
use std::{
    future::Future,
    sync::{Arc, atomic::Ordering::Relaxed},
};

const PAIRS: [[LoomRole; 2]; 6] =
    [[Read, Write], [Write, Read], [Write, Write], [Read, Read], [TryWrite, Read], [TryRead, Write]];
const TRIES: [[LoomRole; 2]; 3] = [[TryRead, TryWrite], [TryWrite, TryWrite], [TryRead, TryRead]];

/// A lock of a window, whose readers access all ranks' memory, and whose writers that of the home.
#[derive(Clone, Debug)]
struct OfWindow<L>(L);

impl<L: Lock> Lock for OfWindow<L> {
    type Options = L::Options;

    const NAME: &'static str = L::NAME;
    const FAIRNESS: Fairness = L::FAIRNESS;
    const HOME_WORDS: usize = L::HOME_WORDS;

    fn bytes(options: &L::Options, members: usize) -> usize {
        L::bytes(options, members)
    }

    fn over(fabric: &Fabric, memory: GroupMemory, home: Rank, options: L::Options) -> Result<Self, LockError> {
        L::over(fabric, memory, home, options).map(OfWindow)
    }

    fn home(&self) -> Rank {
        self.0.home()
    }

    fn fabric(&self) -> &Fabric {
        self.0.fabric()
    }
}

impl<L: AccessLock> RmaLock for OfWindow<L> {
    type Shared<'a> = L::Guard<'a>;
    type Exclusive<'a> = L::Guard<'a>;

    fn read_before(&self, deadline: Time) -> impl Future<Output = Result<Self::Shared<'_>, LockError>> {
        self.0.lock_before(Access::All, deadline)
    }

    fn try_read(&self) -> impl Future<Output = Result<Option<Self::Shared<'_>>, LockError>> {
        self.0.try_lock(Access::All)
    }

    fn write_before(&self, deadline: Time) -> impl Future<Output = Result<Self::Exclusive<'_>, LockError>> {
        self.0.lock_before(Access::Exclusive(HOME), deadline)
    }

    fn try_write(&self) -> impl Future<Output = Result<Option<Self::Exclusive<'_>>, LockError>> {
        self.0.try_lock(Access::Exclusive(HOME))
    }
}

/// The state that a lock leaves behind is not checked here.
fn any_end(_: &loom_fabric::Job) {}

fn assert_zero(job: &loom_fabric::Job, cells: &[usize]) {
    for (rank, cell, value) in job.residue() {
        assert!(!cells.contains(&cell), "residue: cell {cell} of rank {rank} holds {value:#x}");
    }
}

fn one_word_is_zero_at_end(job: &loom_fabric::Job) {
    assert_zero(job, &[0]);
}

/// The word of a rank, and that of the whole window.
fn two_words_are_zero_at_end(job: &loom_fabric::Job) {
    assert_zero(job, &[0, 8]);
}

/// Checks that each of two ranks' locks is idle.
fn each_idle_at_end(job: &loom_fabric::Job) {
    let cells = RpLock::bytes(&Default::default(), 2) / 8;
    for number in 0..2 {
        let of_lock = job.residue().into_iter().filter(|(_, cell, _)| cell / cells == number);
        // The check expects the home to be rank 0.
        assert_idle(of_lock.map(|(rank, cell, value)| (usize::from(rank != number), cell % cells, value)));
    }
}

/// Checks the pairs with `cells` words at each rank, and with `at_end` its memory.
fn check_pairs<L: RmaLock>(bound: Option<usize>, pairs: &[[LoomRole; 2]], cells: usize, at_end: fn(&loom_fabric::Job)) {
    for roles in pairs {
        for delivery in [Delivery::AtPost, Delivery::AtFlush] {
            print!("{} {roles:?}, {delivery:?}: ", L::NAME);
            let config = Config { cells_per_rank: cells, ..Config::new(roles.len(), delivery) };
            let seen = Arc::<Seen>::default();
            check(bound, 4, model_with::<L>(config, roles.to_vec(), 1, seen.clone(), at_end));
            assert!(seen.had.load(Relaxed) > 0, "the lock was never taken");
        }
    }
}

#[test]
fn back_off() {
    check_pairs::<BackOffLock>(None, &TRIES, 32, one_word_is_zero_at_end);
}

#[test]
fn window() {
    check_pairs::<WindowLock>(None, &TRIES, 32, two_words_are_zero_at_end);
}

#[test]
fn per_rank() {
    check_pairs::<OfWindow<PerRankLock<RpLock>>>(Some(2), &PAIRS, 160, any_end);
}

#[test]
#[ignore = "long: weekly"]
fn per_rank_in_every_execution() {
    check_pairs::<OfWindow<PerRankLock<RpLock>>>(None, &PAIRS, 160, any_end);
}

#[test]
fn each() {
    check_pairs::<OfWindow<EachLock<RpLock>>>(None, &PAIRS, 160, each_idle_at_end);
}

#[test]
fn recoverable() {
    check_pairs::<RecoverableLock>(None, &PAIRS, 1000, any_end);
}

/// A mutant, a job that shows it, and the expected reports.
type Shown = (BackOffMutant, &'static [LoomRole], Delivery, &'static [&'static str]);

const EXCLUSION: &str = "mutual exclusion";
const RACE: &str = "Causality violation";
const MISSED: &str = "visibility";
const RESIDUE: &str = "residue";

const OF_ONE_WORD: &[Shown] = &[
    (NotFlushed, &[TryRead, TryWrite], AtPost, &[RACE]),
    (NotFlushed, &[TryRead, TryWrite], AtFlush, &[RACE, MISSED]),
    (TornComparison, &[TryWrite, TryWrite], AtPost, &[EXCLUSION, RACE]),
    (NotUndone, &[TryRead, TryWrite], AtPost, &[RESIDUE]),
    (Stored, &[TryRead, TryWrite], AtPost, &[RESIDUE]),
];
const OF_TWO_LEVELS: &[Shown] = &[
    (NotFlushed, &[TryRead, TryWrite], AtPost, &[RACE]),
    (HoldersOfAllIgnored, &[TryRead, TryWrite], AtPost, &[EXCLUSION, RACE]),
    (HomeNotUndone, &[TryWrite, TryWrite], AtPost, &[RESIDUE]),
];

fn check_mutants<L: RmaLock>(shown: &[Shown], at_end: fn(&loom_fabric::Job)) {
    for &(mutant, roles, delivery, expected) in shown {
        print!("{} {mutant:?}: ", L::NAME);
        let wrap = move |fabric, role| back_off_mutant(fabric, mutant, role == TryRead);
        let config = Config { cells_per_rank: 32, ..Config::new(roles.len(), delivery) };
        check_fails(None, expected, broken_of::<L>(wrap, roles, 1, config, at_end));
    }
}

#[test]
fn each_mutant_of_back_off_is_reported() {
    check_mutants::<BackOffLock>(OF_ONE_WORD, one_word_is_zero_at_end);
    check_mutants::<WindowLock>(OF_TWO_LEVELS, two_words_are_zero_at_end);
}

#[test]
fn a_missing_flush_is_reported_for_each_lock() {
    fn check_lock<L: RmaLock>(cells: usize) {
        print!("{}: ", L::NAME);
        let wrap = |fabric, _| queued_mutant(fabric, LockKind::ReaderPreference, QueuedMutant::DataNotFlushed);
        let config = Config { cells_per_rank: cells, ..Config::new(2, AtFlush) };
        check_fails(None, &[RACE, MISSED], broken_of::<L>(wrap, &[Read, Write], 1, config, any_end));
    }
    check_lock::<OfWindow<PerRankLock<RpLock>>>(160);
    check_lock::<OfWindow<EachLock<RpLock>>>(160);
    check_lock::<RecoverableLock>(1000);
}
