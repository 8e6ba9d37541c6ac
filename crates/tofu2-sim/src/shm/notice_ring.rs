//! Notices of a rank: a bounded ring with many producers and one consumer, in the consumer's segment.
//!
//! Position `p` of the endless sequence of notices has slot `p % CAPACITY` in lap `p / CAPACITY`. A slot's state word
//! packs (lap, claiming rank, stage):
//!
//! ```text
//! (lap, 0, FREE) --producer: CAS--> (lap, rank, CLAIMED) --CAS--> (lap, rank, READY) --consumer--> (lap + 1, 0, FREE)
//!                                        |---- the rank has ended: consumer, CAS -------------------^
//!                                        '-CAS--> (lap, rank, VOID) --consumer, no notice-----------^
//! ```
//! A producer that dies between claim and publication therefore blocks nobody for good. Only a claim of a rank that has
//! *ended*, of which no code runs, is skipped: a rank that is merely lost, or has left, may have a thread that still
//! writes its payload into the slot, and will hand it over. (Threads of a living process always do.) The tail says where to
//! start looking for a free slot; it is only a hint that anybody moves on, checked against the head before use. Since
//! a producer only ever moves to higher positions, notices of one producer arrive in posting order.

use super::{layout, mapping::Mapping};
use core::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use rdma_fabric::{FabricError, Notice, Rank, RegionKey};

const CAPACITY: u64 = layout::RING_CAPACITY as u64;
const FREE: u64 = 0;
const CLAIMED: u64 = 1;
const READY: u64 = 2;
const VOID: u64 = 3;

/// The state word: lap (32 bits), rank (30 bits), stage (2 bits).
fn pack(position: u64, rank: u32, stage: u64) -> u64 {
    (position / CAPACITY) << 32 | u64::from(rank) << 2 | stage
}

fn lap(state: u64) -> u32 {
    (state >> 32) as u32
}

fn rank(state: u64) -> u32 {
    (state as u32) >> 2
}

fn slot(segment: &Mapping, position: u64, field: usize) -> &AtomicU64 {
    let index = (position % CAPACITY) as usize;
    segment.word(layout::RING + index * layout::RING_SLOT + 8 * field)
}

/// A slot that a producer has claimed and must publish. Forgetting it blocks the ring until the rank has ended.
#[must_use]
#[derive(Debug)]
pub(super) struct Claim {
    position: u64,
    rank: u32,
}

/// Claim a slot of `segment`'s ring for `me`; `None` if it is full.
pub(super) fn claim(segment: &Mapping, me: Rank) -> Option<Claim> {
    let tail = segment.word(layout::RING_TAIL);
    let mut position = start(segment);
    loop {
        let state = slot(segment, position, 0);
        // Acquire: pairs with the release in `consume`, so that the payload may be overwritten.
        let now = state.load(Acquire);
        let free = pack(position, 0, FREE);
        if now == free {
            let claimed = pack(position, me.number(), CLAIMED);
            if state.compare_exchange(free, claimed, AcqRel, Relaxed).is_ok() {
                tail.fetch_max(position + 1, Relaxed);
                return Some(Claim { position, rank: me.number() });
            }
        } else if lap(free).wrapping_sub(lap(now)) as i32 > 0 {
            // Not consumed since the last lap. The head may have moved since the start was chosen.
            return None;
        }
        // Somebody else has this position.
        position += 1;
        tail.fetch_max(position, Relaxed);
        if position > segment.word(layout::RING_HEAD).load(Acquire).saturating_add(CAPACITY) {
            return None;
        }
    }
}

/// The tail, or the head if the tail can't be right.
fn start(segment: &Mapping) -> u64 {
    let head = segment.word(layout::RING_HEAD).load(Acquire).min(u64::MAX >> 1);
    let tail = segment.word(layout::RING_TAIL).load(Relaxed);
    if (head..=head + CAPACITY).contains(&tail) { tail } else { head }
}

/// Whether [`claim`] is worth a try.
pub(super) fn has_room(segment: &Mapping) -> bool {
    let position = start(segment);
    lap(pack(position, 0, FREE)).wrapping_sub(lap(slot(segment, position, 0).load(Acquire))) as i32 <= 0
}

/// Fill in and hand over a claimed slot. Whether it was still ours.
pub(super) fn publish(segment: &Mapping, claim: Claim, data: u64, region: RegionKey, end: u64) -> bool {
    let position = claim.position;
    slot(segment, position, 1).store(data, Relaxed);
    slot(segment, position, 2).store(region.to_bits(), Relaxed);
    slot(segment, position, 3).store(end, Relaxed);
    // The put's bytes and the payload come before.
    hand_over(segment, &claim, READY)
}

/// Give a claimed slot up without a notice.
pub(super) fn withdraw(segment: &Mapping, claim: Claim) {
    hand_over(segment, &claim, VOID);
}

fn hand_over(segment: &Mapping, claim: &Claim, stage: u64) -> bool {
    let &Claim { position, rank } = claim;
    // Release: pairs with the acquire in `consume`.
    slot(segment, position, 0)
        .compare_exchange(pack(position, rank, CLAIMED), pack(position, rank, stage), Release, Relaxed)
        .is_ok()
}

/// Whether [`consume`] would find nothing.
#[inline]
pub(super) fn is_empty(segment: &Mapping) -> bool {
    let head = segment.word(layout::RING_HEAD).load(Relaxed);
    slot(segment, head, 0).load(Relaxed) == pack(head, 0, FREE)
}

/// The oldest notice, if one is ready. One consumer at a time. `has_ended` tells which producers will never
/// write again.
///
/// # Errors
/// [`FabricError::Corrupt`] if the slot holds what no producer writes.
pub(super) fn consume(
    segment: &Mapping,
    me: Rank,
    ranks: usize,
    has_ended: impl Fn(Rank) -> bool,
) -> Result<Option<Notice>, FabricError> {
    let head_word = segment.word(layout::RING_HEAD);
    loop {
        let head = head_word.load(Relaxed);
        let state = slot(segment, head, 0);
        // Acquire: pairs with the release in `publish`.
        let now = state.load(Acquire);
        let from = rank(now);
        let stage = now & 3;
        if now == pack(head, 0, FREE) {
            return Ok(None);
        }
        if lap(now) != lap(pack(head, 0, FREE)) || from as usize >= ranks || stage == FREE {
            return Err(FabricError::Corrupt { rank: me, what: "a slot of the notice ring" });
        }
        let notice = Notice {
            from: Rank::new(from),
            data: slot(segment, head, 1).load(Relaxed),
            region: RegionKey::from_bits(slot(segment, head, 2).load(Relaxed)),
            end: slot(segment, head, 3).load(Relaxed),
        };
        if stage == CLAIMED && !has_ended(notice.from) {
            return Ok(None);
        }
        // Release: pairs with the acquire in `claim`. By CAS, because the card of a rank may say wrongly that
        // it has ended.
        if state.compare_exchange(now, pack(head.wrapping_add(CAPACITY), 0, FREE), Release, Relaxed).is_err() {
            continue;
        }
        head_word.store(head.wrapping_add(1), Release);
        if stage == READY {
            return Ok(Some(notice));
        }
    }
}

#[cfg(test)]
mod tests;
