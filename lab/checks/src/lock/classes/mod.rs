//! Window locks made of one lock per rank, with two classes of holders, correct and mutated; and
//! the exclusion of the window lock that backs off.

mod mutants;
mod program;

use super::{
    mutants::{assert_idle, lock_words, word},
    program::{HOME, PACE, in_time},
};
use crate::exploration::{Expected, Exploration, Run, Size};
use explore::{Explorer, Probe, View, mutant::mutated};
use mutants::{ClassesMutant, MutatedClasses};
use program::Manner::*;
use program::{A, B, EVERYWHERE, EXCLUSIVE, SHARED, Turn, all, fact, rounds};
use rdma_fabric::{Fabric, Rank};
use rma_lock::{
    Access::{self, *},
    AccessLock, Guard, Lock,
    locks::{EachLock, EachOptions, PerRankLock, RpLock, WindowLock},
};

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
