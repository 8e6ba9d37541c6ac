//! Locks of a window that are made of a lock for each rank, right and wrong, under all delivery orders.

use crate::{
    mutant::{Mutation, assert_idle, mutant},
    program::{Run, in_time},
};
use explore::{Explorer, Probe, View};
use rdma_fabric::{Amo, Fabric, ProgramResult, Rank, RemoteAddr, Time};
use rma_lock::{
    Access::{self, *},
    AccessLock, Guard, LockError,
    locks::{EachLock, EachOptions, PerRankLock, RpLock},
};
use std::time::Instant;

const A: Rank = Rank::new(0);
const B: Rank = Rank::new(1);
const HOME: Rank = A;
const DEADLINE: Time = Time::from_picos(1);

/// Facts: who is inside, as exclusive holders of rank 0, 1, ..., shared ones, holders of all; how often each rank's data was written.
const EXCLUSIVE: u32 = 10;
const SHARED: u32 = 20;
const EVERYWHERE: u32 = 30;
const WRITES: u32 = 40;
/// How often who puts without excluding others did so, by the rank it puts to and its own.
const PUTS: u32 = 60;

fn puts(to: Rank, by: u32) -> u32 {
    PUTS + 8 * to.number() + by
}

fn fact(access: Access) -> u32 {
    match access {
        Exclusive(rank) => EXCLUSIVE + rank.number(),
        Shared(rank) => SHARED + rank.number(),
        All => EVERYWHERE,
    }
}

/// How a rank makes its access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Plain,
    Try,
    /// With a deadline, which comes at any moment.
    Before,
    /// The acquisition is dropped at any moment.
    Dropped,
    /// The release is.
    ReleaseDropped,
    /// Who excludes nobody puts where it looks, to a word that only it writes; who is alone looks at what the others put.
    Puts,
}
use How::*;

type Turn = (Access, How);

const fn all(how: How) -> Turn {
    (All, how)
}

/// One rank's part, `n` times.
async fn rounds<L: AccessLock>(
    fabric: Fabric,
    options: L::Options,
    probe: Probe,
    (access, how): Turn,
    n: usize,
) -> ProgramResult<()> {
    let lock = L::symmetric_with(&fabric, HOME, options).await?;
    let data = fabric.alloc_symmetric(if how == Puts { 8 * (1 + fabric.ranks()) } else { 8 }).await?;
    let put_by = |rank: Rank, by: u32| fabric.remote_word::<u64>(data.at(rank, 8 * (1 + u64::from(by))));
    let me = fabric.rank().number();
    let word = |rank: Rank| fabric.remote_word::<u64>(data.at(rank, 0));
    let mut without = 0u64;
    for round in 0..n {
        without |= 1 << round;
        let guard = match how {
            Plain | ReleaseDropped | Puts => Some(lock.lock(access).await?),
            Try => lock.try_lock(access).await?,
            Before => in_time(lock.lock_before(access, DEADLINE).await)?,
            Dropped => {
                let locked = fabric.before(DEADLINE, lock.lock(access)).await;
                in_time(locked.unwrap_or(Err(LockError::TimedOut)))?
            }
        };
        if let Some(guard) = guard {
            without &= !(1 << round);
            // What the guard does not show of the lock, such as its nodes, the rank remembers too.
            probe.step((round, without, format!("{guard:?} {lock:?}"), probe.stored()));
            probe.add(fact(access), 1);
            let looks_at = match access {
                All => (0..fabric.ranks() as u32).map(Rank::new).collect(),
                Shared(rank) | Exclusive(rank) => vec![rank],
            };
            for rank in looks_at {
                let (seen, writes) = (fabric.get_word(&word(rank)?).await?, probe.get(WRITES + rank.number()));
                assert_eq!(seen, writes, "visibility: a released write was missed");
                if how == Puts && !matches!(access, Exclusive(_)) {
                    let before = probe.add(puts(rank, me), 1);
                    fabric.put_word(&put_by(rank, me)?, before + 1).await?;
                }
            }
            if let Exclusive(rank) = access {
                for by in 0..if how == Puts { fabric.ranks() as u32 } else { 0 } {
                    let (seen, puts) = (fabric.get_word(&put_by(rank, by)?).await?, probe.get(puts(rank, by)));
                    assert_eq!(seen, puts, "visibility: what another put was missed");
                }
                let before = probe.add(WRITES + rank.number(), 1);
                fabric.put_word(&word(rank)?, before + 1).await?;
            }
            probe.subtract(fact(access), 1);
            match how {
                ReleaseDropped => drop(fabric.before(DEADLINE, guard.release()).await.transpose()?),
                _ => guard.release().await?,
            }
        }
        probe.step((round, without, format!("{lock:?}"), probe.stored()));
    }
    Ok(())
}

