//! The reader indicator, right and wrong, under all delivery orders.

use crate::{
    mutant::{Mutation, assert_idle, mutant},
    program::{
        Role::{self, *},
        Run, of_any_lock, rounds,
    },
};
use explore::{Explorer, Probe};
use rdma_fabric::{Amo, Fabric, Rank, RemoteAddr};
use rma_lock::locks::{IndicatorLock, RpLock};
use std::time::Instant;

/// Bytes: the queue's words, then the node's, then a line of flags, then the lock that keeps writers apart.
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
struct Case {
    nodes: &'static [u32],
    roles: &'static [Role],
    rounds: usize,
}

const fn case(nodes: &'static [u32], roles: &'static [Role], rounds: usize) -> Case {
    Case { nodes, roles, rounds }
}

fn explorer(case: &Case) -> Explorer<'static> {
    of_any_lock(case.roles)
        .nodes(case.nodes)
        .name(0, GATE, "gate")
        .name(0, LIMIT, "limit")
        .name(0, WAITING, "waiting")
        .name(0, FLAGS, "flag 0")
        .name(0, FLAGS + 8, "flag 1")
        .at_end("idle", |view| {
            let lock = || view.words().filter(|(addr, _)| addr.region.index == 0);
            for start in [0, ABOVE] {
                let words = lock().filter(|(addr, _)| (start..start + GATE).contains(&addr.offset));
                assert_idle(
                    words.map(|(addr, value)| (addr.rank.index(), ((addr.offset - start) / 8) as usize, value)),
                );
            }
            lock().all(|(addr, value)| match addr.offset {
                GATE => value & (READERS | CLOSED) == 0,
                LIMIT => true,
                WAITING..ABOVE => value == 0,
                _ => true,
            })
        })
}

fn job(case: &Case, wrong: Option<Wrong>) -> impl Fn(Fabric) -> Run + use<> {
    let case = *case;
    move |fabric| {
        let (probe, role) = (Probe::of(&fabric), case.roles[fabric.rank().index()]);
        match wrong {
            None => Box::pin(rounds::<IndicatorLock<RpLock>>(fabric, (), probe, role, case.rounds)),
            Some(wrong) => {
                let mutant = mutant(fabric, Mistake { wrong, reads: !role.writes() });
                Box::pin(rounds::<IndicatorLock<RpLock>>(mutant, (), probe, role, case.rounds))
            }
        }
    }
}

const CASES: &[Case] = &[
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

const LARGE: &[Case] = &[
    case(&[0, 1, 1], &[Read, Write, Write], 1),
    case(&[0, 0, 1], &[Read, TryRead, Write], 1),
    case(&[0, 0, 1], &[Read, ReadBefore, WriteBefore], 1),
    case(&[0, 0], &[Read, WriteDropped], 1),
    case(&[0, 0], &[Read, WriteReleaseDropped], 1),
    case(&[0, 0, 1, 1], &[Read, Read, Read, Write], 1),
    case(&[0, 0, 1], &[Read, Read, Write], 2),
];

fn exhaust(cases: &[Case]) {
    for case in cases {
        let start = Instant::now();
        let report = explorer(case).state_limit(20_000_000).run(job(case, None));
        println!("{case:?}: {report}, {:.2} s", start.elapsed().as_secs_f64());
        report.expect_exhausted();
    }
}

#[test]
fn gates_and_limits() {
    exhaust(CASES);
}

/// What takes longer: `cargo test --release -- --ignored`.
#[test]
#[ignore = "minutes"]
fn larger_jobs() {
    exhaust(LARGE);
}

/// More ranks and rounds than can be exhausted. Repeat a failure by its seed.
#[test]
fn random_orders_of_many_ranks() {
    const RUNS: u64 = 2_000;
    const CASES: &[Case] = &[
        case(&[0, 0, 1, 1], &[Read, Read, Write, Write], 3),
        case(&[0, 0, 1, 1, 2], &[ReadAndPut, ReadBefore, TryRead, WriteAndLook, WriteBefore], 3),
        case(&[0, 0, 0, 1, 1], &[ReadDropped, ReadReleaseDropped, WriteDropped, WriteReleaseDropped, Read], 3),
        case(&[0, 0, 0, 0], &[Read, TryRead, WriteBefore, WriteBefore], 3),
        case(&[0, 0, 1, 1], &[Read, ReadBefore, WriteBefore, TryWrite], 3),
    ];
    for case in CASES {
        let start = Instant::now();
        let sample = explorer(case).sample(1, RUNS, job(case, None));
        assert!(sample.failure.is_none(), "{case:?}: {sample}");
        println!("{case:?}: {sample}, {:.2} s", start.elapsed().as_secs_f64());
    }
}

/// What is done wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    /// I1 sees an open gate.
    GateIgnored,
    /// G3 sees no departures.
    DeparturesNotSeen,
    /// I8 comes before I7, and sees no limit.
    LimitNotSeen,
    /// A reader that never was inside departs like one that was.
    WithdrawnAsDeparted,
    /// I3 and I6 see no epoch begin.
    NoSecondLook,
    /// I4 and G5 find nobody.
    WakeDropped,
    /// A release, and G2, do not flush.
    NotFlushed,
    /// A reader's release begins its flush, and does not await it.
    FlushNotAwaited,
    /// What a dropped future owes is not done.
    Forgotten,
}

