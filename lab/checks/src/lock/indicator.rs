//! The reader indicator, correct and mutated.

use super::{
    mutation::{assert_idle, in_lock, lock_words, word},
    program::{
        Role::{self, *},
        of_any_lock, part,
    },
};
use crate::exploration::{Expected, Exploration, Run, Size};
use explore::{
    Explorer, Probe,
    mutant::{Mutation, mutant},
};
use rdma_fabric::{Amo, Fabric, Rank, RemoteAddr};
use rma_lock::locks::LockKind;

/// Offsets in bytes: the queue's words come first, then the node's, a line of flags, and the lock
/// that excludes writers from each other.
const GATE: u64 = 128;
const LIMIT: u64 = 136;
const WAITING: u64 = 144;
const FLAGS: u64 = 192;
const ABOVE: u64 = 256;

const READERS: u64 = (1 << 24) - 1;
const CLOSED: u64 = 1 << 24;
const EPOCH: u64 = ((1 << 15) - 1) << 25;
const DEPARTED: u64 = 1 << 40;

#[derive(Clone, Copy, Debug)]
struct IndicatorCase {
    nodes: &'static [u32],
    roles: &'static [Role],
    rounds: usize,
}

const fn case(nodes: &'static [u32], roles: &'static [Role], rounds: usize) -> IndicatorCase {
    IndicatorCase { nodes, roles, rounds }
}

const CASES: &[IndicatorCase] = &[
    case(&[0, 1], &[Read, Write], 2),
    case(&[0, 0], &[Read, Write], 2),
    case(&[0, 0, 1], &[Read, Read, Write], 1),
    case(&[0, 1, 1], &[Write, Read, Read], 1),
    case(&[0, 1], &[Write, Write], 2),
    case(&[0, 0], &[ReadAndPut, WriteAndLook], 2),
    case(&[0, 1], &[TryRead, Write], 2),
    case(&[0, 1], &[Read, TryWrite], 2),
    case(&[0, 1], &[ReadBefore, Write], 2),
    case(&[0, 1], &[Read, WriteBefore], 2),
    case(&[0, 0], &[ReadDropped, Write], 1),
    case(&[0, 0], &[ReadReleaseDropped, Write], 1),
];

const LARGE: &[IndicatorCase] = &[
    case(&[0, 1, 1], &[Read, Write, Write], 1),
    case(&[0, 0, 1], &[Read, TryRead, Write], 1),
    case(&[0, 0, 1], &[Read, ReadBefore, WriteBefore], 1),
    case(&[0, 0], &[Read, WriteDropped], 1),
    case(&[0, 0], &[Read, WriteReleaseDropped], 1),
    case(&[0, 0, 1, 1], &[Read, Read, Read, Write], 1),
    case(&[0, 0, 1], &[Read, Read, Write], 2),
];

/// More ranks and rounds than can be exhausted.
const AT_RANDOM: &[IndicatorCase] = &[
    case(&[0, 0, 1, 1], &[Read, Read, Write, Write], 3),
    case(&[0, 0, 1, 1, 2], &[ReadAndPut, ReadBefore, TryRead, WriteAndLook, WriteBefore], 3),
    case(&[0, 0, 0, 1, 1], &[ReadDropped, ReadReleaseDropped, WriteDropped, WriteReleaseDropped, Read], 3),
    case(&[0, 0, 0, 0], &[Read, TryRead, WriteBefore, WriteBefore], 3),
    case(&[0, 0, 1, 1], &[Read, ReadBefore, WriteBefore, TryWrite], 3),
];

const MUTATIONS: &[(IndicatorMistake, IndicatorCase)] = &[
    (IndicatorMistake::GateIgnored, case(&[0, 1], &[Read, Write], 1)),
    (IndicatorMistake::DeparturesNotSeen, case(&[0, 1], &[Read, Write], 1)),
    (IndicatorMistake::LimitNotSeen, case(&[0, 1], &[Read, Write], 1)),
    (IndicatorMistake::WithdrawnAsDeparted, case(&[0, 0, 1], &[Read, TryRead, Write], 1)),
    (IndicatorMistake::NoSecondLook, case(&[0, 1], &[Read, Write], 1)),
    (IndicatorMistake::WakeDropped, case(&[0, 1], &[Read, Write], 1)),
    (IndicatorMistake::NotFlushed, case(&[0, 1], &[Read, Write], 1)),
    (IndicatorMistake::FlushNotAwaited, case(&[0, 0], &[ReadAndPut, WriteAndLook], 1)),
    (IndicatorMistake::Forgotten, case(&[0, 1], &[ReadDropped, Write], 1)),
];