/// A job of ranks on nodes; whether all may be inside together, and must be able to.
#[derive(Clone, Copy, Debug)]
struct Case {
    nodes: &'static [u32],
    turns: &'static [Turn],
    rounds: usize,
    together: bool,
}

const fn case(nodes: &'static [u32], turns: &'static [Turn], rounds: usize, together: bool) -> Case {
    Case { nodes, turns, rounds, together }
}

/// What must hold of any such lock.
fn of_any_lock(case: &Case) -> Explorer<'static> {
    let Case { nodes, turns, together, .. } = *case;
    let all_inside = move |view: &View<'_>| {
        let same = |access| turns.iter().filter(|(other, _)| *other == access).count() as u64;
        turns.iter().all(|(access, _)| view.fact(fact(*access)) == same(*access))
    };
    let explorer = Explorer::new(turns.len()).leave_together().nodes(nodes).name(1, 0, "data");
    let explorer = explorer.always("exclusion", move |view| {
        (0..turns.len() as u32).all(|rank| {
            let exclusive = view.fact(EXCLUSIVE + rank);
            exclusive == 0 || exclusive == 1 && view.fact(SHARED + rank) == 0 && view.fact(EVERYWHERE) == 0
        })
    });
    match together {
        true => explorer.possible("all inside together", all_inside),
        false => explorer.always("not all inside together", move |view| !all_inside(view)),
    }
}

/// Bytes of the words of a lock with queues, and of a level.
const QUEUE: u64 = 128;
const LEVEL: u64 = 64;
/// Where the ranks' own locks begin in a [`PerRankLock`]: after the classes' and two stairs.
const OWN: u64 = QUEUE + 2 * (QUEUE + LEVEL);

/// The words of the lock from `start` on, as those of a lock with queues homed at `home`.
fn queue_is_idle(view: &View<'_>, start: u64, home: usize) -> bool {
    let words = || {
        let lock = view.words().filter(move |(addr, _)| addr.region.index == 0);
        lock.filter(move |(addr, _)| (start..start + QUEUE).contains(&addr.offset))
            .map(move |(addr, value)| (addr.rank.index(), ((addr.offset - start) / 8) as usize, value))
    };
    // The home's words, but for a head that means nothing.
    let at_home = words().all(|(rank, cell, value)| rank != home || cell > 2 || value == 0);
    assert_idle(words().filter(|(_, cell, _)| *cell >= 6));
    at_home
}

fn per_rank_explorer(case: &Case) -> Explorer<'static> {
    let ranks = case.turns.len();
    of_any_lock(case)
        .name(0, 0, "counts")
        .name(0, 8, "open")
        .name(0, QUEUE + QUEUE, "node of all")
        .name(0, 2 * QUEUE + LEVEL + QUEUE, "node of some")
        .at_end("idle", move |view| {
            let word = |offset| {
                let at = move |addr: &RemoteAddr| addr.region.index == 0 && addr.offset == offset;
                view.words().filter(move |(addr, _)| at(addr)).map(|(_, value)| value)
            };
            // The epoch remains.
            let classes = word(0).all(|counts| counts << 4 == 0) && (1..6).all(|cell| word(8 * cell).all(|v| v == 0));
            let level = |start: u64| word(start + QUEUE).chain(word(start + QUEUE + 8)).all(|value| value == 0);
            classes
                && level(QUEUE)
                && level(2 * QUEUE + LEVEL)
                && [0, QUEUE, 2 * QUEUE + LEVEL].iter().all(|start| queue_is_idle(view, *start, ranks))
                && (0..ranks).all(|rank| queue_is_idle(view, OWN + QUEUE * rank as u64, rank))
        })
}

