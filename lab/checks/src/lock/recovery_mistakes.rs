//! The lock that survives deaths, with one mutated step of its recovery. Each mutation must be
//! detected.
//!
//! Words are recognised by their addresses: the lock is created for one to eight deaths.

use super::{
    mutation::{in_lock, word},
    program::Role::{self, *},
    recoverable::{explorer, once},
};
use crate::exploration::{Expected, Exploration, Run};
use explore::{
    Fabric, Probe,
    mutant::{Mutation, mutant},
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
enum RecoveryMistake {
    /// No mutation: the wrapper itself must have no effect.
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
struct RecoveryMutation {
    mistake: RecoveryMistake,
    /// Whether this rank opens an epoch.
    opens: Cell<bool>,
    /// Whether it only reads.
    reads: bool,
}

/// Returns whether `addr` is the word at `offset` among the words of its epoch.
fn in_epoch(addr: RemoteAddr, offset: u64) -> bool {
    in_lock(addr) && addr.offset >= EPOCHS && (addr.offset - EPOCHS) % EPOCH == offset
}

impl Mutation for RecoveryMutation {
    fn awaits_flush(&self, target: Option<Rank>) -> bool {
        self.mistake != RecoveryMistake::FlushNotAwaited || !self.reads || target.is_some()
    }

    fn atomic(&self, addr: RemoteAddr, amo: Amo<u64>) -> Amo<u64> {
        match (self.mistake, amo) {
            (RecoveryMistake::NotClosed, Amo::Or(CLOSED)) if in_epoch(addr, COUNT) => NOTHING,
            (RecoveryMistake::NoStandIn, Amo::Add(READER)) if in_epoch(addr, COUNT) && self.opens.get() => NOTHING,
            (RecoveryMistake::MarkLost, Amo::CompareSwap { new, .. })
                if in_epoch(addr, CLAIM) && new & (STAND_IN | OVER) == STAND_IN =>
            {
                NOTHING
            }
            (RecoveryMistake::NoSecondLook, Amo::CompareSwap { expected, new })
                if in_epoch(addr, CLAIM) && new == expected | OVER =>
            {
                NOTHING
            }
            (RecoveryMistake::NotRung, Amo::Swap(_)) if word(addr, DOORBELL) => NOTHING,
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
        match (self.mistake, amo) {
            (RecoveryMistake::MarkLost, Amo::CompareSwap { expected, new })
                if in_epoch(addr, CLAIM) && new & (STAND_IN | OVER) == STAND_IN =>
            {
                expected
            }
            (RecoveryMistake::NoSecondLook, Amo::CompareSwap { expected, new })
                if in_epoch(addr, CLAIM) && new == expected | OVER =>
            {
                !expected
            }
            (RecoveryMistake::TornNotTold, Amo::Or(CLOSED)) if in_epoch(addr, COUNT) => old & !ACTIVE,
            _ => old,
        }
    }

    fn got(&self, addr: RemoteAddr, bits: u64) -> u64 {
        if self.mistake == RecoveryMistake::DeadAmongLiving && word(addr, DEAD) { NOBODY } else { bits }
    }
}

fn exploration(
    name: String,
    (roles, mortal): (&'static [Role], &'static [u32]),
    mistake: RecoveryMistake,
    expected: Expected,
) -> Exploration {
    let program = move |fabric: Fabric| {
        let (probe, role) = (Probe::of(&fabric), roles[fabric.rank().index()]);
        let (opens, reads) = (Cell::new(false), !role.writes());
        let mutant = mutant(fabric, RecoveryMutation { mistake, opens, reads });
        Box::pin(once(mutant, probe, role, mortal.len())) as Run
    };
    Exploration::new(name, expected, move || explorer(roles, mortal), program)
}

/// Returns the explorations of each mutation and of its job without it.
pub(super) fn explorations() -> Vec<Exploration> {
    const RUNS: u64 = 20_000;
    const TWO: &[Role] = &[Read, Write];
    const THREE: &[Role] = &[Read, Write, Write];
    const WRITERS: &[Role] = &[Write, Write, Write];
    const PUTS: &[Role] = &[ReadAndPut, WriteAndLook, WriteAndLook];
    const CASES: [(RecoveryMistake, &[Role], &[u32]); 9] = [
        (RecoveryMistake::NotClosed, THREE, &[1]),
        (RecoveryMistake::NoStandIn, THREE, &[1]),
        (RecoveryMistake::MarkLost, THREE, &[1]),
        (RecoveryMistake::NoSecondLook, THREE, &[1]),
        (RecoveryMistake::TornNotTold, TWO, &[1]),
        (RecoveryMistake::DeadAmongLiving, WRITERS, &[1]),
        (RecoveryMistake::NotRung, WRITERS, &[1]),
        (RecoveryMistake::FlushNotAwaited, PUTS, &[]),
        (RecoveryMistake::FlushNotAwaited, PUTS, &[1]),
    ];
    let pair = |(mistake, roles, mortal): (RecoveryMistake, &'static [Role], &'static [u32])| {
        let name = format!("{mistake:?} ({roles:?}, mortal {mortal:?})");
        let right = Expected::Sampled { runs: RUNS / 20 };
        [
            exploration(format!("{name} done right"), (roles, mortal), RecoveryMistake::Nothing, right),
            exploration(name, (roles, mortal), mistake, Expected::ViolatedAtRandom { runs: RUNS }),
        ]
    };
    CASES.into_iter().flat_map(pair).collect()
}
