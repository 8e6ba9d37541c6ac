//! Steps done wrong, by a fabric that spoils their operations.

use super::job::content;
use explore::mutant::Mutation;
use rdma_fabric::{Rank, RemoteAddr};
use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    ops::Range,
    rc::Rc,
};

/// A step done wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mistake {
    /// Nobody flushes: a bell may come before the offer.
    FlushesNot,
    /// Rank 0 does not flush: a flag may come before the body.
    SenderFlushesNot,
    /// Rank 1 does not flush: a header may come after the next one, so may the number of messages
    /// taken, or wanted.
    ReceiverFlushesNot,
    /// Rank 0 offers a message before it is in the spool.
    OfferedFirst,
    /// Rank 0 offers a message where the one before the last is offered still.
    OfferedOver,
    /// Rank 0 does not announce what it queues, as if that had time until its next call.
    QueuedInSilence,
    /// Rank 0 announces what it queues before the node is written.
    QueuedFirst,
    /// What rank 0 offers it puts into the receive buffer as well.
    SpooledAndPut,
    /// Rank 0 puts all parts of a message into one buffer of the window.
    OneBuffer,
    /// Rank 1 does not look at the number of a flag, so it takes an offer twice.
    TakenTwice,
}

/// The mutation that makes a [`Mistake`] once the set-up is over.
#[derive(Debug)]
pub(super) struct Spoiled {
    mistake: Mistake,
    buffer: Rc<Cell<Option<RemoteAddr>>>,
    rank: Rank,
    /// Where the flag of the first message is that this rank has offered.
    offered: Cell<Option<u64>>,
    /// Where the number of messages taken is, once two messages are offered, and how often it was read.
    taken: Cell<Option<(u64, u32)>>,
    /// Whether the second message was offered just now.
    has_offered: Cell<bool>,
    /// Where the flag of the first message offered to this rank is.
    flag: Cell<Option<u64>>,
    /// Where the headers of parts come, and where the first one has the part put.
    header: Cell<Option<(u64, Option<u64>)>>,
    /// The words seen.
    seen: RefCell<HashMap<u64, u64>>,
}

const SENDER: Rank = Rank::new(0);
const RECEIVER: Rank = Rank::new(1);
/// What is about message `n` has `n + 1` in its upper 16 bits.
const NUMBER: u32 = 48;
const NEXT: u64 = 1 << NUMBER;
/// Where a first word's kind is, and that of an offer.
const KIND: u32 = 44;
const OFFERED: u64 = 3;
/// The kind of a part's header.
const WINDOW: u64 = 7;
/// What is below a word's number.
const LOW: u64 = NEXT - 1;
/// The flags of two messages follow each other, 8 bytes apart. The rest of the first offer comes 32
/// bytes behind its flag and has 24 bytes, then comes that of the second one.
const FLAG: u64 = 8;
const REST: u64 = 24;
const SECOND_REST: Range<u64> = 56..80;
/// How far behind the flag of the first message the number of those queued is, and how far behind the
/// header that of those taken.
const QUEUED: u64 = 24;
const TAKEN: u64 = 48;
/// The number of one message taken.
const ONE: u64 = 1 << 20;
/// For its third message rank 0 reads the number of those taken for each of two in the spool, and then to
/// decide where the third one goes.
const DECISION: u32 = 3;

/// Returns whether a word offers the first message after the set-up.
fn offers_first(bits: u64) -> bool {
    bits >> NUMBER == 1 && bits >> KIND & 15 == OFFERED
}

impl Spoiled {
    /// Spoils the operations of `rank` from the moment on at which there is a `buffer`: the one into
    /// which rank 1 receives.
    pub(super) fn new(mistake: Mistake, buffer: Rc<Cell<Option<RemoteAddr>>>, rank: Rank) -> Self {
        Spoiled {
            mistake,
            buffer,
            rank,
            flag: Cell::new(None),
            offered: Cell::new(None),
            taken: Cell::new(None),
            has_offered: Cell::new(false),
            header: Cell::new(None),
            seen: RefCell::default(),
        }
    }

