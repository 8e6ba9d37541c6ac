//! The lock that survives deaths, with one mutated step of its recovery. Each mutant must be
//! detected.
//!
//! Words are recognised by their addresses: the lock is created for one to eight deaths.

use super::{
    mutants::{in_lock, word},
    program::Role::{self, *},
    recoverable::{explorer, once},
};
use crate::exploration::{Expected, Exploration, Run};
use explore::{
    Fabric, Probe,
    mutant::{Mutant, mutated},
};
use rdma_fabric::{Amo, Rank, RemoteAddr};
use std::cell::Cell;

const AGREEMENT: u64 = 0;
const DOORBELL: u64 = 16;
const DEAD: u64 = 64;
/// The offset of the words of epochs, and the size of each in bytes.
const EPOCHS: u64 = 128;
const EPOCH: u64 = 192;
/// Offsets in the words of an epoch.
const COUNT: u64 = 0;
const CLAIM: u64 = 136;

const ACTIVE: u64 = 2;
const READER: u64 = 4;
const CLOSED: u64 = 1 << 31;
/// Flags of a claim.
const OVER: u64 = 1;
const STAND_IN: u64 = 4;
/// A flag of the agreement: a rank opens an epoch.
const OPENING: u64 = 1 << 32;
/// A number that is not a rank of these jobs.
const NOBODY: u64 = 77;

/// An atomic that only reads.
const NOTHING: Amo<u64> = Amo::Or(0);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecoveryMutant {
    /// No mutant: the wrapper itself must have no effect.
    Nothing,
    /// The old epoch stays open.
    NotClosed,
    /// A reader that lives on in the old epoch is not counted in the next.
    NoStandIn,
    /// The rank is not notified of its stand-in.
    MarkLost,
    /// The rank that opens an epoch does not check again whether the rank that it has marked has
    /// already left.
    NoSecondLook,
    /// Torn data of a dead writer is not reported.
    TornNotTold,
    /// The dead ranks are not removed from those on which survivors' waits depend.
    DeadAmongLiving,
    /// No rank is notified that the new epoch is open.
    NotRung,
    /// A reader's release begins its flush but does not await it.
    FlushNotAwaited,
}

#[derive(Debug)]
struct MutatedRecovery {
    mutant: RecoveryMutant,
    /// Whether this rank opens an epoch.
    opens: Cell<bool>,
    /// Whether it only reads.
    reads: bool,
}

/// Returns whether `addr` is the word at `offset` among the words of its epoch.
fn in_epoch(addr: RemoteAddr, offset: u64) -> bool {
    in_lock(addr) && addr.offset >= EPOCHS && (addr.offset - EPOCHS) % EPOCH == offset
}

impl Mutant for MutatedRecovery {
    fn awaits_flush(&self, target: Option<Rank>) -> bool {
        self.mutant != RecoveryMutant::FlushNotAwaited || !self.reads || target.is_some()
    }

    fn atomic(&self, addr: RemoteAddr, amo: Amo<u64>) -> Amo<u64> {
        match (self.mutant, amo) {
            (RecoveryMutant::NotClosed, Amo::Or(CLOSED)) if in_epoch(addr, COUNT) => NOTHING,
            (RecoveryMutant::NoStandIn, Amo::Add(READER)) if in_epoch(addr, COUNT) && self.opens.get() => NOTHING,
            (RecoveryMutant::MarkLost, Amo::CompareSwap { new, .. })
                if in_epoch(addr, CLAIM) && new & (STAND_IN | OVER) == STAND_IN =>
            {
                NOTHING
            }
            (RecoveryMutant::NoSecondLook, Amo::CompareSwap { expected, new })
                if in_epoch(addr, CLAIM) && new == expected | OVER =>
            {
                NOTHING
            }
            (RecoveryMutant::NotRung, Amo::Swap(_)) if word(addr, DOORBELL) => NOTHING,
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
        match (self.mutant, amo) {
            (RecoveryMutant::MarkLost, Amo::CompareSwap { expected, new })
                if in_epoch(addr, CLAIM) && new & (STAND_IN | OVER) == STAND_IN =>
            {
                expected
            }
            (RecoveryMutant::NoSecondLook, Amo::CompareSwap { expected, new })
                if in_epoch(addr, CLAIM) && new == expected | OVER =>
            {
                !expected
            }
            (RecoveryMutant::TornNotTold, Amo::Or(CLOSED)) if in_epoch(addr, COUNT) => old & !ACTIVE,
            _ => old,
        }
    }

    fn got(&self, addr: RemoteAddr, bits: u64) -> u64 {
        if self.mutant == RecoveryMutant::DeadAmongLiving && word(addr, DEAD) { NOBODY } else { bits }
    }
}

fn exploration(
    name: String,
    (roles, mortal): (&'static [Role], &'static [u32]),
    mutant: RecoveryMutant,
    expected: Expected,
) -> Exploration {
    let program = move |fabric: Fabric| {
        let (probe, role) = (Probe::of(&fabric), roles[fabric.rank().index()]);
        let (opens, reads) = (Cell::new(false), !role.writes());
        let mutant = mutated(fabric, MutatedRecovery { mutant, opens, reads });
        Box::pin(once(mutant, probe, role, mortal.len())) as Run
    };
    Exploration::new(name, expected, move || explorer(roles, mortal), program)
}

/// Returns the explorations of each mutant and of its job without it.
pub(super) fn explorations() -> Vec<Exploration> {
    const RUNS: u64 = 20_000;
    const TWO: &[Role] = &[Read, Write];
    const THREE: &[Role] = &[Read, Write, Write];
    const WRITERS: &[Role] = &[Write, Write, Write];
    const PUTS: &[Role] = &[ReadAndPut, WriteAndLook, WriteAndLook];
    const CASES: [(RecoveryMutant, &[Role], &[u32]); 9] = [
        (RecoveryMutant::NotClosed, THREE, &[1]),
        (RecoveryMutant::NoStandIn, THREE, &[1]),
        (RecoveryMutant::MarkLost, THREE, &[1]),
        (RecoveryMutant::NoSecondLook, THREE, &[1]),
        (RecoveryMutant::TornNotTold, TWO, &[1]),
        (RecoveryMutant::DeadAmongLiving, WRITERS, &[1]),
        (RecoveryMutant::NotRung, WRITERS, &[1]),
        (RecoveryMutant::FlushNotAwaited, PUTS, &[]),
        (RecoveryMutant::FlushNotAwaited, PUTS, &[1]),
    ];
    let pair = |(mutant, roles, mortal): (RecoveryMutant, &'static [Role], &'static [u32])| {
        let name = format!("{mutant:?} ({roles:?}, mortal {mortal:?})");
        let right = Expected::Sampled { runs: RUNS / 20 };
        [
            exploration(format!("{name} done right"), (roles, mortal), RecoveryMutant::Nothing, right),
            exploration(name, (roles, mortal), mutant, Expected::ViolatedAtRandom { runs: RUNS }),
        ]
    };
    CASES.into_iter().flat_map(pair).collect()
}
