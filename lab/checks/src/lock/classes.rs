//! Window locks made of one lock per rank, with two classes of holders, correct and mutated; and
//! the exclusion of the window lock that backs off.

use super::{
    mutants::{assert_idle, in_lock, lock_words, word},
    program::{DEADLINE, HOME, PACE, in_time},
};
use crate::exploration::{Expected, Exploration, Run, Size};
use explore::{
    Explorer, Probe, View,
    mutant::{Mutant, mutated},
};
use rdma_fabric::{Amo, Fabric, ProgramResult, Rank, RemoteAddr};
use rma_lock::{
    Access::{self, *},
    AccessLock, Guard, Lock, LockError,
    locks::{EachLock, EachOptions, PerRankLock, RpLock, WindowLock},
};

const A: Rank = Rank::new(0);
const B: Rank = Rank::new(1);

/// Facts that count the ranks inside (exclusive holders of rank 0, 1, ..., shared holders of each
/// rank, and holders of all) and the writes of each rank's data.
const EXCLUSIVE: u32 = 10;
const SHARED: u32 = 20;
const EVERYWHERE: u32 = 30;
const WRITES: u32 = 40;
/// The first of the facts that count puts by non-exclusive holders, by the target rank and the
/// poster.
const PUTS: u32 = 60;

fn puts(to: Rank, by: u32) -> u32 {
    PUTS + 8 * to.number() + by
}

/// Returns the fact that counts the holders of `access`.
fn fact(access: Access) -> u32 {
    match access {
        Exclusive(rank) => EXCLUSIVE + rank.number(),
        Shared(rank) => SHARED + rank.number(),
        All => EVERYWHERE,
    }
}

/// The way in which a rank makes its access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Plain,
    Try,
    /// With a deadline, which expires at any moment.
    Before,
    /// The acquisition is dropped at any moment.
    Dropped,
    /// The release is dropped at any moment.
    ReleaseDropped,
    /// A non-exclusive holder, in addition to reading, puts to a word that only it writes; an
    /// exclusive holder checks the puts of the others.
    Puts,
}
use Manner::*;

type Turn = (Access, Manner);

const fn all(manner: Manner) -> Turn {
    (All, manner)
}

/// Makes an access, reads or changes the data, and ends the access, `n` times: one rank's part.
async fn rounds<L: AccessLock>(
    fabric: Fabric,
    options: L::Options,
    probe: Probe,
    (access, manner): Turn,
    n: usize,
) -> ProgramResult<()> {
    let lock = L::symmetric_with(&fabric, HOME, options).await?;
    let data = fabric.alloc_symmetric(if manner == Puts { 8 * (1 + fabric.ranks()) } else { 8 }).await?;
    let put_by = |rank: Rank, by: u32| fabric.remote_word::<u64>(data.at(rank, 8 * (1 + u64::from(by))));
    let me = fabric.rank().number();
    let word = |rank: Rank| fabric.remote_word::<u64>(data.at(rank, 0));
    let mut without = 0u64;
    for round in 0..n {
        without |= 1 << round;
        let guard = match manner {
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
            // The rank's state also includes state of the lock that the guard does not show, such
            // as its nodes.
            probe.step((round, without, format!("{guard:?} {lock:?}"), probe.stored()));
            probe.add(fact(access), 1);
            let looks_at = match access {
                All => (0..fabric.ranks() as u32).map(Rank::new).collect(),
                Shared(rank) | Exclusive(rank) => vec![rank],
            };
            for rank in looks_at {
                let (seen, writes) = (fabric.get_word(&word(rank)?).await?, probe.get(WRITES + rank.number()));
                assert_eq!(seen, writes, "visibility: a released write was missed");
                if manner == Puts && !matches!(access, Exclusive(_)) {
                    let before = probe.add(puts(rank, me), 1);
                    fabric.put_word(&put_by(rank, me)?, before + 1).await?;
                }
            }
            if let Exclusive(rank) = access {
                for by in 0..if manner == Puts { fabric.ranks() as u32 } else { 0 } {
                    let (seen, puts) = (fabric.get_word(&put_by(rank, by)?).await?, probe.get(puts(rank, by)));
                    assert_eq!(seen, puts, "visibility: what another put was missed");
                }
                let before = probe.add(WRITES + rank.number(), 1);
                fabric.put_word(&word(rank)?, before + 1).await?;
            }
            probe.subtract(fact(access), 1);
            match manner {
                ReleaseDropped => drop(fabric.before(DEADLINE, guard.release()).await.transpose()?),
                _ => guard.release().await?,
            }
        }
        probe.step((round, without, format!("{lock:?}"), probe.stored()));
    }
    Ok(())
}