    fn is(&self, mistake: Mistake, rank: Rank) -> bool {
        self.mistake == mistake && self.buffer.get().is_some() && self.rank == rank
    }
}

impl Spoiled {
    /// Takes it for sure that the first message was taken when the third one is offered.
    fn taken_early(&self, addr: RemoteAddr, bits: u64) -> u64 {
        if self.has_offered.take() {
            // What is read first for the third message is its header.
            self.taken.set(Some((addr.offset + TAKEN, 0)));
        }
        match self.taken.get() {
            Some((taken, looks)) if taken == addr.offset => {
                self.taken.set(Some((taken, looks + 1)));
                let decides = looks + 1 == DECISION && self.mistake == Mistake::OfferedOver;
                if decides { bits.max(ONE) } else { bits }
            }
            _ => bits,
        }
    }

    /// Takes the word that says where a part goes for that of the first part.
    fn first_buffer(&self, addr: RemoteAddr, bits: u64) -> u64 {
        match self.header.get() {
            _ if bits >> KIND & 15 == WINDOW => {
                let buffer = self.header.get().and_then(|(_, buffer)| buffer);
                self.header.set(Some((addr.offset, buffer)));
                bits
            }
            Some((header, buffer)) if addr.offset == header + 8 && bits >> NUMBER > 0 => {
                let first = buffer.unwrap_or(bits & LOW);
                self.header.set(Some((header, Some(first))));
                bits & !LOW | first
            }
            _ => bits,
        }
    }
}

impl Mutation for Spoiled {
    fn flushes(&self, _: Option<Rank>) -> bool {
        match self.mistake {
            Mistake::FlushesNot => self.buffer.get().is_none(),
            _ => !self.is(Mistake::SenderFlushesNot, SENDER) && !self.is(Mistake::ReceiverFlushesNot, RECEIVER),
        }
    }

    fn late(&self, _: RemoteAddr, _: u64) -> bool {
        // The third message is the first one in the queue.
        let queues = self.is(Mistake::QueuedFirst, SENDER) && self.taken.get().is_some();
        queues || self.is(Mistake::OfferedFirst, SENDER)
    }

    fn sees_put(&self, addr: RemoteAddr, bits: u64) {
        if self.rank == SENDER && self.buffer.get().is_some() && bits >> KIND & 15 == OFFERED {
            match bits >> NUMBER {
                1 => self.offered.set(Some(addr.offset)),
                2 => self.has_offered.set(true),
                _ => {}
            }
        }
    }

    fn put(&self, addr: RemoteAddr, bits: u64) -> Option<u64> {
        let is_queued = self.offered.get().is_some_and(|flag| addr.offset == flag + QUEUED);
        (!is_queued || !self.is(Mistake::QueuedInSilence, SENDER)).then_some(bits)
    }

    fn puts_before(&self, _: RemoteAddr, bits: u64) -> Option<(RemoteAddr, u64)> {
        let both = self.is(Mistake::SpooledAndPut, SENDER) && offers_first(bits);
        Some((self.buffer.get().filter(|_| both)?, content(0, 0)))
    }

    fn seen(&self, addr: RemoteAddr, bits: u64) -> u64 {
        if self.is(Mistake::OneBuffer, SENDER) {
            return self.first_buffer(addr, bits);
        }
        if self.is(Mistake::OfferedOver, SENDER) || self.is(Mistake::QueuedFirst, SENDER) {
            return self.taken_early(addr, bits);
        }
        if !self.is(Mistake::TakenTwice, RECEIVER) {
            return bits;
        }
        if offers_first(bits) {
            self.flag.set(Some(addr.offset));
        }
        let mut seen = self.seen.borrow_mut();
        seen.insert(addr.offset, bits);
        // What is not about the second message is taken to be, from where the first one's is.
        let behind = match self.flag.get().and_then(|flag| addr.offset.checked_sub(flag)) {
            Some(FLAG) => FLAG,
            Some(behind) if SECOND_REST.contains(&behind) => REST,
            _ => return bits,
        };
        let first = seen.get(&(addr.offset - behind)).filter(|_| bits >> NUMBER != 2);
        first.map_or(bits, |first| first + NEXT)
    }
}
