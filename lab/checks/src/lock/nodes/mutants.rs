//! Wrong steps of locks that know nodes.

use super::super::mutants::{wake_word, word};
use super::{LINE, QUEUE};
use explore::mutant::Mutant;
use rdma_fabric::{Amo, Rank, RemoteAddr};
use std::cell::Cell;

/// A mutated step at the level of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodesMutant {
    /// A rank that leaves releases the lock above, whether or not others are inside.
    OthersIgnored,
    /// N6 treats its compare-and-swap as successful.
    ComparisonIgnored,
    /// A release does not flush the data.
    DataNotFlushed,
    /// A reader's release begins its flush but does not await it.
    FlushNotAwaited,
    /// N3 comes before the lock above is held.
    HeldTooEarly,
    /// A sweep finds an empty stack.
    WakeDropped,
    /// N9 sees no flag.
    NoSecondLook,
    /// N4 sets no flag.
    GivenUpSilently,
    /// N13 takes the lock for held.
    OfferTakenForGrant,
    /// N2 always concludes that its rank was the first.
    ClaimedTwice,
    /// A rank that wakes a waiter treats one that gave up as woken, and does not act on its behalf.
    AbandonedTakenForWoken,
    /// The remaining work of a dropped future is not executed.
    Forgotten,
}

/// [`NodesMutant`] at one rank of a lock of [`LockKind::ByNode`].
#[derive(Debug)]
pub(super) struct MutatedNodes {
    pub(super) mutant: NodesMutant,
    /// The first rank of this rank's node.
    pub(super) first: Rank,
    /// Whether N3 was done too early.
    pub(super) opened: Cell<bool>,
    /// Whether the rank only reads.
    pub(super) reads: bool,
}

const NODE: u64 = QUEUE;

const WAITING: u64 = QUEUE + 8;

const ABOVE: u64 = QUEUE + LINE;

const HELD: u64 = 1;

const ORPHAN: u64 = 2;

const READER: u64 = 4;

const GRANTED: u64 = 1;

const OFFERED: u64 = 3;

const LET_GO: Amo<u64> = Amo::CompareSwap { expected: HELD, new: 0 };

impl Mutant for MutatedNodes {
    fn flushes(&self, target: Option<Rank>) -> bool {
        target.is_some() || self.mutant != NodesMutant::DataNotFlushed
    }

    fn awaits_flush(&self, target: Option<Rank>) -> bool {
        self.mutant != NodesMutant::FlushNotAwaited || !self.reads || target.is_some()
    }

    fn detaches(&self) -> bool {
        self.mutant != NodesMutant::Forgotten
    }

    fn got(&self, addr: RemoteAddr, bits: u64) -> u64 {
        if self.mutant == NodesMutant::NoSecondLook && word(addr, NODE) { bits & !(HELD | ORPHAN) } else { bits }
    }

    fn first(&self, addr: RemoteAddr, amo: Amo<u64>) -> Option<(RemoteAddr, Amo<u64>)> {
        let enters = self.mutant == NodesMutant::HeldTooEarly && word(addr, ABOVE) && amo == Amo::Add(READER);
        enters.then(|| {
            self.opened.set(true);
            (RemoteAddr { rank: self.first, offset: NODE, ..addr }, Amo::Or(HELD))
        })
    }

    fn atomic(&self, addr: RemoteAddr, amo: Amo<u64>) -> Amo<u64> {
        match (self.mutant, amo) {
            (NodesMutant::OthersIgnored, LET_GO) if word(addr, NODE) => Amo::And(!HELD),
            // Or(0) reads and leaves the value unchanged.
            (NodesMutant::HeldTooEarly, Amo::Add(HELD)) if word(addr, NODE) && self.opened.get() => Amo::Or(0),
            (NodesMutant::WakeDropped, Amo::Swap(0)) if word(addr, WAITING) => Amo::Or(0),
            (NodesMutant::GivenUpSilently, Amo::Add(less))
                if word(addr, NODE) && less == ORPHAN.wrapping_sub(READER) =>
            {
                Amo::Add(READER.wrapping_neg())
            }
            (NodesMutant::OfferTakenForGrant, Amo::CompareSwap { expected, new })
                if wake_word(addr) && new & 0xff == OFFERED =>
            {
                Amo::CompareSwap { expected, new: new - OFFERED + GRANTED }
            }
            _ => amo,
        }
    }

    fn result(&self, addr: RemoteAddr, amo: Amo<u64>, old: u64) -> u64 {
        match (self.mutant, amo) {
            (NodesMutant::OthersIgnored, Amo::Add(less)) if word(addr, NODE) && less == READER.wrapping_neg() => {
                READER + HELD
            }
            (NodesMutant::OthersIgnored | NodesMutant::ComparisonIgnored, LET_GO) if word(addr, NODE) => HELD,
            (NodesMutant::WakeDropped, Amo::Swap(0)) if word(addr, WAITING) => 0,
            (NodesMutant::ClaimedTwice, Amo::And(_)) if word(addr, NODE) => old | ORPHAN,
            (NodesMutant::AbandonedTakenForWoken, Amo::CompareSwap { expected, new })
                if wake_word(addr) && matches!(new & 0xff, GRANTED | OFFERED) =>
            {
                expected
            }
            _ => old,
        }
    }
}
