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
    /// Whether this rank has waited for a word.
    waited: Cell<bool>,
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
/// More messages than any job has, as the number of those taken.
const MANY: u64 = 1000 << 20;

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
            waited: Cell::new(false),
            header: Cell::new(None),
            seen: RefCell::default(),
        }
    }

    fn is(&self, mistake: Mistake, rank: Rank) -> bool {
        self.mistake == mistake && self.buffer.get().is_some() && self.rank == rank
    }
}

impl Spoiled {
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
        self.is(Mistake::OfferedFirst, SENDER)
    }

    fn waits(&self, _: RemoteAddr) -> bool {
        // Its first wait is for the place of the third message.
        !self.is(Mistake::OfferedOver, SENDER) || self.waited.replace(true)
    }

    fn taken_for(&self, _: RemoteAddr, _: u64) -> u64 {
        MANY
    }

    fn puts_before(&self, _: RemoteAddr, bits: u64) -> Option<(RemoteAddr, u64)> {
        let both = self.is(Mistake::SpooledAndPut, SENDER) && offers_first(bits);
        Some((self.buffer.get().filter(|_| both)?, content(0, 0)))
    }

    fn seen(&self, addr: RemoteAddr, bits: u64) -> u64 {
        if self.is(Mistake::OneBuffer, SENDER) {
            return self.first_buffer(addr, bits);
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
