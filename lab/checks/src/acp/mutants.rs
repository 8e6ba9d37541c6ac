//! Mutated steps, by a fabric that alters their operations.

use explore::mutant::Mutant;
use rdma_fabric::{Amo, Rank, RemoteAddr};
use std::{cell::Cell, rc::Rc};

/// A mutated step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AcpMutant {
    /// An operation counts as complete before its effect is visible, so that neither the order
    /// across pairs nor that within a pair is kept; and a request overtakes its words.
    NotFlushed,
    /// The same at rank 0, but only for its puts at rank 1.
    CopyNotFlushed,
    /// A server's reply overtakes its value.
    ValueNotFlushed,
    /// A server replies before it executes a request.
    RepliesFirst,
    /// A region's successor is used in place of the region.
    OldMapping,
    /// The directory still returns the length of a region that has been dropped.
    NotWithdrawn,
}

/// The mutant that applies an [`AcpMutant`] at one rank once its set-up has completed.
#[derive(Debug)]
pub(super) struct Mutated {
    mutant: AcpMutant,
    begun: Rc<Cell<bool>>,
    /// Whether rank 0 has a helper that issues requests.
    helped: bool,
    /// The location of the word that announces requests, once it has been taken.
    area: Cell<Option<u64>>,
    /// The first value that was got from a region.
    first: Cell<Option<u64>>,
}

/// The offsets of the first places for replies to rank 0 and to its helper in the area for
/// requests.
const REPLY: [u64; 2] = [64, 64 + 16 * 16];
/// The offset of the slots there, and the size of one.
const SLOTS: u64 = 64 + 2 * 16 * 16;
const SLOT: u64 = 64;
/// The reply to the first request, when it has been executed.
const DONE: u64 = 1 << 48;
/// The first index of local regions.
const LOCAL: u32 = 1 << 16;

impl Mutated {
    pub(super) fn new(mutant: AcpMutant, begun: Rc<Cell<bool>>, helped: bool) -> Self {
        Mutated { mutant, begun, helped, area: Cell::new(None), first: Cell::new(None) }
    }

    fn is(&self, mutant: AcpMutant) -> bool {
        self.mutant == mutant && self.begun.get()
    }
}

impl Mutant for Mutated {
    fn flushes(&self, target: Option<Rank>) -> bool {
        match self.mutant {
            _ if !self.begun.get() => true,
            AcpMutant::NotFlushed => false,
            AcpMutant::CopyNotFlushed => target != Some(Rank::new(1)),
            AcpMutant::ValueNotFlushed => target != Some(Rank::new(0)),
            _ => true,
        }
    }

    fn puts(&self, addr: RemoteAddr, amo: Amo<u64>) -> Option<(RemoteAddr, u64)> {
        // The word comes first, then the slot.
        match (amo, self.area.get()) {
            _ if !self.is(AcpMutant::RepliesFirst) => None,
            (Amo::And(_), _) => {
                self.area.set(Some(addr.offset));
                None
            }
            (Amo::CompareSwap { expected, new: 0 }, area) => {
                // Without the word, the slot is the first one that its owner tries.
                let area = area.unwrap_or(addr.offset - SLOTS - SLOT * expected);
                Some((RemoteAddr { rank: Rank::new(0), offset: area + REPLY[usize::from(self.helped)], ..addr }, DONE))
            }
            _ => None,
        }
    }

    fn got(&self, addr: RemoteAddr, bits: u64) -> u64 {
        if self.mutant != AcpMutant::OldMapping || addr.region.index < LOCAL {
            return bits;
        }
        if self.first.get().is_none() {
            self.first.set(Some(bits));
        }
        self.first.get().unwrap_or(bits)
    }

    fn late(&self, _: RemoteAddr, bits: u64) -> bool {
        self.is(AcpMutant::NotWithdrawn) && bits == 0
    }
}
