//! A reader that is one too many, under all delivery orders: it is refused, takes itself back, and
//! lets in who waited for the readers to leave, if it is the last.
//!
//! Nobody can take a lock as often as it counts here. So one reader counts for that many, for a
//! while.

use crate::{
    mutant::{Mutation, mutant},
    program::{Run, in_time},
};
use explore::{Explorer, Probe};
use rdma_fabric::{Amo, Fabric, ProgramResult, Rank, RegionKey, RemoteAddr};
use rma_lock::{
    Guard, LockError, RmaLock,
    locks::{BackOff, BackOffLock, PackedLock, RpLock, WindowLock, WritersFirstLock},
};
use std::{cell::Cell, time::Duration};

const HOME: Rank = Rank::new(0);
const PACE: BackOff = BackOff { first: Duration::from_nanos(1), doublings: 0, attempts: 2, seed: 0 };

/// Facts: who is inside, and how many were refused.
const WRITERS: u32 = 0;
const READERS: u32 = 1;
const REFUSED: u32 = 2;

/// Where a lock counts its readers at the home, how much each adds, and how many it counts.
#[derive(Clone, Copy, Debug)]
struct Count {
    offset: u64,
    one: u64,
    most: u64,
}

const fn count(offset: u64, one: u64) -> Count {
    Count { offset, one, most: 1 << 26 }
}

/// What is done wrong by who was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    /// It stays counted.
    NotTakenBack,
    /// It does not see that it was the last one before a writer.
    NobodyLetIn,
}

/// [`Wrong`] at one rank.
#[derive(Debug)]
struct Mistake {
    wrong: Wrong,
    count: Count,
    /// The next subtraction takes back what was refused.
    refused: Cell<bool>,
}

impl Mistake {
    fn is(&self, wrong: Wrong, addr: RemoteAddr, amo: Amo<u64>) -> bool {
        let Count { offset, one, .. } = self.count;
        let uncounts = addr.region.index == 0 && addr.offset == offset && amo == Amo::Add(one.wrapping_neg());
        self.wrong == wrong && uncounts && self.refused.take()
    }
}

impl Mutation for Mistake {
    fn atomic(&self, addr: RemoteAddr, amo: Amo<u64>) -> Amo<u64> {
        // Or(0) reads and leaves what is there.
        if self.is(Wrong::NotTakenBack, addr, amo) { Amo::Or(0) } else { amo }
    }

    fn result(&self, addr: RemoteAddr, amo: Amo<u64>, old: u64) -> u64 {
        let Count { offset, one, most } = self.count;
        if addr.region.index == 0 && addr.offset == offset && amo == Amo::Add(one) {
            self.refused.set(old % (4 * most * one) >= most * one);
        }
        if self.is(Wrong::NobodyLetIn, addr, amo) { old + one } else { old }
    }
}

/// Rank 0 reads, for many, rank 1 reads, rank 2 writes.
async fn part<L: RmaLock>(fabric: Fabric, options: L::Options, probe: Probe, count: Count) -> ProgramResult<()> {
    let lock = L::symmetric_with(&fabric, HOME, options).await?;
    let second = fabric.alloc_symmetric(8).await?;
    match fabric.rank().number() {
        0 => {
            let Some(guard) = in_time(lock.read().await)? else { return Ok(()) };
            probe.add(READERS, 1);
            let region = RegionKey { index: 0, ..second.key() };
            let word = fabric.remote_word::<u64>(RemoteAddr { rank: HOME, region, offset: count.offset })?;
            let others = count.most - 1;
            fabric.fetch_add(&word, others * count.one).await?;
            fabric.fetch_add(&word, (others * count.one).wrapping_neg()).await?;
            probe.subtract(READERS, 1);
            guard.release().await?;
        }
        1 => match lock.read().await {
            Err(LockError::TooManyHolders { most }) if u64::from(most) == count.most => drop(probe.add(REFUSED, 1)),
            outcome => {
                let Some(guard) = in_time(outcome)? else { return Ok(()) };
                probe.add(READERS, 1);
                probe.subtract(READERS, 1);
                guard.release().await?;
            }
        },
        _ => {
            let Some(guard) = in_time(lock.write().await)? else { return Ok(()) };
            probe.add(WRITERS, 1);
            probe.subtract(WRITERS, 1);
            guard.release().await?;
        }
    }
    Ok(())
}

fn explorer(count: Count) -> Explorer<'static> {
    Explorer::new(3)
        .leave_together()
        .name(0, count.offset, "count")
        .state_limit(2_000_000)
        .always("mutual exclusion", |view| {
            view.fact(WRITERS) == 0 || view.fact(WRITERS) == 1 && view.fact(READERS) == 0
        })
        .possible("a reader is refused", |view| view.fact(REFUSED) == 1)
        .possible("a reader is not refused", |view| view.fact(READERS) == 2)
        .at_end("nobody is counted", move |view| {
            let word = view.words().find(|(addr, _)| addr.region.index == 0 && addr.offset == count.offset);
            word.is_none_or(|(_, value)| (value / count.one).is_multiple_of(4 * count.most))
        })
}

fn job<L: RmaLock>(options: L::Options, count: Count, wrong: Option<Wrong>) -> impl Fn(Fabric) -> Run {
    move |fabric| {
        let (probe, options) = (Probe::of(&fabric), options.clone());
        let fabric = match wrong {
            None => fabric,
            Some(wrong) => mutant(fabric, Mistake { wrong, count, refused: Cell::new(false) }),
        };
        Box::pin(part::<L>(fabric, options, probe, count))
    }
}

/// Right, and with each of these mistakes.
fn check<L: RmaLock>(options: L::Options, count: Count, mistakes: &[Wrong]) {
    let report = explorer(count).run(job::<L>(options.clone(), count, None));
    println!("{}: {report}", L::NAME);
    report.expect_exhausted();
    for wrong in mistakes {
        let report = explorer(count).run(job::<L>(options.clone(), count, Some(*wrong)));
        let found = report.violation().unwrap_or_else(|| panic!("{}, {wrong:?} passed: {report}", L::NAME));
        println!("{wrong:?}: {} in {} moves, {} states", found.what, found.moves, report.states);
    }
}

const MISTAKES: &[Wrong] = &[Wrong::NotTakenBack, Wrong::NobodyLetIn];

#[test]
fn by_reader_preference() {
    check::<RpLock>((), count(0, 4), MISTAKES);
}

#[test]
fn by_packed_reader_preference() {
    check::<PackedLock>((), count(0, 4), MISTAKES);
}

#[test]
fn by_writer_preference() {
    check::<WritersFirstLock>((), count(0, 4), MISTAKES);
}

#[test]
fn by_locks_that_back_off() {
    check::<BackOffLock>(PACE, count(0, 2), &[Wrong::NotTakenBack]);
    check::<WindowLock>(PACE, count(64, 1 << 32), &[Wrong::NotTakenBack]);
}