fn each_explorer(case: &Case) -> Explorer<'static> {
    let ranks = case.turns.len();
    of_any_lock(case).at_end("idle", move |view| (0..ranks).all(|rank| queue_is_idle(view, QUEUE * rank as u64, rank)))
}

fn exhaust<Fut>(explorer: Explorer<'static>, case: &Case, program: impl Fn(Fabric) -> Fut + 'static)
where
    Fut: Future<Output = ProgramResult<()>> + 'static,
{
    let start = Instant::now();
    let report = explorer.state_limit(20_000_000).run(program);
    println!("{case:?}: {report}, {:.2} s", start.elapsed().as_secs_f64());
    report.expect_exhausted();
}

/// A job of a [`PerRankLock`], with one step done wrong, or none.
fn per_rank(case: &Case, wrong: Option<Wrong>) -> impl Fn(Fabric) -> Run + use<> {
    let Case { turns, rounds: n, .. } = *case;
    move |fabric| {
        let (probe, turn) = (Probe::of(&fabric), turns[fabric.rank().index()]);
        match wrong {
            None => Box::pin(rounds::<PerRankLock<RpLock>>(fabric, (), probe, turn, n)),
            Some(wrong) => {
                let mutant = mutant(fabric, Mistake { wrong, shares: !matches!(turn.0, Exclusive(_)) });
                Box::pin(rounds::<PerRankLock<RpLock>>(mutant, (), probe, turn, n))
            }
        }
    }
}

const PER_RANK: &[Case] = &[
    case(&[0, 1], &[all(Plain), all(Plain)], 2, true),
    case(&[0, 1], &[all(Plain), (Exclusive(A), Plain)], 2, false),
    case(&[0, 1], &[(Exclusive(A), Plain), (Exclusive(B), Plain)], 2, true),
    case(&[0, 1], &[(Exclusive(B), Plain), (Exclusive(B), Plain)], 2, false),
    case(&[0, 1], &[(Exclusive(B), Plain), (Shared(B), Plain)], 2, false),
    case(&[0, 1], &[all(Plain), (Shared(B), Plain)], 2, true),
    case(&[0, 0], &[all(Plain), (Exclusive(A), Plain)], 2, false),
    case(&[0, 1, 2], &[all(Plain), all(Plain), (Exclusive(B), Plain)], 1, false),
    case(&[0, 1], &[all(Puts), (Exclusive(A), Puts)], 1, false),
    case(&[0, 1], &[(Shared(B), Puts), (Exclusive(B), Puts)], 2, false),
    case(&[0, 1], &[all(Before), (Exclusive(A), Plain)], 2, false),
    case(&[0, 1], &[all(Plain), (Exclusive(A), Before)], 2, false),
    case(&[0, 1], &[all(Try), (Exclusive(A), Plain)], 2, false),
    case(&[0, 1], &[all(Plain), (Exclusive(A), Try)], 2, false),
    case(&[0, 1], &[all(Dropped), (Exclusive(A), Plain)], 1, false),
    case(&[0, 1], &[all(ReleaseDropped), (Exclusive(A), Plain)], 1, false),
    case(&[0, 1], &[all(Plain), (Exclusive(A), ReleaseDropped)], 1, false),
];

const LARGE: &[Case] = &[
    case(&[0, 1], &[all(Plain), (Exclusive(A), Dropped)], 1, false),
    case(&[0, 1, 2], &[all(Plain), (Exclusive(A), Plain), (Exclusive(B), Plain)], 1, false),
    case(&[0, 0, 1], &[all(Plain), all(Plain), (Exclusive(B), Plain)], 1, false),
    case(&[0, 1, 1], &[all(Plain), (Exclusive(A), Plain), (Exclusive(B), Plain)], 1, false),
    case(&[0, 1, 2], &[all(Plain), all(Plain), (Exclusive(B), Plain)], 2, false),
    case(&[0, 1, 2], &[all(Before), all(Plain), (Exclusive(B), Plain)], 1, false),
    case(&[0, 1, 2], &[all(Plain), (Exclusive(A), Before), (Exclusive(B), Plain)], 1, false),
    case(&[0, 1, 2], &[all(Plain), (Exclusive(B), Plain), (Shared(B), Plain)], 1, false),
];