impl IndicatorCase {
    fn explorer(self) -> Explorer<'static> {
        of_any_lock(self.roles)
            .nodes(self.nodes)
            .name(0, GATE, "gate")
            .name(0, LIMIT, "limit")
            .name(0, WAITING, "waiting")
            .name(0, FLAGS, "flag 0")
            .name(0, FLAGS + 8, "flag 1")
            .at_end("idle", |view| {
                for start in [0, ABOVE] {
                    assert_idle(lock_words(view, start, start + GATE));
                }
                view.words().filter(|(addr, _)| in_lock(*addr)).all(|(addr, value)| match addr.offset {
                    GATE => value & (READERS | CLOSED) == 0,
                    WAITING..ABOVE => value == 0,
                    _ => true,
                })
            })
    }

    fn program(self, mistake: Option<IndicatorMistake>) -> impl Fn(Fabric) -> Run {
        move |fabric| {
            let (probe, role) = (Probe::of(&fabric), self.roles[fabric.rank().index()]);
            let fabric = match mistake {
                None => fabric,
                Some(mistake) => mutant(fabric, IndicatorMutation { mistake, reads: !role.writes() }),
            };
            part(fabric, LockKind::Indicator, probe, role, self.rounds)
        }
    }

    fn exploration(self, mistake: Option<IndicatorMistake>, expected: Expected) -> Exploration {
        let IndicatorCase { nodes, roles, rounds } = self;
        let what = mistake.map_or(String::new(), |mistake| format!("{mistake:?}, "));
        let name = format!("indicator: {what}{roles:?} on {nodes:?} x{rounds}");
        Exploration::new(name, expected, move || self.explorer(), self.program(mistake))
    }
}

/// Returns the explorations of the reader indicator.
pub(super) fn explorations() -> Vec<Exploration> {
    let exhausted = Expected::Exhausted { at_least: 1 };
    let small = CASES.iter().map(|case| case.exploration(None, exhausted));
    let large = LARGE.iter().map(|case| case.exploration(None, exhausted).of_size(Size::Full));
    let random = AT_RANDOM.iter().map(|case| case.exploration(None, Expected::Sampled { runs: 2_000 }));
    let caught = Expected::Violated { saying: "", within: 1_000_000 };
    let wrong = MUTATIONS.iter().map(|(mistake, case)| case.exploration(Some(*mistake), caught));
    small.chain(large).chain(random).chain(wrong).collect()
}

/// A mutated step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IndicatorMistake {
    /// I1 sees an open gate.
    GateIgnored,
    /// G3 sees no departures.
    DeparturesNotSeen,
    /// I8 comes before I7, and sees no limit.
    LimitNotSeen,
    /// A reader that was never inside departs as if it had been.
    WithdrawnAsDeparted,
    /// I3 and I6 see no epoch begin.
    NoSecondLook,
    /// I4 and G5 find an empty stack.
    WakeDropped,
    /// A release and G2 do not flush.
    NotFlushed,
    /// A reader's release begins its flush but does not await it.
    FlushNotAwaited,
    /// The remaining work of a dropped future is not executed.
    Forgotten,
}

#[derive(Debug)]
struct IndicatorMutation {
    mistake: IndicatorMistake,
    /// Whether the rank only reads.
    reads: bool,
}

fn withdraws(addr: RemoteAddr, amo: Amo<u64>) -> bool {
    word(addr, GATE) && matches!(amo, Amo::CompareSwap { .. })
}

impl Mutation for IndicatorMutation {
    fn flushes(&self, target: Option<Rank>) -> bool {
        target.is_some() || self.mistake != IndicatorMistake::NotFlushed
    }

    fn awaits_flush(&self, target: Option<Rank>) -> bool {
        self.mistake != IndicatorMistake::FlushNotAwaited || !self.reads || target.is_some()
    }

    fn detaches(&self) -> bool {
        self.mistake != IndicatorMistake::Forgotten
    }

    fn got(&self, addr: RemoteAddr, bits: u64) -> u64 {
        match self.mistake {
            IndicatorMistake::LimitNotSeen if word(addr, LIMIT) => 0,
            IndicatorMistake::NoSecondLook if word(addr, GATE) => bits & !EPOCH,
            _ => bits,
        }
    }

    fn atomic(&self, addr: RemoteAddr, amo: Amo<u64>) -> Amo<u64> {
        match self.mistake {
            IndicatorMistake::WithdrawnAsDeparted if withdraws(addr, amo) => Amo::Add(DEPARTED - 1),
            // Or(0) reads and leaves the value unchanged.
            IndicatorMistake::WakeDropped if word(addr, WAITING) && amo == Amo::Swap(0) => Amo::Or(0),
            _ => amo,
        }
    }

    fn result(&self, addr: RemoteAddr, amo: Amo<u64>, old: u64) -> u64 {
        match (self.mistake, amo) {
            (IndicatorMistake::GateIgnored, Amo::Add(1)) if word(addr, GATE) => old & !CLOSED,
            (IndicatorMistake::DeparturesNotSeen, Amo::Or(0)) if word(addr, GATE) => old.wrapping_sub(DEPARTED),
            (IndicatorMistake::WithdrawnAsDeparted, Amo::CompareSwap { expected, .. }) if withdraws(addr, amo) => {
                expected
            }
            (IndicatorMistake::WakeDropped, Amo::Swap(0)) if word(addr, WAITING) => 0,
            _ => old,
        }
    }
}
