//! A bounded ring in one rank's memory, with many producers in any process and few consumers, all
//! of that rank. It carries notices ([`crate::notices`]) and the entries of a control queue's
//! MRQ.
//!
//! Position `p` of the endless sequence of entries has slot `p % depth` in lap `p / depth`. The
//! *tail* packs the next free position and the rank that took the one before it; a producer takes a
//! position by compare-and-swap on the tail. From then on the producer owns the slot, and plain
//! stores suffice: first the entry, then the state word, which packs (lap, rank, stage). The
//! consumer waits until the state at its *head* is READY in that position's lap, or VOID if the
//! entry was given up; because the state contains the lap, slots are never cleared. The consumer
//! copies the entry and then advances the head by compare-and-swap: if several threads of the rank
//! take entries, this determines which thread receives each one, and the others drop their copies.
//!
//! This keeps the cost of an entry low. The tail's line stays with the producers and the head's
//! line with the consumer: producers read the head only when the ring looks full (*seen* is the
//! head as last read by a producer). The slot's line is transferred once, and is prefetched before
//! the compare-and-swap and before the bytes that the entry announces. Each side executes one
//! locked instruction.
//!
//! # Death
//! A producer that dies with a claim does not block the ring forever: the claim of a rank that has
//! *ended*, none of whose code runs any more, is skipped. (A rank that is merely lost, or has left,
//! may have a thread that still writes into the slot, and will hand it over. Threads of a living
//! process always do.) The tail contains the rank that claimed a position until the next position
//! is taken. The producer that takes the next one first writes that name into the earlier
//! position's *claim* word, unless it is its own rank: so a position without a name was taken by
//! the rank that took the next one. The lap distinguishes names from those of other laps. Laps
//! wrap, so every name is written in each 2²⁰-th lap; otherwise an old name could be mistaken for a
//! new one. The consumer reads the tail and the names only if some rank has ended.
//!
//! Positions wrap at 2³⁹, or where laps would not fit into 32 bits.

mod protocol;

use crate::memory::word::Word;
use std::sync::Arc;

pub(crate) use protocol::{
    claim, claim_next, consume, has_room, has_room_beyond, is_empty, publish, take, take_if, withdraw,
};

/// A ring's words and its entry type.
pub(crate) trait Ring {
    type Word: Word;
    type Entry;
    /// Returns the number of slots, a power of two, below 2³².
    fn depth(&self) -> u64;
    /// Returns the word with the position of the oldest entry; written by the owner.
    fn head(&self) -> &Self::Word;
    /// Returns the word with the next position to be taken and the rank that took the last one.
    fn tail(&self) -> &Self::Word;
    /// Returns the word with the head as last read by a producer.
    fn seen(&self) -> &Self::Word;
    /// Returns the word with the rank that claimed slot `index`, written once another rank has
    /// claimed the next.
    fn name(&self, index: usize) -> &Self::Word;
    /// Returns the state word of slot `index`.
    fn state(&self, index: usize) -> &Self::Word;
    /// Fills slot `index`, by relaxed stores.
    fn fill(&self, index: usize, entry: Self::Entry);
    /// Copies slot `index`, by relaxed loads. The copy may be of any lap if the head has moved.
    fn copy(&self, index: usize) -> Self::Entry;
    /// Hints that slot `index` will be written soon.
    fn expect(&self, _index: usize) {}
}

/// Lets a caller that has an `Arc` pass it directly, without an additional borrow.
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

/// A slot that a producer has claimed and must publish. Forgetting it blocks the ring until the
/// rank has ended.
#[must_use]
#[derive(Debug)]
pub(crate) struct Claim {
    position: u64,
    rank: u32,
}

/// The error of a ring whose words contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DamagedRing;

// ----- positions, and the words that pack them: the tail, and the states and claims of slots -----
// A position is below [`positions`] wherever a function takes one.

/// Bits of the tail that contain a rank, plus one.
pub(crate) const RANK_BITS: u32 = 25;