#[test]
fn per_rank_locks_under_two_classes() {
    for case in PER_RANK {
        exhaust(per_rank_explorer(case), case, per_rank(case, None));
    }
}

/// What takes longer: `cargo test --release -- --ignored`.
#[test]
#[ignore = "minutes"]
fn larger_jobs() {
    for case in LARGE {
        exhaust(per_rank_explorer(case), case, per_rank(case, None));
    }
}

#[test]
fn a_lock_for_each_rank() {
    const CASES: &[Case] = &[
        case(&[0, 1], &[all(Plain), (Exclusive(A), Plain)], 1, false),
        case(&[0, 1], &[(Exclusive(A), Plain), (Exclusive(B), Plain)], 2, true),
        case(&[0, 1], &[all(Plain), all(Plain)], 1, true),
        case(&[0, 1], &[all(Before), (Exclusive(B), Plain)], 1, false),
        case(&[0, 1], &[all(Try), (Exclusive(B), Plain)], 1, false),
        case(&[0, 1], &[all(Plain), (Shared(B), Plain)], 1, true),
        case(&[0, 1], &[all(Puts), (Exclusive(A), Puts)], 1, false),
    ];
    for at_once in [false, true] {
        for case in CASES {
            let Case { turns, rounds: n, .. } = *case;
            exhaust(each_explorer(case), case, move |fabric: Fabric| {
                let (probe, turn) = (Probe::of(&fabric), turns[fabric.rank().index()]);
                let options = EachOptions { at_once, lock: () };
                rounds::<EachLock<RpLock>>(fabric, options, probe, turn, n)
            });
        }
    }
}

/// What is done wrong with the two classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    /// Who comes sees nobody of the other class, and its own turn.
    OthersIgnored,
    /// C3 adds nothing.
    BatchNotClosed,
    /// C5 sees no epoch begin.
    NoSecondLook,
    /// A stack that is taken is empty.
    NoSweep,
    /// Whoever leaves takes itself for the last one.
    NotTheLast,
    /// A release does not flush the data.
    NotFlushed,
    /// That of who excluded nobody begins its flush, and does not await it.
    FlushNotAwaited,
    /// A waker takes one who gave up for woken, and does not act for him.
    AbandonedTakenForWoken,
    /// What a dropped future owes is not done.
    Forgotten,
}

#[derive(Debug)]
struct Mistake {
    wrong: Wrong,
    /// Whether the rank excludes nobody.
    shares: bool,
}

fn word(addr: RemoteAddr, offset: u64) -> bool {
    addr.region.index == 0 && addr.offset == offset
}

const EPOCH: u64 = 1 << 60;
const TURN: u64 = EPOCH;
const ONE: [u64; 2] = [1, 1 << 30];

impl Mutation for Mistake {
    fn flushes(&self, target: Option<Rank>) -> bool {
        target.is_some() || self.wrong != Wrong::NotFlushed
    }

    fn awaits_flush(&self, target: Option<Rank>) -> bool {
        self.wrong != Wrong::FlushNotAwaited || !self.shares || target.is_some()
    }

    fn detaches(&self) -> bool {
        self.wrong != Wrong::Forgotten
    }

    fn got(&self, addr: RemoteAddr, bits: u64) -> u64 {
        let blind = self.wrong == Wrong::NoSecondLook && word(addr, 0);
        if blind { bits.wrapping_add(5 * EPOCH) } else { bits }
    }

    fn atomic(&self, addr: RemoteAddr, amo: Amo<u64>) -> Amo<u64> {
        match (self.wrong, amo) {
            // Or(0) reads and leaves what is there.
            (Wrong::BatchNotClosed, Amo::Add(n)) if word(addr, 8) && n < 1 << 63 => Amo::Or(0),
            (Wrong::NoSweep, Amo::Swap(0)) if addr.region.index == 0 && (16..48).contains(&addr.offset) => Amo::Or(0),
            _ => amo,
        }
    }