/// A job of ranks on nodes. `together` states whether all may be inside together; if so, they must
/// be in at least one order.
#[derive(Clone, Copy, Debug)]
struct AccessCase {
    nodes: &'static [u32],
    turns: &'static [Turn],
    rounds: usize,
    together: bool,
}

const fn case(nodes: &'static [u32], turns: &'static [Turn], rounds: usize, together: bool) -> AccessCase {
    AccessCase { nodes, turns, rounds, together }
}

/// Returns an explorer with the invariants of any such lock.
fn of_any_lock(case: &AccessCase) -> Explorer<'static> {
    let AccessCase { nodes, turns, together, .. } = *case;
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

/// The bytes of the words of a lock with queues, and of a level.
const QUEUE: u64 = 128;
const LEVEL: u64 = 64;
/// The offset of the ranks' own locks in a [`PerRankLock`]: after the words of the classes and of
/// two stairs.
const OWN: u64 = QUEUE + 2 * (QUEUE + LEVEL);

/// Returns whether the words from `start` on are those of an idle lock with queues homed at `home`.
fn queue_is_idle(view: &View<'_>, start: u64, home: usize) -> bool {
    let words = || lock_words(view, start, start + QUEUE);
    // The words at the home, except for a head that means nothing.
    let at_home = words().all(|(rank, cell, value)| rank != home || cell > 2 || value == 0);
    assert_idle(words().filter(|(_, cell, _)| *cell >= 6));
    at_home
}

fn per_rank_explorer(case: &AccessCase) -> Explorer<'static> {
    let ranks = case.turns.len();
    of_any_lock(case)
        .name(0, 0, "counts")
        .name(0, 8, "open")
        .name(0, QUEUE + QUEUE, "node of all")
        .name(0, 2 * QUEUE + LEVEL + QUEUE, "node of some")
        .at_end("idle", move |view| {
            let at = |offset| view.words().filter(move |(addr, _)| word(*addr, offset)).map(|(_, value)| value);
            // Only the epoch remains.
            let classes = at(0).all(|counts| counts << 4 == 0) && (1..6).all(|cell| at(8 * cell).all(|v| v == 0));
            let level = |start: u64| at(start + QUEUE).chain(at(start + QUEUE + 8)).all(|value| value == 0);
            classes
                && level(QUEUE)
                && level(2 * QUEUE + LEVEL)
                && [0, QUEUE, 2 * QUEUE + LEVEL].iter().all(|start| queue_is_idle(view, *start, ranks))
                && (0..ranks).all(|rank| queue_is_idle(view, OWN + QUEUE * rank as u64, rank))
        })
}

fn each_explorer(case: &AccessCase) -> Explorer<'static> {
    let ranks = case.turns.len();
    of_any_lock(case).at_end("idle", move |view| (0..ranks).all(|rank| queue_is_idle(view, QUEUE * rank as u64, rank)))
}