/// In the last of every `NAMING` laps, all names are written. Laps wrap at 2²³ or later.
pub(crate) const NAMING: u64 = 1 << 20;

/// Bits of the stage in a state or claim word.
pub(crate) const STAGE_BITS: u32 = 2;
/// The stage of a slot that has never been used, possible only in lap 0.
const FREE: u64 = 0;
/// The only stage in a claim word.
pub(crate) const CLAIMED: u64 = 1;
pub(crate) const READY: u64 = 2;
pub(crate) const VOID: u64 = 3;

/// Returns the number at which positions wrap: positions fit into the tail, and laps into 32 bits.
#[inline(always)]
pub(crate) fn positions<R: Ring>(ring: &R) -> u64 {
    (ring.depth() << 32).min(1 << (u64::BITS - RANK_BITS))
}

/// Returns the position that a word of the ring holds.
#[inline(always)]
pub(crate) fn position<R: Ring>(ring: &R, word: u64) -> u64 {
    word & (positions(ring) - 1)
}

#[inline(always)]
pub(crate) fn after<R: Ring>(ring: &R, before: u64) -> u64 {
    position(ring, before.wrapping_add(1))
}

#[inline(always)]
pub(crate) fn before<R: Ring>(ring: &R, after: u64) -> u64 {
    position(ring, after.wrapping_sub(1))
}

/// Returns how many positions `later` is after `earlier`.
#[inline(always)]
pub(crate) fn distance<R: Ring>(ring: &R, later: u64, earlier: u64) -> u64 {
    position(ring, later.wrapping_sub(earlier))
}

/// Returns the slot of a position.
#[inline(always)]
pub(crate) fn index<R: Ring>(ring: &R, position: u64) -> usize {
    (position & (ring.depth() - 1)) as usize
}

#[inline(always)]
fn lap<R: Ring>(ring: &R, position: u64) -> u64 {
    position >> ring.depth().trailing_zeros()
}

/// Returns whether `last`, which took the position before `position`, must be named there before
/// `rank` takes `position`.
#[inline(always)]
pub(crate) fn needs_name<R: Ring>(ring: &R, position: u64, last: Option<u32>, rank: u32) -> bool {
    last != Some(rank) || lap(ring, before(ring, position)) % NAMING == NAMING - 1
}

/// Returns a state or claim word: lap (32 bits), rank (30 bits), stage (2 bits).
#[inline(always)]
pub(crate) fn pack<R: Ring>(ring: &R, position: u64, rank: u32, stage: u64) -> u64 {
    lap(ring, position) << 32 | u64::from(rank) << STAGE_BITS | stage
}

/// The information in a state or claim word about a position of the slot.
#[derive(Debug, PartialEq)]
pub(crate) enum Said {
    /// The word is about an earlier lap, or the slot was never used.
    Nothing,
    /// The word is about this lap.
    Now { rank: u32, stage: u64 },
    /// The word is about a later lap.
    Later,
}

#[inline]
pub(crate) fn read<R: Ring>(ring: &R, word: u64, position: u64) -> Said {
    let (stage, laps) = (word & 3, lap(ring, positions(ring)));
    match lap(ring, position).wrapping_sub(word >> 32) {
        _ if stage == FREE => Said::Nothing,
        0 => Said::Now { rank: (word as u32) >> STAGE_BITS, stage },
        behind if (1..laps / 2).contains(&(behind & (laps - 1))) => Said::Nothing,
        _ => Said::Later,
    }
}

#[inline(always)]
pub(crate) fn pack_tail(position: u64, rank: u32) -> u64 {
    position << RANK_BITS | (u64::from(rank) + 1)
}

/// Returns the next position, which is invalid if the tail is damaged, and the rank that took the
/// one before, if one did.
#[inline(always)]
pub(crate) fn unpack_tail(tail: u64) -> (u64, Option<u32>) {
    let rank = (tail % (1 << RANK_BITS)) as u32;
    (tail >> RANK_BITS, rank.checked_sub(1))
}

#[cfg(all(test, not(miri)))]
pub(crate) mod model;
#[cfg(test)]
mod tests;
