//! The reader indicator, correct and mutated.

use super::{
    mutants::{assert_idle, in_lock, lock_words, word},
    program::{
        Role::{self, *},
        of_any_lock, part,
    },
};
use crate::exploration::{Expected, Exploration, Run, Size};
use explore::{
    Explorer, Probe,
    mutant::{Mutant, mutated},
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

const MUTANTS: &[(IndicatorMutant, IndicatorCase)] = &[
    (IndicatorMutant::GateIgnored, case(&[0, 1], &[Read, Write], 1)),
    (IndicatorMutant::DeparturesNotSeen, case(&[0, 1], &[Read, Write], 1)),
    (IndicatorMutant::LimitNotSeen, case(&[0, 1], &[Read, Write], 1)),
    (IndicatorMutant::WithdrawnAsDeparted, case(&[0, 0, 1], &[Read, TryRead, Write], 1)),
    (IndicatorMutant::NoSecondLook, case(&[0, 1], &[Read, Write], 1)),
    (IndicatorMutant::WakeDropped, case(&[0, 1], &[Read, Write], 1)),
    (IndicatorMutant::NotFlushed, case(&[0, 1], &[Read, Write], 1)),
    (IndicatorMutant::FlushNotAwaited, case(&[0, 0], &[ReadAndPut, WriteAndLook], 1)),
    (IndicatorMutant::Forgotten, case(&[0, 1], &[ReadDropped, Write], 1)),
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

    fn program(self, mutant: Option<IndicatorMutant>) -> impl Fn(Fabric) -> Run {
        move |fabric| {
            let (probe, role) = (Probe::of(&fabric), self.roles[fabric.rank().index()]);
            let fabric = match mutant {
                None => fabric,
                Some(mutant) => mutated(fabric, MutatedIndicator { mutant, reads: !role.writes() }),
            };
            part(fabric, LockKind::Indicator, probe, role, self.rounds)
        }
    }

    fn exploration(self, mutant: Option<IndicatorMutant>, expected: Expected) -> Exploration {
        let IndicatorCase { nodes, roles, rounds } = self;
        let what = mutant.map_or(String::new(), |mutant| format!("{mutant:?}, "));
        let name = format!("indicator: {what}{roles:?} on {nodes:?} x{rounds}");
        Exploration::new(name, expected, move || self.explorer(), self.program(mutant))
    }
}

/// Returns the explorations of the reader indicator.
pub(super) fn explorations() -> Vec<Exploration> {
    let exhausted = Expected::Exhausted { at_least: 1 };
    let small = CASES.iter().map(|case| case.exploration(None, exhausted));
    let large = LARGE.iter().map(|case| case.exploration(None, exhausted).of_size(Size::Full));
    let random = AT_RANDOM.iter().map(|case| case.exploration(None, Expected::Sampled { runs: 2_000 }));
    let caught = Expected::Violated { saying: "", within: 1_000_000 };
    let wrong = MUTANTS.iter().map(|(mutant, case)| case.exploration(Some(*mutant), caught));
    small.chain(large).chain(random).chain(wrong).collect()
}

/// A mutated step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IndicatorMutant {
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
struct MutatedIndicator {
    mutant: IndicatorMutant,
    /// Whether the rank only reads.
    reads: bool,
}

fn withdraws(addr: RemoteAddr, amo: Amo<u64>) -> bool {
    word(addr, GATE) && matches!(amo, Amo::CompareSwap { .. })
}

impl Mutant for MutatedIndicator {
    fn flushes(&self, target: Option<Rank>) -> bool {
        target.is_some() || self.mutant != IndicatorMutant::NotFlushed
    }

    fn awaits_flush(&self, target: Option<Rank>) -> bool {
        self.mutant != IndicatorMutant::FlushNotAwaited || !self.reads || target.is_some()
    }

    fn detaches(&self) -> bool {
        self.mutant != IndicatorMutant::Forgotten
    }

    fn got(&self, addr: RemoteAddr, bits: u64) -> u64 {
        match self.mutant {
            IndicatorMutant::LimitNotSeen if word(addr, LIMIT) => 0,
            IndicatorMutant::NoSecondLook if word(addr, GATE) => bits & !EPOCH,
            _ => bits,
        }
    }

    fn atomic(&self, addr: RemoteAddr, amo: Amo<u64>) -> Amo<u64> {
        match self.mutant {
            IndicatorMutant::WithdrawnAsDeparted if withdraws(addr, amo) => Amo::Add(DEPARTED - 1),
            // Or(0) reads and leaves the value unchanged.
            IndicatorMutant::WakeDropped if word(addr, WAITING) && amo == Amo::Swap(0) => Amo::Or(0),
            _ => amo,
        }
    }

    fn result(&self, addr: RemoteAddr, amo: Amo<u64>, old: u64) -> u64 {
        match (self.mutant, amo) {
            (IndicatorMutant::GateIgnored, Amo::Add(1)) if word(addr, GATE) => old & !CLOSED,
            (IndicatorMutant::DeparturesNotSeen, Amo::Or(0)) if word(addr, GATE) => old.wrapping_sub(DEPARTED),
            (IndicatorMutant::WithdrawnAsDeparted, Amo::CompareSwap { expected, .. }) if withdraws(addr, amo) => {
                expected
            }
            (IndicatorMutant::WakeDropped, Amo::Swap(0)) if word(addr, WAITING) => 0,
            _ => old,
        }
    }
}