const PER_RANK: &[AccessCase] = &[
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

const LARGE: &[AccessCase] = &[
    case(&[0, 1], &[all(Plain), (Exclusive(A), Dropped)], 1, false),
    case(&[0, 1, 2], &[all(Plain), (Exclusive(A), Plain), (Exclusive(B), Plain)], 1, false),
    case(&[0, 0, 1], &[all(Plain), all(Plain), (Exclusive(B), Plain)], 1, false),
    case(&[0, 1, 1], &[all(Plain), (Exclusive(A), Plain), (Exclusive(B), Plain)], 1, false),
    case(&[0, 1, 2], &[all(Plain), all(Plain), (Exclusive(B), Plain)], 2, false),
    case(&[0, 1, 2], &[all(Before), all(Plain), (Exclusive(B), Plain)], 1, false),
    case(&[0, 1, 2], &[all(Plain), (Exclusive(A), Before), (Exclusive(B), Plain)], 1, false),
    case(&[0, 1, 2], &[all(Plain), (Exclusive(B), Plain), (Shared(B), Plain)], 1, false),
];

const EACH: &[AccessCase] = &[
    case(&[0, 1], &[all(Plain), (Exclusive(A), Plain)], 1, false),
    case(&[0, 1], &[(Exclusive(A), Plain), (Exclusive(B), Plain)], 2, true),
    case(&[0, 1], &[all(Plain), all(Plain)], 1, true),
    case(&[0, 1], &[all(Before), (Exclusive(B), Plain)], 1, false),
    case(&[0, 1], &[all(Try), (Exclusive(B), Plain)], 1, false),
    case(&[0, 1], &[all(Plain), (Shared(B), Plain)], 1, true),
    case(&[0, 1], &[all(Puts), (Exclusive(A), Puts)], 1, false),
];

/// Accesses to a window whose lock backs off, each made once, and whether all may be inside
/// together.
const WINDOWS: &[(&[Access], bool)] = &[
    (&[Exclusive(A), Exclusive(B)], true),
    (&[Exclusive(A), Shared(B)], true),
    (&[Shared(A), Shared(A), All], true),
    (&[All, All, Shared(B)], true),
    (&[Exclusive(B), Exclusive(B)], false),
    (&[Exclusive(B), Shared(B)], false),
    (&[Exclusive(B), All], false),
    (&[Exclusive(A), Exclusive(B), All], false),
    (&[Exclusive(B), Shared(B), All], false),
];

const C: Rank = Rank::new(2);
/// More ranks and rounds than can be exhausted.
const AT_RANDOM: &[AccessCase] = &[
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
const TWO: &[Turn] = &[all(Plain), (Exclusive(A), Plain)];
const MUTANTS: &[(ClassesMutant, AccessCase)] = &[
    (ClassesMutant::OthersIgnored, case(&[0, 1], TWO, 1, false)),
    (ClassesMutant::BatchNotClosed, case(&[0, 1], TWO, 1, false)),
    (ClassesMutant::NoSecondLook, case(&[0, 1], TWO, 1, false)),
    (ClassesMutant::NoSweep, case(&[0, 1], TWO, 1, false)),
    (ClassesMutant::NotTheLast, case(&[0, 1, 2], &[all(Plain), all(Plain), (Exclusive(B), Plain)], 1, false)),
    (ClassesMutant::NotFlushed, case(&[0, 1], TWO, 1, false)),
    (ClassesMutant::FlushNotAwaited, case(&[0, 1], &[all(Puts), (Exclusive(A), Puts)], 1, false)),
    (ClassesMutant::FlushNotAwaited, case(&[0, 1], &[(Shared(B), Puts), (Exclusive(B), Puts)], 1, false)),
    (ClassesMutant::AbandonedTakenForWoken, case(&[0, 1], &[all(Before), (Exclusive(A), Plain)], 1, false)),
    (ClassesMutant::Forgotten, case(&[0, 1], &[all(Dropped), (Exclusive(A), Plain)], 1, false)),
];
impl AccessCase {
    fn name(&self, what: &str) -> String {
        format!("{what}: {:?} on {:?} x{}", self.turns, self.nodes, self.rounds)
    }

    /// Returns the job with a [`PerRankLock`], with one mutated step, or none.
    fn per_rank(&'static self, mutant: Option<ClassesMutant>, expected: Expected) -> Exploration {
        let what = mutant.map_or("a lock for each rank under two classes".into(), |mutant| format!("{mutant:?}"));
        let name = self.name(&what);
        let program = move |fabric: Fabric| {
            let (probe, turn) = (Probe::of(&fabric), self.turns[fabric.rank().index()]);
            let fabric = match mutant {
                None => fabric,
                Some(mutant) => {
                    let shares = !matches!(turn.0, Exclusive(_));
                    mutated(fabric, MutatedClasses { mutant, shares })
                }
            };
            Box::pin(rounds::<PerRankLock<RpLock>>(fabric, (), probe, turn, self.rounds)) as Run
        };
        Exploration::new(name, expected, move || per_rank_explorer(self), program)
    }

    /// Returns the job with an [`EachLock`].
    fn each(&'static self, at_once: bool) -> Exploration {
        let name = self.name(if at_once { "a lock for each rank, at once" } else { "a lock for each rank" });
        let program = move |fabric: Fabric| {
            let (probe, turn) = (Probe::of(&fabric), self.turns[fabric.rank().index()]);
            let options = EachOptions { at_once, lock: () };
            Box::pin(rounds::<EachLock<RpLock>>(fabric, options, probe, turn, self.rounds)) as Run
        };
        Exploration::new(name, Expected::Exhausted { at_least: 1 }, move || each_explorer(self), program)
    }
}

/// Returns the exploration of the accesses that a window whose lock backs off allows and excludes.
fn window(accesses: &'static [Access], together: bool) -> Exploration {
    let explorer = move || {
        let turns: &'static [Turn] = accesses.iter().map(|access| (*access, Plain)).collect::<Vec<_>>().leak();
        let nodes: &'static [u32] = (0..turns.len() as u32).collect::<Vec<_>>().leak();
        let explorer = of_any_lock(&AccessCase { nodes, turns, rounds: 1, together });
        explorer.at_end("idle", |view| view.words().all(|(_, value)| value == 0))
    };
    let program = move |fabric: Fabric| {
        Box::pin(async move {
            let (probe, access) = (Probe::of(&fabric), accesses[fabric.rank().index()]);
            let lock = WindowLock::symmetric_with(&fabric, HOME, PACE).await?;
            if let Some(guard) = in_time(lock.lock(access).await)? {
                probe.add(fact(access), 1);
                probe.subtract(fact(access), 1);
                guard.release().await?;
            }
            Ok(())
        }) as Run
    };
    Exploration::new(format!("window, back-off: {accesses:?}"), Expected::Exhausted { at_least: 1 }, explorer, program)
}

/// Returns the explorations of accesses to windows.
pub(super) fn explorations() -> Vec<Exploration> {
    let exhausted = Expected::Exhausted { at_least: 1 };
    let small = PER_RANK.iter().map(|case| {
        // Jobs with dropped calls have many states.
        let dropped = case.turns.iter().any(|(_, manner)| matches!(manner, Dropped | ReleaseDropped));
        let size = if dropped || case.turns.len() > 2 { Size::Quick } else { Size::Test };
        case.per_rank(None, exhausted).of_size(size)
    });
    let large = LARGE.iter().map(|case| case.per_rank(None, exhausted).of_size(Size::Full));
    let each = [false, true].into_iter().flat_map(|at_once| EACH.iter().map(move |case| (case, at_once)));
    let each = each.map(|(case, at_once)| {
        let size = if case.turns == [all(Plain), all(Plain)] { Size::Quick } else { Size::Test };
        case.each(at_once).of_size(size)
    });
    let random = AT_RANDOM.iter().map(|case| case.per_rank(None, Expected::Sampled { runs: 2_000 }));
    let caught = Expected::Violated { saying: "", within: 1_000_000 };
    let wrong = MUTANTS.iter().map(|(mutant, case)| case.per_rank(Some(*mutant), caught));
    let windows = WINDOWS.iter().map(|(accesses, together)| window(accesses, *together));
    small.chain(large).chain(each).chain(random).chain(wrong).chain(windows).collect()
}

/// A mutated step of the two classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClassesMutant {
    /// A rank that arrives sees no rank of the other class, and that it is its own class's turn.
    OthersIgnored,
    /// C3 adds nothing.
    BatchNotClosed,
    /// C5 sees no epoch begin.
    NoSecondLook,
    /// A stack that is taken appears empty.
    NoSweep,
    /// Every rank that leaves considers itself the last one.
    NotTheLast,
    /// A release does not flush the data.
    NotFlushed,
    /// The release of a non-exclusive holder begins its flush but does not await it.
    FlushNotAwaited,
    /// A rank that wakes a waiter treats one that gave up as woken, and does not act on its behalf.
    AbandonedTakenForWoken,
    /// The remaining work of a dropped future is not executed.
    Forgotten,
}

#[derive(Debug)]
struct MutatedClasses {
    mutant: ClassesMutant,
    /// Whether the rank is a non-exclusive holder.
    shares: bool,
}

const EPOCH: u64 = 1 << 60;
const TURN: u64 = EPOCH;
const ONE: [u64; 2] = [1, 1 << 30];

impl Mutant for MutatedClasses {
    fn flushes(&self, target: Option<Rank>) -> bool {
        target.is_some() || self.mutant != ClassesMutant::NotFlushed
    }

    fn awaits_flush(&self, target: Option<Rank>) -> bool {
        self.mutant != ClassesMutant::FlushNotAwaited || !self.shares || target.is_some()
    }

    fn detaches(&self) -> bool {
        self.mutant != ClassesMutant::Forgotten
    }

    fn got(&self, addr: RemoteAddr, bits: u64) -> u64 {
        let blind = self.mutant == ClassesMutant::NoSecondLook && word(addr, 0);
        if blind { bits.wrapping_add(5 * EPOCH) } else { bits }
    }

    fn atomic(&self, addr: RemoteAddr, amo: Amo<u64>) -> Amo<u64> {
        match (self.mutant, amo) {
            // Or(0) reads and leaves the value unchanged.
            (ClassesMutant::BatchNotClosed, Amo::Add(n)) if word(addr, 8) && n < 1 << 63 => Amo::Or(0),
            (ClassesMutant::NoSweep, Amo::Swap(0)) if in_lock(addr) && (16..48).contains(&addr.offset) => Amo::Or(0),
            _ => amo,
        }
    }

    fn result(&self, addr: RemoteAddr, amo: Amo<u64>, old: u64) -> u64 {
        match (self.mutant, amo) {
            (ClassesMutant::OthersIgnored, Amo::Add(one)) if word(addr, 0) && one == ONE[0] => 0,
            (ClassesMutant::OthersIgnored, Amo::Add(one)) if word(addr, 0) && one == ONE[1] => TURN,
            (ClassesMutant::NoSweep, Amo::Swap(0)) if in_lock(addr) && (16..48).contains(&addr.offset) => 0,
            (ClassesMutant::NotTheLast, Amo::Add(less)) if word(addr, 8) && less == u64::MAX => 1,
            (ClassesMutant::AbandonedTakenForWoken, Amo::CompareSwap { expected, new })
                if in_lock(addr) && (80..128).contains(&addr.offset) && new & 0xff == 1 =>
            {
                expected
            }
            _ => old,
        }
    }
}
