//! The locks that back off, right and wrong, under all delivery orders.
//!
//! Bounds beside roles and rounds: an acquisition makes [`ATTEMPTS`] attempts. When a sleep ends is up to the explorer, as is how long anything
//! else takes; so these few cover what more of them could meet, but not that a rank gets in at last.

use crate::{
    mutant::{Mutation, mutant},
    program::{
        Role::{self, *},
        Run, of_any_lock, rounds,
    },
};
use explore::{Explorer, Probe, Report};
use rdma_fabric::{Amo, Fabric, Rank, RemoteAddr};
use rma_lock::{
    RmaLock,
    locks::{BackOff, BackOffLock, WindowLock},
};
use std::{
    cell::Cell,
    time::{Duration, Instant},
};

const ATTEMPTS: u32 = 3;
/// A sleep that costs the explorer fewest states: no two differ.
const PACE: BackOff = BackOff { first: Duration::from_nanos(1), doublings: 0, attempts: ATTEMPTS, seed: 0 };

const WRITER: u64 = 1;
const READER: u64 = 2;
/// The second level's word.
const ALL: u64 = 64;

/// A step done wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    /// A reader that finds a writer stays counted.
    NotUndone,
    /// The release does not flush the data.
    NotFlushed,
    /// A reader's release begins its flush, and does not await it.
    FlushNotAwaited,
    /// A writer gets the word and puts it, where it should compare and swap.
    TornComparison,
    /// A writer that leaves stores 0, where it should subtract.
    Stored,
    /// What a dropped future owes is not done.
    Forgotten,
    /// An exclusive access does not look whether somebody holds all.
    HoldersOfAllIgnored,
    /// An exclusive access that finds its rank taken stays counted at the home.
    HomeNotUndone,
}

/// [`Wrong`] at one rank.
#[derive(Debug)]
struct Mistake {
    wrong: Wrong,
    /// The next subtraction takes back what was refused.
    refused: Cell<bool>,
    /// Whether the rank reads only.
    reads: bool,
}

fn word(addr: RemoteAddr, offset: u64) -> bool {
    addr.region.index == 0 && addr.offset == offset
}

impl Mutation for Mistake {
    fn flushes(&self, _: Option<Rank>) -> bool {
        self.wrong != Wrong::NotFlushed
    }

    fn awaits_flush(&self, _: Option<Rank>) -> bool {
        self.wrong != Wrong::FlushNotAwaited || !self.reads
    }

    fn detaches(&self) -> bool {
        self.wrong != Wrong::Forgotten
    }

    fn tears(&self, addr: RemoteAddr, _: Amo<u64>) -> bool {
        self.wrong == Wrong::TornComparison && word(addr, 0)
    }

    fn atomic(&self, addr: RemoteAddr, amo: Amo<u64>) -> Amo<u64> {
        let Amo::Add(less) = amo else { return amo };
        let less = less.wrapping_neg();
        match self.wrong {
            // Or(0) reads and leaves what is there.
            Wrong::NotUndone if word(addr, 0) && less == READER && self.refused.take() => Amo::Or(0),
            Wrong::HomeNotUndone if word(addr, ALL) && less == 1 && self.refused.take() => Amo::Or(0),
            Wrong::Stored if word(addr, 0) && less == WRITER => Amo::Swap(0),
            _ => amo,
        }
    }

    fn result(&self, addr: RemoteAddr, amo: Amo<u64>, old: u64) -> u64 {
        match (self.wrong, amo) {
            (Wrong::NotUndone, Amo::Add(READER)) if word(addr, 0) => self.refused.set(old & WRITER != 0),
            (Wrong::HomeNotUndone, Amo::CompareSwap { .. }) if word(addr, 0) => self.refused.set(old != 0),
            (Wrong::HoldersOfAllIgnored, Amo::Add(1)) if word(addr, ALL) => return old & u64::from(u32::MAX),
            _ => {}
        }
        old
    }
}

/// What must hold: of any lock, and that its words are 0 at the end.
fn explorer(roles: &[Role]) -> Explorer<'static> {
    of_any_lock(roles)
        .name(0, 0, "word")
        .name(0, ALL, "all")
        .at_end("idle", |view| view.words().filter(|(addr, _)| addr.region.index == 0).all(|(_, value)| value == 0))
}

