//! Mutated steps, by a fabric that alters their operations.

mod seen;

use super::job::content;
use explore::mutant::Mutant;
use rdma_fabric::{Rank, RemoteAddr};
use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
};

/// A mutated step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FmplMutant {
    /// No rank flushes: a doorbell may arrive before the offer.
    FlushesNot,
    /// Rank 0 does not flush: a flag may arrive before the body.
    SenderFlushesNot,
    /// Rank 1 does not flush: a header may arrive after the next one, and so may the number of
    /// messages taken, or wanted.
    ReceiverFlushesNot,
    /// Rank 0 offers a message before it is in the spool.
    OfferedFirst,
    /// Rank 0 offers a message in the place of the one before the last, which is still offered.
    OfferedOver,
    /// Rank 0 does not announce a queued message, as if this could wait until its next call.
    QueuedInSilence,
    /// Rank 0 announces a queued message before the node is written.
    QueuedFirst,
    /// Rank 0 puts a message that it offers into the receive buffer as well.
    SpooledAndPut,
    /// Rank 0 puts all parts of a message into one buffer of the window.
    OneBuffer,
    /// Rank 1 does not check the number of a flag, so it takes an offer twice.
    TakenTwice,
    /// The receiver does not check the numbers of a message's words in its offer.
    TornOffer,
    /// Rank 0 does not wait for the arrival of its children in the second barrier.
    ReleasedEarly,
    /// Rank 1 takes the release of a barrier for that of the next one.
    ReleasedTwice,
    /// The multicast or the put that releases a barrier does not reach rank 1.
    NotReleased,
    /// The leader of the second box does not wait until member 0 releases it.
    PassedEarly,
    /// Rank 0 uses a header of any index although it has offered a message that rank 1 had not seen.
    VoidHeaderUsed,
    /// Rank 1 takes an offer for one that rank 0 made before it used the header of any index, so it
    /// believes that the header is void.
    OfferBeforeHeader,
    /// Rank 0 prefers a receive of any index to that of the index.
    AnyIndexFirst,
}

/// A network whose multicasts reach this many ranks with consecutive numbers, the first of which is a
/// multiple of it.
#[derive(Debug)]
pub(super) struct BoxesOf(pub(super) usize);

impl Mutant for BoxesOf {
    fn reaches(&self, members: &[Rank]) -> bool {
        members.iter().all(|rank| rank.index() / self.0 == members[0].index() / self.0)
    }
}

/// The mutant that applies a [`FmplMutant`] once the set-up has completed.
#[derive(Debug)]
pub(super) struct Mutated {
    mutant: FmplMutant,
    buffer: Rc<Cell<Option<RemoteAddr>>>,
    rank: Rank,
    /// The location of the flag of the first message that this rank has offered.
    offered: Cell<Option<u64>>,
    /// The location of the number of messages taken, once two messages are offered, and the number
    /// of times it was read.
    taken: Cell<Option<(u64, u32)>>,
    /// Whether the second message has just been offered.
    has_offered: Cell<bool>,
    /// The location of the flag of the first message offered to this rank.
    flag: Cell<Option<u64>>,
    /// The location of the headers of parts, and the destination of the part in the first one.
    header: Cell<Option<(u64, Option<u64>)>>,
    /// The location of the header of any index at this rank.
    slot: Cell<Option<u64>>,
    /// The words seen.
    seen: RefCell<HashMap<u64, u64>>,
}

const SENDER: Rank = Rank::new(0);
const RECEIVER: Rank = Rank::new(1);
/// Words that concern message `n` have `n + 1` in their upper 16 bits.
const NUMBER: u32 = 48;
/// The position of a first word's kind, and the kinds of an offer, the second one with the message.
const KIND: u32 = 44;
const OFFERED: u64 = 3;
const INLINE: u64 = 8;
/// The rank that leads the second of two boxes of two members.
const LEADER: Rank = Rank::new(2);
/// The distance of the number of queued messages from the flag of the first message.
const QUEUED: u64 = 24;

/// Returns whether a word offers the first message after the set-up.
fn offers_first(bits: u64) -> bool {
    bits >> NUMBER == 1 && is_offer(bits)
}

fn is_offer(bits: u64) -> bool {
    matches!(bits >> KIND & 15, OFFERED | INLINE)
}

