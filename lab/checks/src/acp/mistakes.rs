//! Mutated steps, by a fabric that alters their operations.

use explore::mutant::Mutation;
use rdma_fabric::{Amo, Rank, RemoteAddr};
use std::{cell::Cell, rc::Rc};

/// A mutated step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mistake {
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

/// The mutation that applies a [`Mistake`] at one rank once its set-up has completed.
#[derive(Debug)]
pub(super) struct Spoiled {
    mistake: Mistake,
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
/// The reply to the first request, when it has been executed.
const DONE: u64 = 1 << 48;
/// The first index of local regions.
const LOCAL: u32 = 1 << 16;

impl Spoiled {
    pub(super) fn new(mistake: Mistake, begun: Rc<Cell<bool>>, helped: bool) -> Self {
        Spoiled { mistake, begun, helped, area: Cell::new(None), first: Cell::new(None) }
    }

    fn is(&self, mistake: Mistake) -> bool {
        self.mistake == mistake && self.begun.get()
    }
}

impl Mutation for Spoiled {
    fn flushes(&self, target: Option<Rank>) -> bool {
        match self.mistake {
            _ if !self.begun.get() => true,
            Mistake::NotFlushed => false,
            Mistake::CopyNotFlushed => target != Some(Rank::new(1)),
            Mistake::ValueNotFlushed => target != Some(Rank::new(0)),
            _ => true,
        }
    }

    fn puts(&self, addr: RemoteAddr, amo: Amo<u64>) -> Option<(RemoteAddr, u64)> {
        // The word comes first, then the slot.
        match (amo, self.area.get()) {
            _ if !self.is(Mistake::RepliesFirst) => None,
            (Amo::And(_), _) => {
                self.area.set(Some(addr.offset));
                None
            }
            (Amo::CompareSwap { new: 0, .. }, Some(area)) => {
                Some((RemoteAddr { rank: Rank::new(0), offset: area + REPLY[usize::from(self.helped)], ..addr }, DONE))
            }
            _ => None,
        }
    }

    fn got(&self, addr: RemoteAddr, bits: u64) -> u64 {
        if self.mistake != Mistake::OldMapping || addr.region.index < LOCAL {
            return bits;
        }
        if self.first.get().is_none() {
            self.first.set(Some(bits));
        }
        self.first.get().unwrap_or(bits)
    }

    fn late(&self, _: RemoteAddr, bits: u64) -> bool {
        self.is(Mistake::NotWithdrawn) && bits == 0
    }
}
