//! What is explored of locks that know nodes, and which of their steps done wrong must be found.

use super::{
    mutant::{Mutation, assert_idle, mutant},
    program::{
        Role::{self, *},
        Run, of_any_lock, rounds,
    },
};
use explore::{Explorer, Probe, View};
use rdma_fabric::{Amo, Fabric, Rank, RemoteAddr};
use rma_lock::locks::{Aggregated, AggregatedOptions, BackOff, BackOffLock, Levels, RpLock};
use std::{cell::Cell, time::Duration};

/// Which lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// [`Aggregated`] over [`RpLock`].
    Nodes,
    /// The same in a tree of radix 2.
    Tree,
    /// [`Aggregated`] over [`BackOffLock`].
    BackOff,
}

/// A job of ranks on nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) which: Which,
    pub(crate) nodes: &'static [u32],
    pub(crate) roles: &'static [Role],
    pub(crate) rounds: usize,
    /// So many states at least: about half of what was recorded.
    pub(crate) at_least: u64,
    /// Explored by `cargo test`.
    pub(crate) quick: bool,
}

const fn case(
    which: Which,
    nodes: &'static [u32],
    roles: &'static [Role],
    rounds: usize,
    at_least: u64,
    quick: bool,
) -> Case {
    Case { which, nodes, roles, rounds, at_least, quick }
}

use Which::*;

pub(crate) const CASES: &[Case] = &[
    case(Nodes, &[0, 0], &[Read, Read], 2, 5_400, true),
    case(Nodes, &[0, 0], &[Read, Write], 2, 1_200, true),
    case(Nodes, &[0, 0, 1], &[Read, Read, Write], 1, 8_500, true),
    case(Nodes, &[0, 0, 0], &[Read, Read, Read], 1, 49_000, true),
    case(Nodes, &[0, 1, 1], &[Write, Read, Read], 1, 8_500, true),
    case(Nodes, &[0, 0, 1], &[ReadAndPut, ReadAndPut, WriteAndLook], 1, 14_000, true),
    case(Nodes, &[0, 1], &[ReadAndPut, WriteAndLook], 2, 1_500, true),
    case(Tree, &[0, 0, 1], &[ReadAndPut, ReadAndPut, WriteAndLook], 1, 14_000, true),
    case(BackOff, &[0, 0, 1], &[ReadAndPut, ReadAndPut, WriteAndLook], 1, 10_000, true),
    case(Nodes, &[0, 0, 1], &[ReadBefore, Read, Write], 1, 13_500, true),
    case(Nodes, &[0, 0], &[ReadBefore, ReadBefore], 2, 13_900, true),
    case(Nodes, &[0, 0], &[ReadDropped, Read], 1, 11_900, true),
    case(Nodes, &[0, 0, 1], &[ReadDropped, Read, Write], 1, 1_300_000, false),
    case(Nodes, &[0, 0, 1], &[TryRead, Read, Write], 1, 6_200, true),
    case(Nodes, &[0, 0, 1], &[ReadReleaseDropped, Read, Write], 1, 230_000, true),
    case(BackOff, &[0, 0], &[Read, Read], 2, 2_100, true),
    case(BackOff, &[0, 0, 1], &[Read, Read, Write], 1, 5_200, true),
    case(Tree, &[0, 0, 1], &[Read, Read, Read], 1, 18_000, true),
    case(Nodes, &[0, 0, 1, 1], &[Read, Read, Read, Write], 1, 1_480_000, false),
    case(Nodes, &[0, 0, 1, 1], &[Read, Read, Write, Write], 1, 225_000, false),
    case(Nodes, &[0, 0, 1], &[Read, Read, Write], 2, 570_000, false),
    case(Nodes, &[0, 0, 0, 1], &[ReadBefore, Read, Read, Write], 1, 1_840_000, false),
    case(Nodes, &[0, 0, 0], &[ReadBefore, ReadBefore, ReadBefore], 1, 149_000, false),
    case(Tree, &[0, 0, 1, 2], &[Read, Read, Read, Write], 1, 1, false),
    // Larger than what has been exhausted.
    case(Nodes, &[0, 0, 1, 1, 1], &[Read, Read, Read, Read, Write], 1, 1, false),
    case(Nodes, &[0, 0, 1, 1, 1], &[Read, Read, Read, Write, Write], 1, 1, false),
];