impl Mutated {
    /// Alters the operations of `rank` as soon as there is a `buffer`: the one into which rank 1
    /// receives.
    pub(super) fn new(mutant: FmplMutant, buffer: Rc<Cell<Option<RemoteAddr>>>, rank: Rank) -> Self {
        Mutated {
            mutant,
            buffer,
            rank,
            flag: Cell::new(None),
            offered: Cell::new(None),
            taken: Cell::new(None),
            has_offered: Cell::new(false),
            header: Cell::new(None),
            slot: Cell::new(None),
            seen: RefCell::default(),
        }
    }

    fn is(&self, mutant: FmplMutant, rank: Rank) -> bool {
        self.mutant == mutant && self.buffer.get().is_some() && self.rank == rank
    }
}

impl Mutant for Mutated {
    fn flushes(&self, _: Option<Rank>) -> bool {
        match self.mutant {
            FmplMutant::FlushesNot => self.buffer.get().is_none(),
            _ => !self.is(FmplMutant::SenderFlushesNot, SENDER) && !self.is(FmplMutant::ReceiverFlushesNot, RECEIVER),
        }
    }

    fn late_bytes(&self, _: RemoteAddr) -> bool {
        // The third message is the first one in the queue.
        let queues = self.is(FmplMutant::QueuedFirst, SENDER) && self.taken.get().is_some();
        queues || self.is(FmplMutant::OfferedFirst, SENDER)
    }

    fn sees_put(&self, addr: RemoteAddr, bits: u64) {
        if self.rank == SENDER && self.buffer.get().is_some() && is_offer(bits) {
            match bits >> NUMBER {
                1 => self.offered.set(Some(addr.offset)),
                2 => self.has_offered.set(true),
                _ => {}
            }
        }
    }

    fn put(&self, addr: RemoteAddr, bits: u64) -> Option<u64> {
        // The word that releases a member is the first one of its memory.
        let releases = addr.rank == RECEIVER && addr.offset == 0;
        if releases && self.mutant == FmplMutant::NotReleased && self.buffer.get().is_some() {
            return None;
        }
        let is_queued = self.offered.get().is_some_and(|flag| addr.offset == flag + QUEUED);
        (!is_queued || !self.is(FmplMutant::QueuedInSilence, SENDER)).then_some(bits)
    }

    fn puts_before(&self, _: RemoteAddr, bits: u64) -> Option<(RemoteAddr, u64)> {
        let both = self.is(FmplMutant::SpooledAndPut, SENDER) && offers_first(bits);
        Some((self.buffer.get().filter(|_| both)?, content(0, 0)))
    }

    fn multicasts_to(&self, to: RemoteAddr) -> bool {
        self.mutant != FmplMutant::NotReleased || self.buffer.get().is_none() || to.rank != RECEIVER
    }

    fn seen(&self, addr: RemoteAddr, bits: u64) -> u64 {
        if self.mutant == FmplMutant::ReleasedEarly && self.rank == SENDER
            || self.mutant == FmplMutant::PassedEarly && self.rank == LEADER
        {
            return self.arrived_early(addr, bits);
        }
        // The word that releases a member is the first one of its memory, and is a number of barriers.
        if self.is(FmplMutant::ReleasedTwice, RECEIVER) && addr.offset == 0 && bits <= 1 {
            return 2;
        }
        let is_about_any = self.is(FmplMutant::VoidHeaderUsed, SENDER)
            || self.is(FmplMutant::AnyIndexFirst, SENDER)
            || self.is(FmplMutant::OfferBeforeHeader, RECEIVER);
        if is_about_any {
            return self.of_any_index(addr, bits);
        }
        if self.mutant == FmplMutant::TornOffer && self.buffer.get().is_some() {
            return self.torn_offer(addr, bits);
        }
        if self.is(FmplMutant::OneBuffer, SENDER) {
            return self.first_buffer(addr, bits);
        }
        if self.is(FmplMutant::OfferedOver, SENDER) || self.is(FmplMutant::QueuedFirst, SENDER) {
            return self.taken_early(addr, bits);
        }
        if !self.is(FmplMutant::TakenTwice, RECEIVER) {
            return bits;
        }
        self.taken_twice(addr, bits)
    }
}