    fn result(&self, addr: RemoteAddr, amo: Amo<u64>, old: u64) -> u64 {
        match (self.wrong, amo) {
            (Wrong::OthersIgnored, Amo::Add(one)) if word(addr, 0) && one == ONE[0] => 0,
            (Wrong::OthersIgnored, Amo::Add(one)) if word(addr, 0) && one == ONE[1] => TURN,
            (Wrong::NoSweep, Amo::Swap(0)) if addr.region.index == 0 && (16..48).contains(&addr.offset) => 0,
            (Wrong::NotTheLast, Amo::Add(less)) if word(addr, 8) && less == u64::MAX => 1,
            (Wrong::AbandonedTakenForWoken, Amo::CompareSwap { expected, new })
                if addr.region.index == 0
                    && addr.offset < QUEUE
                    && (80..128).contains(&addr.offset)
                    && new & 0xff == 1 =>
            {
                expected
            }
            _ => old,
        }
    }
}

#[test]
fn mistakes_with_classes_are_caught() {
    const TWO: &[Turn] = &[all(Plain), (Exclusive(A), Plain)];
    const MISTAKES: &[(Wrong, Case)] = &[
        (Wrong::OthersIgnored, case(&[0, 1], TWO, 1, false)),
        (Wrong::BatchNotClosed, case(&[0, 1], TWO, 1, false)),
        (Wrong::NoSecondLook, case(&[0, 1], TWO, 1, false)),
        (Wrong::NoSweep, case(&[0, 1], TWO, 1, false)),
        (Wrong::NotTheLast, case(&[0, 1, 2], &[all(Plain), all(Plain), (Exclusive(B), Plain)], 1, false)),
        (Wrong::NotFlushed, case(&[0, 1], TWO, 1, false)),
        (Wrong::FlushNotAwaited, case(&[0, 1], &[all(Puts), (Exclusive(A), Puts)], 1, false)),
        (Wrong::FlushNotAwaited, case(&[0, 1], &[(Shared(B), Puts), (Exclusive(B), Puts)], 1, false)),
        (Wrong::AbandonedTakenForWoken, case(&[0, 1], &[all(Before), (Exclusive(A), Plain)], 1, false)),
        (Wrong::Forgotten, case(&[0, 1], &[all(Dropped), (Exclusive(A), Plain)], 1, false)),
    ];
    for (wrong, case) in MISTAKES {
        let report = per_rank_explorer(case).state_limit(1_000_000).run(per_rank(case, Some(*wrong)));
        let found = report.violation().unwrap_or_else(|| panic!("{wrong:?} passed: {report}"));
        println!("{wrong:?}: {} in {} moves, {} states", found.what, found.moves, report.states);
        let (again, timeline) = per_rank_explorer(case).replay(&found.schedule, per_rank(case, Some(*wrong)));
        assert_eq!((again.as_ref(), &timeline), (Some(&found.what), &found.timeline), "{wrong:?}");
    }
}

/// More ranks and rounds than can be exhausted. Repeat a failure by its seed.
#[test]
fn random_orders_of_many_ranks() {
    const RUNS: u64 = 2_000;
    const C: Rank = Rank::new(2);
    const CASES: &[Case] = &[
        case(&[0, 0, 1, 1], &[all(Plain), (Exclusive(A), Plain), all(Plain), (Exclusive(B), Plain)], 3, false),
        case(&[0, 1, 2, 3], &[all(Plain), (Exclusive(A), Before), all(Dropped), (Exclusive(B), Plain)], 3, false),
        case(&[0, 0, 1, 1], &[all(Before), (Exclusive(A), Dropped), all(Try), (Exclusive(A), Try)], 3, false),
        case(
            &[0, 1, 0, 1, 2],
            &[all(Plain), (Exclusive(A), Plain), (Shared(A), Plain), (Exclusive(C), Before), all(Before)],
            3,
            false,
        ),
    ];
    for case in CASES {
        let start = Instant::now();
        let sample = per_rank_explorer(case).sample(1, RUNS, per_rank(case, None));
        assert!(sample.failure.is_none(), "{case:?}: {sample}");
        println!("{case:?}: {sample}, {:.2} s", start.elapsed().as_secs_f64());
    }
}