impl Case {
    pub(crate) fn name(&self) -> String {
        let roles: Vec<_> = self.roles.iter().zip(self.nodes).map(|(role, node)| format!("{role:?}@{node}")).collect();
        format!("{:?}: {} x{}", self.which, roles.join(" "), self.rounds)
    }
}

/// A sleep that costs the explorer fewest states.
const PACE: BackOff = BackOff { first: Duration::from_nanos(1), doublings: 0, attempts: 3, seed: 0 };

/// Bytes of the words of a lock with queues, at each rank.
const QUEUE: u64 = 128;
const LINE: u64 = 64;

impl Which {
    /// Where the lock above the levels begins.
    fn above(self, ranks: usize) -> u64 {
        let levels = match self {
            Which::Nodes | Which::BackOff => 1,
            Which::Tree => {
                if ranks > 2 {
                    if ranks > 4 { 3 } else { 2 }
                } else {
                    1
                }
            }
        };
        QUEUE + LINE * levels
    }
}

/// Words that are of the queue nodes below or of the reader-preference lock above must be at rest, all others 0.
pub(crate) fn is_idle(view: &View<'_>, case: &Case) -> bool {
    let (above, queue_above) = (case.which.above(case.roles.len()), case.which != Which::BackOff);
    let lock = || view.words().filter(|(addr, _)| addr.region.index == 0);
    let words = |start: u64| {
        lock()
            .filter(move |(addr, _)| (start..start + QUEUE).contains(&addr.offset))
            .map(move |(addr, value)| (addr.rank.index(), ((addr.offset - start) / 8) as usize, value))
    };
    assert_idle(words(0));
    if queue_above {
        assert_idle(words(above));
    }
    let in_queue = |offset: u64| offset < QUEUE || queue_above && (above..above + QUEUE).contains(&offset);
    lock().all(|(addr, value)| value == 0 || in_queue(addr.offset))
}

/// What must hold, if nobody dies.
pub(crate) fn explorer(case: &Case) -> Explorer<'static> {
    let case = *case;
    explorer_ending(&case, move |view| is_idle(view, &case))
}

/// What must hold; `idle` in the end.
pub(crate) fn explorer_ending(case: &Case, idle: impl Fn(&View<'_>) -> bool + 'static) -> Explorer<'static> {
    let above = case.which.above(case.roles.len());
    of_any_lock(case.roles)
        .nodes(case.nodes)
        .name(0, 48, "wake 4")
        .name(0, 80, "wake")
        .name(0, 88, "next")
        .name(0, 128, "node")
        .name(0, 136, "waiting")
        .name(0, above, "count")
        .name(0, above + 8, "readers")
        .name(0, above + 16, "tail")
        .name(0, above + 24, "head")
        .at_end("idle", idle)
}

/// A step done wrong, and the smallest job known to show it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mistaken {
    pub(crate) wrong: Wrong,
    pub(crate) case: Case,
}

const fn mistaken(
    wrong: Wrong,
    which: Which,
    nodes: &'static [u32],
    roles: &'static [Role],
    rounds: usize,
) -> Mistaken {
    Mistaken { wrong, case: case(which, nodes, roles, rounds, 0, true) }
}