#[derive(Debug)]
struct Mistake {
    wrong: Wrong,
    /// Whether the rank reads only.
    reads: bool,
}

fn word(addr: RemoteAddr, offset: u64) -> bool {
    addr.region.index == 0 && addr.offset == offset
}

fn withdraws(addr: RemoteAddr, amo: Amo<u64>) -> bool {
    word(addr, GATE) && matches!(amo, Amo::CompareSwap { .. })
}

impl Mutation for Mistake {
    fn flushes(&self, target: Option<Rank>) -> bool {
        target.is_some() || self.wrong != Wrong::NotFlushed
    }

    fn awaits_flush(&self, target: Option<Rank>) -> bool {
        self.wrong != Wrong::FlushNotAwaited || !self.reads || target.is_some()
    }

    fn detaches(&self) -> bool {
        self.wrong != Wrong::Forgotten
    }

    fn got(&self, addr: RemoteAddr, bits: u64) -> u64 {
        match self.wrong {
            Wrong::LimitNotSeen if word(addr, LIMIT) => 0,
            Wrong::NoSecondLook if word(addr, GATE) => bits & !EPOCH,
            _ => bits,
        }
    }

    fn atomic(&self, addr: RemoteAddr, amo: Amo<u64>) -> Amo<u64> {
        match self.wrong {
            Wrong::WithdrawnAsDeparted if withdraws(addr, amo) => Amo::Add(DEPARTED - 1),
            // Or(0) reads and leaves what is there.
            Wrong::WakeDropped if word(addr, WAITING) && amo == Amo::Swap(0) => Amo::Or(0),
            _ => amo,
        }
    }

    fn result(&self, addr: RemoteAddr, amo: Amo<u64>, old: u64) -> u64 {
        match (self.wrong, amo) {
            (Wrong::GateIgnored, Amo::Add(1)) if word(addr, GATE) => old & !CLOSED,
            (Wrong::DeparturesNotSeen, Amo::Or(0)) if word(addr, GATE) => old.wrapping_sub(DEPARTED),
            (Wrong::WithdrawnAsDeparted, Amo::CompareSwap { expected, .. }) if withdraws(addr, amo) => expected,
            (Wrong::WakeDropped, Amo::Swap(0)) if word(addr, WAITING) => 0,
            _ => old,
        }
    }
}

#[test]
fn mistakes_are_caught() {
    const MISTAKES: &[(Wrong, Case)] = &[
        (Wrong::GateIgnored, case(&[0, 1], &[Read, Write], 1)),
        (Wrong::DeparturesNotSeen, case(&[0, 1], &[Read, Write], 1)),
        (Wrong::LimitNotSeen, case(&[0, 1], &[Read, Write], 1)),
        (Wrong::WithdrawnAsDeparted, case(&[0, 0, 1], &[Read, TryRead, Write], 1)),
        (Wrong::NoSecondLook, case(&[0, 1], &[Read, Write], 1)),
        (Wrong::WakeDropped, case(&[0, 1], &[Read, Write], 1)),
        (Wrong::NotFlushed, case(&[0, 1], &[Read, Write], 1)),
        (Wrong::FlushNotAwaited, case(&[0, 0], &[ReadAndPut, WriteAndLook], 1)),
        (Wrong::Forgotten, case(&[0, 1], &[ReadDropped, Write], 1)),
    ];
    for (wrong, case) in MISTAKES {
        let report = explorer(case).state_limit(1_000_000).run(job(case, Some(*wrong)));
        let found = report.violation().unwrap_or_else(|| panic!("{wrong:?} passed: {report}"));
        println!("{wrong:?}: {} in {} moves, {} states", found.what, found.moves, report.states);
        let (again, timeline) = explorer(case).replay(&found.schedule, job(case, Some(*wrong)));
        assert_eq!((again.as_ref(), &timeline), (Some(&found.what), &found.timeline), "{wrong:?}");
    }
}
