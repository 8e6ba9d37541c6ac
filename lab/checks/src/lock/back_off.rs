//! The locks that back off, with one word and with two levels, correct and mutated.

use super::{
    mutants::{in_lock, word},
    program::{
        Role::{self, *},
        of_any_lock, part,
    },
};
use crate::exploration::{Expected, Exploration};
use explore::{
    Explorer, Probe,
    mutant::{Mutant, mutated},
};
use rdma_fabric::{Amo, Fabric, Rank, RemoteAddr};
use rma_lock::locks::LockKind;
use std::cell::Cell;

const WRITER: u64 = 1;
const READER: u64 = 2;
/// The offset of the second level's word.
const ALL: u64 = 64;

/// A mutated step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackOffMutant {
    /// A reader that finds a writer stays counted.
    NotUndone,
    /// The release does not flush the data.
    NotFlushed,
    /// A reader's release begins its flush but does not await it.
    FlushNotAwaited,
    /// A writer gets and puts the word instead of using a compare-and-swap.
    TornComparison,
    /// A writer that leaves stores 0 instead of subtracting.
    Stored,
    /// The remaining work of a dropped future is not executed.
    Forgotten,
    /// An exclusive access does not check whether any rank holds all.
    HoldersOfAllIgnored,
    /// An exclusive access that finds its rank taken stays counted at the home.
    HomeNotUndone,
}

/// Inserts a [`BackOffMutant`] between one rank's fabric and its lock.
pub fn back_off_mutant(fabric: Fabric, mutant: BackOffMutant, reads: bool) -> Fabric {
    mutated(fabric, MutatedBackOff { mutant, refused: Cell::new(false), reads })
}

/// A [`BackOffMutant`] at one rank.
#[derive(Debug)]
struct MutatedBackOff {
    mutant: BackOffMutant,
    /// Whether the next subtraction undoes a refused addition.
    refused: Cell<bool>,
    /// Whether the rank only reads.
    reads: bool,
}

impl Mutant for MutatedBackOff {
    fn flushes(&self, _: Option<Rank>) -> bool {
        self.mutant != BackOffMutant::NotFlushed
    }

    fn awaits_flush(&self, _: Option<Rank>) -> bool {
        self.mutant != BackOffMutant::FlushNotAwaited || !self.reads
    }

    fn detaches(&self) -> bool {
        self.mutant != BackOffMutant::Forgotten
    }

    fn tears(&self, addr: RemoteAddr, _: Amo<u64>) -> bool {
        self.mutant == BackOffMutant::TornComparison && word(addr, 0)
    }

    fn atomic(&self, addr: RemoteAddr, amo: Amo<u64>) -> Amo<u64> {
        let Amo::Add(less) = amo else { return amo };
        let less = less.wrapping_neg();
        match self.mutant {
            // Or(0) reads and leaves the value unchanged.
            BackOffMutant::NotUndone if word(addr, 0) && less == READER && self.refused.take() => Amo::Or(0),
            BackOffMutant::HomeNotUndone if word(addr, ALL) && less == 1 && self.refused.take() => Amo::Or(0),
            BackOffMutant::Stored if word(addr, 0) && less == WRITER => Amo::Swap(0),
            _ => amo,
        }
    }

    fn result(&self, addr: RemoteAddr, amo: Amo<u64>, old: u64) -> u64 {
        match (self.mutant, amo) {
            (BackOffMutant::NotUndone, Amo::Add(READER)) if word(addr, 0) => self.refused.set(old & WRITER != 0),
            (BackOffMutant::HomeNotUndone, Amo::CompareSwap { .. }) if word(addr, 0) => self.refused.set(old != 0),
            (BackOffMutant::HoldersOfAllIgnored, Amo::Add(1)) if word(addr, ALL) => return old & u64::from(u32::MAX),
            _ => {}
        }
        old
    }
}

/// Returns an explorer with the invariants of any lock, and the condition that the words are 0 at
/// the end.
fn explorer(roles: &[Role]) -> Explorer<'static> {
    of_any_lock(roles)
        .name(0, 0, "word")
        .name(0, ALL, "all")
        .at_end("idle", |view| view.words().all(|(addr, value)| !in_lock(addr) || value == 0))
}

