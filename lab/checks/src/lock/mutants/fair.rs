//! Mutants specific to the fair lock. Steps are named as in its documentation.

use super::{
    QueuedMutant,
    words::{next_word, word},
};
use rdma_fabric::{Amo, RemoteAddr};
use std::cell::Cell;

const STATE: u64 = 0;
pub(super) const TAIL: u64 = 8;
pub(super) const READER: u64 = 1;
/// The state's bits that count readers.
const READERS: u64 = 0xffff_ffff;
const INSIDE: u64 = 1 << 33;

/// A [`QueuedMutant`] at one rank.
#[derive(Debug)]
pub(super) struct Fair {
    mutant: QueuedMutant,
    /// Whether a reader of this rank is inside.
    reads: Cell<bool>,
}

impl Fair {
    pub(super) fn new(mutant: QueuedMutant) -> Self {
        Fair { mutant, reads: Cell::default() }
    }

    /// Whether a reader of this rank is inside.
    pub(super) fn reads(&self) -> bool {
        self.reads.get()
    }

    pub(super) fn got(&self, addr: RemoteAddr, bits: u64) -> u64 {
        if self.mutant == QueuedMutant::ReadersIgnored && word(addr, STATE) { 0 } else { bits }
    }

    pub(super) fn atomic(&self, addr: RemoteAddr, amo: Amo<u64>) -> Amo<u64> {
        if next_word(addr) && matches!(amo, Amo::CompareSwap { expected: 0, new: INSIDE }) {
            self.reads.set(true);
        }
        if let Some(Move::Uncount { .. }) = at_state(addr, amo) {
            self.reads.set(false);
        }
        // Or(0) reads and leaves the value unchanged.
        match (self.mutant, at_state(addr, amo), amo) {
            (QueuedMutant::NotCounted, Some(Move::Count), _) => Amo::Or(0),
            (QueuedMutant::NotSaid, Some(Move::Uncount { .. }), _) => Amo::Add(READER.wrapping_neg()),
            (QueuedMutant::NotTakenBack, Some(Move::TakeBack), _) => Amo::Or(0),
            (QueuedMutant::StoreForSubtract, Some(Move::Uncount { .. }), _) => Amo::Swap(0),
            (QueuedMutant::NotInside, _, Amo::CompareSwap { expected: 0, new: INSIDE }) if next_word(addr) => {
                Amo::Or(0)
            }
            _ => amo,
        }
    }

    pub(super) fn continues(&self, addr: RemoteAddr, amo: Amo<u64>) -> bool {
        self.mutant == QueuedMutant::LateLook && at_state(addr, amo) == Some(Move::Uncount { writer: false })
    }

    pub(super) fn result(&self, addr: RemoteAddr, amo: Amo<u64>, old: u64) -> u64 {
        match (self.mutant, amo) {
            (QueuedMutant::InsideIgnored, Amo::Swap(_)) if next_word(addr) && old == INSIDE => 0,
            (QueuedMutant::BlockedTakenForInside, Amo::Swap(_)) if next_word(addr) && old == 0 => INSIDE,
            _ => old,
        }
    }
}

/// The step that an addition to the state executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    /// F3, G2.
    Count,
    /// F5.
    Register,
    /// G3, naming the writer that comes next or not.
    Uncount { writer: bool },
    /// F5, G4.
    TakeBack,
}

fn at_state(addr: RemoteAddr, amo: Amo<u64>) -> Option<Move> {
    let Amo::Add(more) = amo else { return None };
    if !word(addr, STATE) {
        return None;
    }
    Some(match more & READERS {
        READER => Move::Count,
        READERS => Move::Uncount { writer: more != READER.wrapping_neg() },
        _ if more < 1 << 63 => Move::Register,
        _ => Move::TakeBack,
    })
}

/// Returns the state as a leaving reader with [`QueuedMutant::LateLook`] sees it: as if a waiting
/// writer did not wait for other readers.
pub(super) fn after(old: u64, found: u64) -> u64 {
    if found & READERS == 0 { old } else { READER | found & !READERS }
}