/// A job with one step done wrong, or none.
fn job<L: RmaLock<Options = BackOff>>(
    roles: &[Role],
    n: usize,
    wrong: Option<Wrong>,
) -> impl Fn(Fabric) -> Run + use<L> {
    let roles = roles.to_vec();
    move |fabric| {
        let (probe, role) = (Probe::of(&fabric), roles[fabric.rank().index()]);
        let fabric = match wrong {
            None => fabric,
            Some(wrong) => mutant(fabric, Mistake { wrong, refused: Cell::new(false), reads: !role.writes() }),
        };
        Box::pin(rounds::<L>(fabric, PACE, probe, role, n))
    }
}

fn single(roles: &[Role], n: usize, wrong: Option<Wrong>) -> impl Fn(Fabric) -> Run + use<> {
    job::<BackOffLock>(roles, n, wrong)
}

fn window(roles: &[Role], n: usize, wrong: Option<Wrong>) -> impl Fn(Fabric) -> Run + use<> {
    job::<WindowLock>(roles, n, wrong)
}

/// What is explored of both: roles, rounds, and how many states at least, about half of what was recorded of one word.
const CASES: &[(&[Role], usize, u64)] = &[
    (&[Read, Write], 1, 90),
    (&[Read, Write], 2, 2_300),
    (&[Write, Write], 2, 1_400),
    (&[Read, Read, Write], 1, 11_000),
    (&[Read, Write, Write], 1, 3_600),
    (&[ReadAndPut, WriteAndLook], 2, 4_200),
    (&[TryRead, Write], 2, 500),
    (&[TryWrite, Read], 2, 700),
    (&[ReadBefore, Write], 2, 690),
    (&[WriteBefore, Read], 2, 800),
    (&[ReadDropped, Write], 1, 1_000),
    (&[WriteDropped, Read], 1, 590),
    (&[WriteDropped, Write], 1, 590),
    (&[ReadReleaseDropped, Write], 1, 440),
    (&[WriteReleaseDropped, Read], 1, 600),
];

fn exhaust<P: Fn(Fabric) -> Run + 'static>(program: impl Fn(&[Role], usize, Option<Wrong>) -> P) {
    for (roles, n, at_least) in CASES {
        let start = Instant::now();
        let report: Report = explorer(roles).run(program(roles, *n, None));
        println!("{roles:?} x{n}: {report}, {:.2} s", start.elapsed().as_secs_f64());
        report.expect_exhausted();
        assert!(report.states >= *at_least, "{roles:?} x{n}: {} states explored", report.states);
    }
}

#[test]
fn one_word() {
    exhaust(single);
}

#[test]
fn two_levels() {
    exhaust(window);
}

fn caught<P: Fn(Fabric) -> Run + 'static>(
    program: impl Fn(&[Role], usize, Option<Wrong>) -> P,
    mistakes: &[(Wrong, &[Role], usize)],
) {
    for (wrong, roles, n) in mistakes {
        let report = explorer(roles).state_limit(500_000).run(program(roles, *n, Some(*wrong)));
        let found = report.violation().unwrap_or_else(|| panic!("{wrong:?} passed: {report}"));
        println!("{wrong:?}: {} in {} moves, {} states", found.what, found.moves, report.states);
        let (again, timeline) = explorer(roles).replay(&found.schedule, program(roles, *n, Some(*wrong)));
        assert_eq!((again.as_ref(), &timeline), (Some(&found.what), &found.timeline), "{wrong:?}");
    }
}

#[test]
fn mutations_of_one_word_are_caught() {
    caught(
        single,
        &[
            (Wrong::NotUndone, &[Read, Write], 1),
            (Wrong::NotFlushed, &[Read, Write], 1),
            (Wrong::FlushNotAwaited, &[ReadAndPut, WriteAndLook], 1),
            (Wrong::TornComparison, &[Write, Write], 1),
            (Wrong::TornComparison, &[Read, Write], 1),
            (Wrong::Stored, &[Read, Write], 1),
            (Wrong::Forgotten, &[ReadDropped, Write], 1),
            (Wrong::Forgotten, &[WriteReleaseDropped, Read], 1),
        ],
    );
}

