//! The lock that survives deaths with one step of its recovery done wrong: each must be noticed.
//!
//! Words are told by their addresses: the lock is the first symmetric region, made for one to eight deaths.

use crate::{
    mutant::{Mutation, mutant},
    program::Role::{self, *},
    recoverable::{explorer, once},
};
use explore::{Fabric, Probe};
use rdma_fabric::{Amo, ProgramResult, Rank, RemoteAddr};
use std::{cell::Cell, future::Future, pin::Pin, time::Instant};

const AGREEMENT: u64 = 0;
const DOORBELL: u64 = 16;
const DEAD: u64 = 64;
/// Where the words of epochs begin, and how many bytes each takes.
const EPOCHS: u64 = 128;
const EPOCH: u64 = 192;
/// In those of an epoch.
const COUNT: u64 = 0;
const CLAIM: u64 = 136;

const ACTIVE: u64 = 2;
const READER: u64 = 4;
const CLOSED: u64 = 1 << 31;
/// Of a claim.
const OVER: u64 = 1;
const STAND_IN: u64 = 4;
/// Of the agreement: somebody opens an epoch.
const OPENING: u64 = 1 << 32;
/// No rank of these jobs.
const NOBODY: u64 = 77;

/// Reads and leaves what is there.
const NOTHING: Amo<u64> = Amo::Or(0);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Nothing is wrong: the wrapper itself must not matter.
    Right,
    /// The old epoch stays open.
    NotClosed,
    /// A reader that lives on in the old epoch is not counted in the next.
    NoStandIn,
    /// The rank is not told of its stand-in.
    MarkLost,
    /// Who opens an epoch does not look a second time whether the rank it has marked is out already.
    NoSecondLook,
    /// A dead writer is taken for none.
    TornNotTold,
    /// The dead are not taken from those on whom survivors' waits depend.
    DeadAmongLiving,
    /// Nobody is told that the epoch is open.
    NotRung,
    /// A reader's release begins its flush, and does not await it.
    FlushNotAwaited,
}

#[derive(Debug)]
struct Recovering {
    step: Step,
    /// Whether this rank opens an epoch.
    opens: Cell<bool>,
    /// Whether it reads only.
    reads: bool,
}

/// The word's place among those of its epoch.
fn in_epoch(addr: RemoteAddr, offset: u64) -> bool {
    addr.region.index == 0 && addr.offset >= EPOCHS && (addr.offset - EPOCHS) % EPOCH == offset
}

fn word(addr: RemoteAddr, offset: u64) -> bool {
    addr.region.index == 0 && addr.offset == offset
}

impl Mutation for Recovering {
    fn awaits_flush(&self, target: Option<Rank>) -> bool {
        self.step != Step::FlushNotAwaited || !self.reads || target.is_some()
    }

    fn atomic(&self, addr: RemoteAddr, amo: Amo<u64>) -> Amo<u64> {
        match (self.step, amo) {
            (Step::NotClosed, Amo::Or(CLOSED)) if in_epoch(addr, COUNT) => NOTHING,
            (Step::NoStandIn, Amo::Add(READER)) if in_epoch(addr, COUNT) && self.opens.get() => NOTHING,
            (Step::MarkLost, Amo::CompareSwap { new, .. })
                if in_epoch(addr, CLAIM) && new & (STAND_IN | OVER) == STAND_IN =>
            {
                NOTHING
            }
            (Step::NoSecondLook, Amo::CompareSwap { expected, new })
                if in_epoch(addr, CLAIM) && new == expected | OVER =>
            {
                NOTHING
            }
            (Step::NotRung, Amo::Swap(_)) if word(addr, DOORBELL) => NOTHING,
            _ => amo,
        }
    }

    fn result(&self, addr: RemoteAddr, amo: Amo<u64>, old: u64) -> u64 {
        if let Amo::CompareSwap { expected, new } = amo
            && word(addr, AGREEMENT)
            && old == expected
        {
            self.opens.set(new & OPENING != 0);
        }
        match (self.step, amo) {
            (Step::MarkLost, Amo::CompareSwap { expected, new })
                if in_epoch(addr, CLAIM) && new & (STAND_IN | OVER) == STAND_IN =>
            {
                expected
            }
            (Step::NoSecondLook, Amo::CompareSwap { expected, new })
                if in_epoch(addr, CLAIM) && new == expected | OVER =>
            {
                !expected
            }
            (Step::TornNotTold, Amo::Or(CLOSED)) if in_epoch(addr, COUNT) => old & !ACTIVE,
            _ => old,
        }
    }

    fn got(&self, addr: RemoteAddr, bits: u64) -> u64 {
        if self.step == Step::DeadAmongLiving && word(addr, DEAD) { NOBODY } else { bits }
    }
}

fn program(
    roles: &'static [Role],
    mortal: &[u32],
    step: Step,
) -> impl Fn(Fabric) -> Pin<Box<dyn Future<Output = ProgramResult<()>>>> + use<> {
    let deaths = mortal.len();
    move |fabric| {
        let (probe, role) = (Probe::of(&fabric), roles[fabric.rank().index()]);
        let mutant = mutant(fabric, Recovering { step, opens: Cell::new(false), reads: !role.writes() });
        Box::pin(once(mutant, probe, role, deaths))
    }
}

#[test]
fn a_step_done_wrong_is_noticed() {
    const RUNS: u64 = 20_000;
    let two: &[Role] = &[Read, Write];
    let three: &[Role] = &[Read, Write, Write];
    let writers: &[Role] = &[Write, Write, Write];
    let puts: &[Role] = &[ReadAndPut, WriteAndLook, WriteAndLook];
    let cases: [(Step, &'static [Role], &[u32]); 9] = [
        (Step::NotClosed, three, &[1]),
        (Step::NoStandIn, three, &[1]),
        (Step::MarkLost, three, &[1]),
        (Step::NoSecondLook, three, &[1]),
        (Step::TornNotTold, two, &[1]),
        (Step::DeadAmongLiving, writers, &[1]),
        (Step::NotRung, writers, &[1]),
        (Step::FlushNotAwaited, puts, &[]),
        (Step::FlushNotAwaited, puts, &[1]),
    ];
    for (step, roles, mortal) in cases {
        let start = Instant::now();
        let right = explorer(roles, mortal).sample(1, RUNS / 20, program(roles, mortal, Step::Right));
        assert!(right.failure.is_none(), "{step:?} done right: {right}");
        let wrong = explorer(roles, mortal).sample(1, RUNS, program(roles, mortal, step));
        let found = wrong.failure.as_ref().unwrap_or_else(|| panic!("{step:?} is not noticed: {wrong}"));
        println!("{step:?}: {} ({:.1} s)", found.what, start.elapsed().as_secs_f64());
    }
}
