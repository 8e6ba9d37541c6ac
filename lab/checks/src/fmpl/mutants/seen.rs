//! The words that a mutated rank sees instead of those in its memory.

use super::{FmplMutant, KIND, Mutated, NUMBER, offers_first};
use rdma_fabric::RemoteAddr;
use std::ops::Range;

const NEXT: u64 = 1 << NUMBER;
/// The bits below a word's number.
const LOW: u64 = NEXT - 1;
/// The kind of a header.
const POSTED: u64 = 1;
/// The kind of a barrier's flag.
const ARRIVED: u64 = 2;
/// The kind of a part's header.
const WINDOW: u64 = 7;
/// The slot's header is in the second half of a cache line, unlike that of a channel.
const LINE: u64 = 64;
const SLOT: u64 = 32;
/// The distance, from the slot's header, of the word with the low half of the number of offers that its
/// receiver has seen; the distance, from the flag of the first message, of the word with the low half of
/// the number of headers used before an offer; and one of either.
const HEADER_OFFERS: u64 = 16;
const OFFER_USED: u64 = 40;
const COUNT: u64 = 1 << 32;
/// The flags of two messages follow each other, 8 bytes apart. The rest of the first offer starts
/// 32 bytes after its flag and has 24 bytes; the rest of the second one follows.
const FLAG: u64 = 8;
const REST: u64 = 24;
const FIRST_REST: Range<u64> = 32..56;
const SECOND_REST: Range<u64> = 56..80;
/// The distance of the number of taken messages from the header.
const TAKEN: u64 = 48;
/// The number of one message taken.
const ONE: u64 = 1 << 20;
/// For its third message rank 0 reads the number of messages taken once for each of the two in the
/// spool, and then to decide the destination of the third one.
const DECISION: u32 = 3;

impl Mutated {
    /// Assumes that the first message was taken when the third one is offered.
    pub(super) fn taken_early(&self, addr: RemoteAddr, bits: u64) -> u64 {
        if addr.offset % LINE != SLOT && self.has_offered.take() {
            // The first read for the third message, after that of the slot, is that of its header.
            self.taken.set(Some((addr.offset + TAKEN, 0)));
        }
        match self.taken.get() {
            Some((taken, looks)) if taken == addr.offset => {
                self.taken.set(Some((taken, looks + 1)));
                let decides = looks + 1 == DECISION && self.mutant == FmplMutant::OfferedOver;
                if decides { bits.max(ONE) } else { bits }
            }
            _ => bits,
        }
    }

    /// Assumes that the second flag of a channel has arrived as soon as the first one has.
    pub(super) fn arrived_early(&self, addr: RemoteAddr, bits: u64) -> u64 {
        let mut seen = self.seen.borrow_mut();
        if bits >> NUMBER == 1 && bits >> KIND & 15 == ARRIVED {
            seen.insert(addr.offset, bits);
        }
        let first = addr.offset.checked_sub(FLAG).and_then(|flag| seen.get(&flag)).copied();
        match (self.buffer.get(), first) {
            (Some(_), Some(first)) if bits >> NUMBER != 2 => first + NEXT,
            _ => bits,
        }
    }

    /// Replaces the destination of a part by that of the first part.
    pub(super) fn first_buffer(&self, addr: RemoteAddr, bits: u64) -> u64 {
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

    /// Alters what this rank sees of receives of any index.
    pub(super) fn of_any_index(&self, addr: RemoteAddr, bits: u64) -> u64 {
        let is_posted = bits >> NUMBER > 0 && bits >> KIND & 15 == POSTED;
        let is_slot = addr.offset % LINE == SLOT;
        if is_posted && is_slot {
            self.slot.set(Some(addr.offset));
        }
        if offers_first(bits) {
            self.flag.set(Some(addr.offset));
        }
        let is_at = |base: Option<u64>, distance| base.is_some_and(|base| addr.offset == base + distance);
        match self.mutant {
            FmplMutant::VoidHeaderUsed if is_at(self.slot.get(), HEADER_OFFERS) => {
                let offers = u64::from(self.offered.get().is_some());
                if bits & LOW < COUNT { bits + offers * COUNT } else { bits }
            }
            FmplMutant::OfferBeforeHeader if is_at(self.flag.get(), OFFER_USED) && bits & LOW >= COUNT => bits - COUNT,
            FmplMutant::AnyIndexFirst if is_posted && !is_slot && self.slot.get().is_some() => 0,
            _ => bits,
        }
    }

    /// Numbers the words of the first message that is offered as its own, whether they have arrived or
    /// not.
    pub(super) fn torn_offer(&self, addr: RemoteAddr, bits: u64) -> u64 {
        if offers_first(bits) {
            self.flag.set(Some(addr.offset));
        }
        let distance = self.flag.get().and_then(|flag| addr.offset.checked_sub(flag));
        if distance.is_some_and(|distance| FIRST_REST.contains(&distance)) { NEXT | bits & LOW } else { bits }
    }

    /// Repeats the offer of the first message as that of the second one.
    pub(super) fn taken_twice(&self, addr: RemoteAddr, bits: u64) -> u64 {
        if offers_first(bits) {
            self.flag.set(Some(addr.offset));
        }
        let mut seen = self.seen.borrow_mut();
        seen.insert(addr.offset, bits);
        // A word that does not concern the second message is replaced by the word of the first one,
        // numbered as the second's.
        let behind = match self.flag.get().and_then(|flag| addr.offset.checked_sub(flag)) {
            Some(FLAG) => FLAG,
            Some(behind) if SECOND_REST.contains(&behind) => REST,
            _ => return bits,
        };
        let first = seen.get(&(addr.offset - behind)).filter(|_| bits >> NUMBER != 2);
        first.map_or(bits, |first| first + NEXT)
    }
}