pub(crate) const MISTAKES: &[Mistaken] = &[
    mistaken(Wrong::OthersIgnored, Nodes, &[0, 0, 1], &[Read, Read, Write], 1),
    mistaken(Wrong::ComparisonIgnored, Nodes, &[0, 0, 1], &[Read, Read, Write], 1),
    mistaken(Wrong::DataNotFlushed, Nodes, &[0, 0, 1], &[ReadAndPut, ReadAndPut, WriteAndLook], 1),
    mistaken(Wrong::FlushNotAwaited, Nodes, &[0, 0, 1], &[ReadAndPut, ReadAndPut, WriteAndLook], 1),
    mistaken(Wrong::FlushNotAwaited, Nodes, &[0, 1], &[ReadAndPut, WriteAndLook], 1),
    mistaken(Wrong::HeldTooEarly, Nodes, &[0, 0, 1], &[Read, Read, Write], 1),
    mistaken(Wrong::WakeDropped, Nodes, &[0, 0], &[Read, Read], 1),
    mistaken(Wrong::NoSecondLook, Nodes, &[0, 0], &[Read, Read], 1),
    mistaken(Wrong::GivenUpSilently, Nodes, &[0, 0, 1], &[ReadBefore, Read, Write], 1),
    mistaken(Wrong::OfferTakenForGrant, Nodes, &[0, 0, 1], &[ReadBefore, Read, Write], 1),
    mistaken(Wrong::ClaimedTwice, Nodes, &[0, 0, 0, 1], &[ReadBefore, Read, Read, Write], 1),
    mistaken(Wrong::AbandonedTakenForWoken, Nodes, &[0, 0], &[ReadBefore, ReadBefore], 1),
    mistaken(Wrong::Forgotten, Nodes, &[0, 0, 1], &[ReadDropped, Read, Write], 1),
    mistaken(Wrong::Forgotten, Nodes, &[0, 0, 1], &[ReadReleaseDropped, Read, Write], 1),
];

/// What is done wrong at the level of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// Whoever leaves lets go of the lock above, others being inside or not.
    OthersIgnored,
    /// N6 believes that the comparison succeeded.
    ComparisonIgnored,
    /// A release does not flush the data.
    DataNotFlushed,
    /// A reader's release begins its flush, and does not await it.
    FlushNotAwaited,
    /// N3 comes before the lock above is held.
    HeldTooEarly,
    /// A sweep finds nobody.
    WakeDropped,
    /// N9 sees no flag.
    NoSecondLook,
    /// N4 sets no flag.
    GivenUpSilently,
    /// N13 takes the lock for held.
    OfferTakenForGrant,
    /// N2 believes that it was the first.
    ClaimedTwice,
    /// A waker takes one who gave up for woken, and does not act for him.
    AbandonedTakenForWoken,
    /// What a dropped future owes is not done.
    Forgotten,
}

/// [`Wrong`] at one rank of a lock of [`Which::Nodes`].
#[derive(Debug)]
struct Mistake {
    wrong: Wrong,
    /// The first rank of this rank's node.
    first: Rank,
    /// N3 was done too early.
    opened: Cell<bool>,
    /// Whether the rank reads only.
    reads: bool,
}

const NODE: u64 = QUEUE;
const WAITING: u64 = QUEUE + 8;
const ABOVE: u64 = QUEUE + LINE;
const HELD: u64 = 1;
const ORPHAN: u64 = 2;
const READER: u64 = 4;
const GRANTED: u64 = 1;
const OFFERED: u64 = 3;

fn word(addr: RemoteAddr, offset: u64) -> bool {
    addr.region.index == 0 && addr.offset == offset
}

fn wake_word(addr: RemoteAddr) -> bool {
    addr.region.index == 0 && addr.offset.is_multiple_of(16) && (addr.offset == 48 || (80..128).contains(&addr.offset))
}

const LET_GO: Amo<u64> = Amo::CompareSwap { expected: HELD, new: 0 };

impl Mutation for Mistake {
    fn flushes(&self, target: Option<Rank>) -> bool {
        target.is_some() || self.wrong != Wrong::DataNotFlushed
    }

    fn awaits_flush(&self, target: Option<Rank>) -> bool {
        self.wrong != Wrong::FlushNotAwaited || !self.reads || target.is_some()
    }

    fn detaches(&self) -> bool {
        self.wrong != Wrong::Forgotten
    }

    fn got(&self, addr: RemoteAddr, bits: u64) -> u64 {
        if self.wrong == Wrong::NoSecondLook && word(addr, NODE) { bits & !(HELD | ORPHAN) } else { bits }
    }

