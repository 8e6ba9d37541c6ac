//! Wrong steps of locks with classes of access.

use super::super::mutants::{in_lock, word};
use explore::mutant::Mutant;
use rdma_fabric::{Amo, Rank, RemoteAddr};

/// A mutated step of the two classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClassesMutant {
    /// A rank that arrives sees no rank of the other class, and that it is its own class's turn.
    OthersIgnored,
    /// C3 adds nothing.
    BatchNotClosed,
    /// C5 sees no epoch begin.
    NoSecondLook,
    /// A stack that is taken appears empty.
    NoSweep,
    /// Every rank that leaves considers itself the last one.
    NotTheLast,
    /// A release does not flush the data.
    NotFlushed,
    /// The release of a non-exclusive holder begins its flush but does not await it.
    FlushNotAwaited,
    /// A rank that wakes a waiter treats one that gave up as woken, and does not act on its behalf.
    AbandonedTakenForWoken,
    /// The remaining work of a dropped future is not executed.
    Forgotten,
}

#[derive(Debug)]
pub(super) struct MutatedClasses {
    pub(super) mutant: ClassesMutant,
    /// Whether the rank is a non-exclusive holder.
    pub(super) shares: bool,
}

const EPOCH: u64 = 1 << 60;

const TURN: u64 = EPOCH;

const ONE: [u64; 2] = [1, 1 << 30];

impl Mutant for MutatedClasses {
    fn flushes(&self, target: Option<Rank>) -> bool {
        target.is_some() || self.mutant != ClassesMutant::NotFlushed
    }

    fn awaits_flush(&self, target: Option<Rank>) -> bool {
        self.mutant != ClassesMutant::FlushNotAwaited || !self.shares || target.is_some()
    }

    fn detaches(&self) -> bool {
        self.mutant != ClassesMutant::Forgotten
    }

    fn got(&self, addr: RemoteAddr, bits: u64) -> u64 {
        let blind = self.mutant == ClassesMutant::NoSecondLook && word(addr, 0);
        if blind { bits.wrapping_add(5 * EPOCH) } else { bits }
    }

    fn atomic(&self, addr: RemoteAddr, amo: Amo<u64>) -> Amo<u64> {
        match (self.mutant, amo) {
            // Or(0) reads and leaves the value unchanged.
            (ClassesMutant::BatchNotClosed, Amo::Add(n)) if word(addr, 8) && n < 1 << 63 => Amo::Or(0),
            (ClassesMutant::NoSweep, Amo::Swap(0)) if in_lock(addr) && (16..48).contains(&addr.offset) => Amo::Or(0),
            _ => amo,
        }
    }

    fn result(&self, addr: RemoteAddr, amo: Amo<u64>, old: u64) -> u64 {
        match (self.mutant, amo) {
            (ClassesMutant::OthersIgnored, Amo::Add(one)) if word(addr, 0) && one == ONE[0] => 0,
            (ClassesMutant::OthersIgnored, Amo::Add(one)) if word(addr, 0) && one == ONE[1] => TURN,
            (ClassesMutant::NoSweep, Amo::Swap(0)) if in_lock(addr) && (16..48).contains(&addr.offset) => 0,
            (ClassesMutant::NotTheLast, Amo::Add(less)) if word(addr, 8) && less == u64::MAX => 1,
            (ClassesMutant::AbandonedTakenForWoken, Amo::CompareSwap { expected, new })
                if in_lock(addr) && (80..128).contains(&addr.offset) && new & 0xff == 1 =>
            {
                expected
            }
            _ => old,
        }
    }
}