/// The jobs of both locks: roles, rounds, and the minimum number of states, about half of the
/// number recorded with one word.
const CASES: &[(&[Role], usize, u64)] = &[
    (&[Read, Write], 1, 90),
    (&[Read, Write], 2, 2_300),
    (&[Write, Write], 2, 1_400),
    (&[Read, Read, Write], 1, 11_000),
    (&[Read, Write, Write], 1, 3_600),
    (&[ReadAndPut, WriteAndLook], 2, 4_200),
    (&[TryRead, Write], 2, 500),
    (&[TryWrite, Read], 2, 700),
    (&[ReadBefore, Write], 2, 690),
    (&[WriteBefore, Read], 2, 800),
    (&[ReadDropped, Write], 1, 1_000),
    (&[WriteDropped, Read], 1, 590),
    (&[WriteDropped, Write], 1, 590),
    (&[ReadReleaseDropped, Write], 1, 440),
    (&[WriteReleaseDropped, Read], 1, 600),
];

/// More ranks and rounds than can be exhausted.
const AT_RANDOM: &[(&[Role], usize)] = &[
    (&[Read, Read, Write, Write], 3),
    (&[ReadBefore, TryRead, WriteBefore, TryWrite, Read, Write], 3),
    (&[ReadDropped, ReadReleaseDropped, WriteReleaseDropped, WriteDropped, Write], 3),
    (&[Write, Write, Write, Write], 3),
];

const ONE_WORD: &[(BackOffMutant, &[Role], usize)] = &[
    (BackOffMutant::NotUndone, &[Read, Write], 1),
    (BackOffMutant::NotFlushed, &[Read, Write], 1),
    (BackOffMutant::FlushNotAwaited, &[ReadAndPut, WriteAndLook], 1),
    (BackOffMutant::TornComparison, &[Write, Write], 1),
    (BackOffMutant::TornComparison, &[Read, Write], 1),
    (BackOffMutant::Stored, &[Read, Write], 1),
    (BackOffMutant::Forgotten, &[ReadDropped, Write], 1),
    (BackOffMutant::Forgotten, &[WriteReleaseDropped, Read], 1),
];

const TWO_LEVELS: &[(BackOffMutant, &[Role], usize)] = &[
    (BackOffMutant::HoldersOfAllIgnored, &[Read, Write], 1),
    (BackOffMutant::HomeNotUndone, &[Write, Write], 1),
    (BackOffMutant::NotFlushed, &[Read, Write], 1),
    (BackOffMutant::FlushNotAwaited, &[ReadAndPut, WriteAndLook], 1),
    (BackOffMutant::Forgotten, &[WriteDropped, Write], 1),
];

fn exploration(
    lock: LockKind,
    (roles, rounds): (&'static [Role], usize),
    mutant: Option<BackOffMutant>,
    expected: Expected,
) -> Exploration {
    let what = mutant.map_or(String::new(), |mutant| format!("{mutant:?}, "));
    let program = move |fabric: Fabric| {
        let (probe, role) = (Probe::of(&fabric), roles[fabric.rank().index()]);
        let fabric = match mutant {
            None => fabric,
            Some(mutant) => back_off_mutant(fabric, mutant, !role.writes()),
        };
        part(fabric, lock, probe, role, rounds)
    };
    Exploration::new(
        format!("{}: {what}{roles:?} x{rounds}", lock.type_name()),
        expected,
        move || explorer(roles),
        program,
    )
}

/// Returns the explorations of the locks that back off.
pub(super) fn explorations() -> Vec<Exploration> {
    let mut all = Vec::new();
    for (lock, mutants) in [(LockKind::BackOff, ONE_WORD), (LockKind::TwoLevels, TWO_LEVELS)] {
        for &(roles, rounds, at_least) in CASES {
            all.push(exploration(lock, (roles, rounds), None, Expected::Exhausted { at_least }));
        }
        for &(mutant, roles, rounds) in mutants {
            let caught = Expected::Violated { saying: "", within: 500_000 };
            all.push(exploration(lock, (roles, rounds), Some(mutant), caught));
        }
        for &job in AT_RANDOM {
            all.push(exploration(lock, job, None, Expected::Sampled { runs: 2_000 }));
        }
    }
    all
}