    fn first(&self, addr: RemoteAddr, amo: Amo<u64>) -> Option<(RemoteAddr, Amo<u64>)> {
        let enters = self.wrong == Wrong::HeldTooEarly && word(addr, ABOVE) && amo == Amo::Add(READER);
        enters.then(|| {
            self.opened.set(true);
            (RemoteAddr { rank: self.first, offset: NODE, ..addr }, Amo::Or(HELD))
        })
    }

    fn atomic(&self, addr: RemoteAddr, amo: Amo<u64>) -> Amo<u64> {
        match (self.wrong, amo) {
            (Wrong::OthersIgnored, LET_GO) if word(addr, NODE) => Amo::And(!HELD),
            // Or(0) reads and leaves what is there.
            (Wrong::HeldTooEarly, Amo::Add(HELD)) if word(addr, NODE) && self.opened.get() => Amo::Or(0),
            (Wrong::WakeDropped, Amo::Swap(0)) if word(addr, WAITING) => Amo::Or(0),
            (Wrong::GivenUpSilently, Amo::Add(less)) if word(addr, NODE) && less == ORPHAN.wrapping_sub(READER) => {
                Amo::Add(READER.wrapping_neg())
            }
            (Wrong::OfferTakenForGrant, Amo::CompareSwap { expected, new })
                if wake_word(addr) && new & 0xff == OFFERED =>
            {
                Amo::CompareSwap { expected, new: new - OFFERED + GRANTED }
            }
            _ => amo,
        }
    }

    fn result(&self, addr: RemoteAddr, amo: Amo<u64>, old: u64) -> u64 {
        match (self.wrong, amo) {
            (Wrong::OthersIgnored, Amo::Add(less)) if word(addr, NODE) && less == READER.wrapping_neg() => {
                READER + HELD
            }
            (Wrong::OthersIgnored | Wrong::ComparisonIgnored, LET_GO) if word(addr, NODE) => HELD,
            (Wrong::WakeDropped, Amo::Swap(0)) if word(addr, WAITING) => 0,
            (Wrong::ClaimedTwice, Amo::And(_)) if word(addr, NODE) => old | ORPHAN,
            (Wrong::AbandonedTakenForWoken, Amo::CompareSwap { expected, new })
                if wake_word(addr) && matches!(new & 0xff, GRANTED | OFFERED) =>
            {
                expected
            }
            _ => old,
        }
    }
}

/// A job with one step done wrong, or none.
pub(crate) fn job(case: &Case, wrong: Option<Wrong>) -> impl Fn(Fabric) -> Run + use<> {
    let case = *case;
    move |fabric| match case.which {
        Which::Nodes => run::<RpLock>(fabric, &case, nodes(()), wrong),
        Which::Tree => {
            let tree = AggregatedOptions { levels: Levels::Tree { radix: 2 }, lock: () };
            run::<RpLock>(fabric, &case, tree, wrong)
        }
        Which::BackOff => run::<BackOffLock>(fabric, &case, nodes(PACE), wrong),
    }
}

fn nodes<O>(lock: O) -> AggregatedOptions<O> {
    AggregatedOptions { levels: Levels::Nodes, lock }
}

/// One rank's part with `Aggregated<L>`.
fn run<L: rma_lock::locks::AnonymousShared>(
    fabric: Fabric,
    case: &Case,
    options: AggregatedOptions<L::Options>,
    wrong: Option<Wrong>,
) -> Run {
    let (probe, me, n) = (Probe::of(&fabric), fabric.rank().index(), case.rounds);
    let role = case.roles[me];
    let fabric = match wrong {
        None => fabric,
        Some(wrong) => {
            let first = case.nodes.iter().position(|node| *node == case.nodes[me]).unwrap_or(me);
            let mistake =
                Mistake { wrong, first: Rank::new(first as u32), opened: Cell::new(false), reads: !role.writes() };
            mutant(fabric, mistake)
        }
    };
    Box::pin(rounds::<Aggregated<L>>(fabric, options, probe, role, n))
}
