//! A bounded ring with many producers, in any process, and few consumers, all of one rank, in whose memory it is: of
//! notices ([`super::notice_ring`]), and of what a control queue receives.
//!
//! Position `p` of the endless sequence of entries has slot `p % depth` in lap `p / depth`. The *tail* packs the
//! next free position and who took the one before it; a producer takes a position by compare-and-swap on the tail. From then on
//! the slot is its own, and plain stores do: the entry, then the state word, which packs (lap, rank, stage). The
//! consumer waits for the state at its *head* to be READY, or VOID if there is no entry after all, in that position's lap, so
//! nobody need clear slots. It copies the entry and then moves the head on by compare-and-swap: if several threads of the
//! rank take entries, that tells whose each is, and what the others have copied is dropped.
//!
//! That costs an entry the least: the tail's line stays with the producers and the head's with the consumer, who reads it only
//! when the ring looks full (*seen* is what a producer read last); of the slot's line there is one transfer, which is asked for
//! before the compare-and-swap and the bytes that an entry tells of. Each side has one locked instruction.
//!
//! # Death
//! A producer that dies with a claim blocks nobody for good: the claim of a rank that has *ended*, of which no code runs, is
//! skipped. (A rank that is merely lost, or has left, may have a thread that still writes into the slot, and will hand it over.
//! Threads of a living process always do.) Whose claim it is stands in the tail until the next position is taken; whoever takes
//! that writes it, before, into the position's *claim* word, unless it is its own rank: a position without a name was taken by
//! who took the next. Names are told from those of other laps by the lap, which wraps; so that none is mistaken for a new one,
//! all are written in every 2²⁰-th lap. Only if some rank has ended does the consumer look at tail and names.
//!
//! Positions wrap at 2³⁹, or where laps would not fit into 32 bits.

mod consuming;
mod position;
mod producing;

use super::word::Word;
use std::sync::Arc;

pub(super) use consuming::{consume, is_empty, take};
pub(super) use producing::{claim, claim_next, has_room, publish, withdraw};

#[cfg(test)]
pub(super) use position::{RANK_BITS, READY, pack, positions};

/// Where the words of a ring are, and what its entries are.
pub(super) trait Ring {
    type Word: Word;
    type Entry;
    /// Number of slots, a power of two, below 2³².
    fn depth(&self) -> u64;
    /// Position of the oldest entry; written by the owner.
    fn head(&self) -> &Self::Word;
    /// The next position to be taken, and by whom the last was.
    fn tail(&self) -> &Self::Word;
    /// What a producer found at the head last.
    fn seen(&self) -> &Self::Word;
    /// Who claimed slot `index`, once somebody has claimed the next.
    fn name(&self, index: usize) -> &Self::Word;
    /// The state of slot `index`.
    fn state(&self, index: usize) -> &Self::Word;
    /// Fill slot `index`, by relaxed stores.
    fn fill(&self, index: usize, entry: Self::Entry);
    /// Copy slot `index`, by relaxed loads: of any lap, if the head has moved.
    fn copy(&self, index: usize) -> Self::Entry;
    /// Slot `index` will be written soon.
    fn expect(&self, _index: usize) {}
}

/// So that who has the owner need not keep the borrow beside it.
impl<R: Ring> Ring for Arc<R> {
    type Word = R::Word;
    type Entry = R::Entry;

    #[inline(always)]
    fn depth(&self) -> u64 {
        (**self).depth()
    }
    #[inline(always)]
    fn head(&self) -> &R::Word {
        (**self).head()
    }
    #[inline(always)]
    fn tail(&self) -> &R::Word {
        (**self).tail()
    }
    #[inline(always)]
    fn seen(&self) -> &R::Word {
        (**self).seen()
    }
    #[inline]
    fn name(&self, index: usize) -> &R::Word {
        (**self).name(index)
    }
    #[inline(always)]
    fn state(&self, index: usize) -> &R::Word {
        (**self).state(index)
    }
    #[inline(always)]
    fn fill(&self, index: usize, entry: R::Entry) {
        (**self).fill(index, entry);
    }
    #[inline(always)]
    fn copy(&self, index: usize) -> R::Entry {
        (**self).copy(index)
    }
    #[inline(always)]
    fn expect(&self, index: usize) {
        (**self).expect(index);
    }
}

/// A slot that a producer has claimed and must publish. Forgetting it blocks the ring until the rank has ended.
#[must_use]
#[derive(Debug)]
pub(super) struct Claim {
    position: u64,
    rank: u32,
}

/// The ring's words contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Damaged;

#[cfg(all(test, not(miri)))]
pub(super) mod model;
#[cfg(test)]
mod tests;