#[test]
fn mutations_of_two_levels_are_caught() {
    caught(
        window,
        &[
            (Wrong::HoldersOfAllIgnored, &[Read, Write], 1),
            (Wrong::HomeNotUndone, &[Write, Write], 1),
            (Wrong::NotFlushed, &[Read, Write], 1),
            (Wrong::FlushNotAwaited, &[ReadAndPut, WriteAndLook], 1),
            (Wrong::Forgotten, &[WriteDropped, Write], 1),
        ],
    );
}

/// More ranks and rounds than can be exhausted. Repeat a failure by its seed.
#[test]
fn random_orders_of_many_ranks() {
    const RUNS: u64 = 2_000;
    let cases: [(&[Role], usize); 4] = [
        (&[Read, Read, Write, Write], 3),
        (&[ReadBefore, TryRead, WriteBefore, TryWrite, Read, Write], 3),
        (&[ReadDropped, ReadReleaseDropped, WriteReleaseDropped, WriteDropped, Write], 3),
        (&[Write, Write, Write, Write], 3),
    ];
    for (roles, n) in cases {
        let one = explorer(roles).sample(1, RUNS, single(roles, n, None));
        assert!(one.failure.is_none(), "one word, {roles:?} x {n}: {one}");
        let two = explorer(roles).sample(1, RUNS, window(roles, n, None));
        assert!(two.failure.is_none(), "two levels, {roles:?} x {n}: {two}");
        println!("{roles:?} x {n}: {one}; {two}");
    }
}

/// Ranks' accesses to a window, and facts: who is inside, as exclusive holders of rank 0, 1, ..., shared ones, holders of all.
mod accesses {
    use super::PACE;
    use crate::program::in_time;
    use explore::Probe;
    use rdma_fabric::{Fabric, Rank};
    use rma_lock::{
        Access::{self, *},
        locks::WindowLock,
    };

    const EXCLUSIVE: u32 = 10;
    const SHARED: u32 = 20;
    const EVERYWHERE: u32 = 30;

    fn fact(access: Access) -> u32 {
        match access {
            Exclusive(rank) => EXCLUSIVE + rank.number(),
            Shared(rank) => SHARED + rank.number(),
            All => EVERYWHERE,
        }
    }

    /// All that two accesses allow, and nothing else. `together`: whether all of them can be inside.
    fn explore(accesses: &'static [Access], together: bool) {
        let report = explorer_of(accesses, together).run(move |fabric: Fabric| async move {
            let (probe, access) = (Probe::of(&fabric), accesses[fabric.rank().index()]);
            let lock = WindowLock::symmetric_with(&fabric, Rank::new(0), PACE).await?;
            if let Some(guard) = in_time(lock.lock(access).await)? {
                probe.add(fact(access), 1);
                probe.subtract(fact(access), 1);
                guard.release().await?;
            }
            Ok(())
        });
        println!("{accesses:?}: {report}");
        report.expect_exhausted();
    }

    fn explorer_of(accesses: &'static [Access], together: bool) -> explore::Explorer<'static> {
        let explorer = explore::Explorer::new(accesses.len())
            .leave_together()
            .at_end("idle", |view| view.words().all(|(_, value)| value == 0))
            .always("exclusion", |view| {
                (0..4).all(|rank| {
                    let exclusive = view.fact(EXCLUSIVE + rank);
                    exclusive == 0 || exclusive == 1 && view.fact(SHARED + rank) == 0 && view.fact(EVERYWHERE) == 0
                })
            });
        let all_inside = move |view: &explore::View<'_>| {
            accesses.iter().all(|access| {
                view.fact(fact(*access)) == accesses.iter().filter(|other| *other == access).count() as u64
            })
        };
        match together {
            true => explorer.possible("all inside together", all_inside),
            false => explorer.always("not all inside together", move |view| !all_inside(view)),
        }
    }

    #[test]
    fn exclude_only_what_they_must() {
        const A: Rank = Rank::new(0);
        const B: Rank = Rank::new(1);
        explore(&[Exclusive(A), Exclusive(B)], true);
        explore(&[Exclusive(A), Shared(B)], true);
        explore(&[Shared(A), Shared(A), All], true);
        explore(&[All, All, Shared(B)], true);
        explore(&[Exclusive(B), Exclusive(B)], false);
        explore(&[Exclusive(B), Shared(B)], false);
        explore(&[Exclusive(B), All], false);
        explore(&[Exclusive(A), Exclusive(B), All], false);
        explore(&[Exclusive(B), Shared(B), All], false);
    }
}
