//! Positions, and what is packed with them: the tail, and the states and claims of slots.
//!
//! A position is below [`positions`] wherever a function takes one.

use super::Ring;

/// Bits of the tail that name a rank, plus one.
pub(in super::super) const RANK_BITS: u32 = 25;

/// Of so many laps, the last has all names. Laps wrap at 2²³ or later.
pub(super) const NAMING: u64 = 1 << 20;

/// Bits of the stage in a state or claim word.
pub(super) const STAGE_BITS: u32 = 2;
/// Never written: only in lap 0.
const FREE: u64 = 0;
/// In a claim word.
pub(super) const CLAIMED: u64 = 1;
pub(in super::super) const READY: u64 = 2;
pub(super) const VOID: u64 = 3;

/// Positions are below this, and wrap: they fit into the tail, and laps into 32 bits.
#[inline(always)]
pub(in super::super) fn positions<R: Ring>(ring: &R) -> u64 {
    (ring.depth() << 32).min(1 << (u64::BITS - RANK_BITS))
}

/// The position that a word of the ring holds.
#[inline(always)]
pub(super) fn position<R: Ring>(ring: &R, word: u64) -> u64 {
    word & (positions(ring) - 1)
}

#[inline(always)]
pub(super) fn after<R: Ring>(ring: &R, before: u64) -> u64 {
    position(ring, before.wrapping_add(1))
}

#[inline(always)]
pub(super) fn before<R: Ring>(ring: &R, after: u64) -> u64 {
    position(ring, after.wrapping_sub(1))
}

/// How many positions `later` is after `earlier`.
#[inline(always)]
pub(super) fn distance<R: Ring>(ring: &R, later: u64, earlier: u64) -> u64 {
    position(ring, later.wrapping_sub(earlier))
}

/// The slot of a position.
#[inline(always)]
pub(super) fn index<R: Ring>(ring: &R, position: u64) -> usize {
    (position & (ring.depth() - 1)) as usize
}

#[inline(always)]
fn lap<R: Ring>(ring: &R, position: u64) -> u64 {
    position >> ring.depth().trailing_zeros()
}

/// Whether `last`, who took the position before `position`, is to be named there before `rank` takes `position`.
#[inline(always)]
pub(super) fn needs_name<R: Ring>(ring: &R, position: u64, last: Option<u32>, rank: u32) -> bool {
    last != Some(rank) || lap(ring, before(ring, position)) % NAMING == NAMING - 1
}

/// The state and the claim word: lap (32 bits), rank (30 bits), stage (2 bits).
#[inline(always)]
pub(in super::super) fn pack<R: Ring>(ring: &R, position: u64, rank: u32, stage: u64) -> u64 {
    lap(ring, position) << 32 | u64::from(rank) << STAGE_BITS | stage
}

/// What a state or claim word says, seen from a position that the slot is to serve.
#[derive(Debug, PartialEq)]
pub(super) enum Said {
    /// Nothing about this lap.
    Nothing,
    /// Said for it.
    Now { rank: u32, stage: u64 },
    /// Said for a later one.
    Later,
}

#[inline]
pub(super) fn read<R: Ring>(ring: &R, word: u64, position: u64) -> Said {
    let (stage, laps) = (word & 3, lap(ring, positions(ring)));
    match lap(ring, position).wrapping_sub(word >> 32) {
        _ if stage == FREE => Said::Nothing,
        0 => Said::Now { rank: (word as u32) >> STAGE_BITS, stage },
        behind if (1..laps / 2).contains(&(behind & (laps - 1))) => Said::Nothing,
        _ => Said::Later,
    }
}

#[inline(always)]
pub(super) fn pack_tail(position: u64, rank: u32) -> u64 {
    position << RANK_BITS | (u64::from(rank) + 1)
}

/// The next position, unless the tail is damaged, and the rank that took the one before, if any was.
#[inline(always)]
pub(super) fn unpack_tail(tail: u64) -> (u64, Option<u32>) {
    let rank = (tail % (1 << RANK_BITS)) as u32;
    (tail >> RANK_BITS, rank.checked_sub(1))
}
