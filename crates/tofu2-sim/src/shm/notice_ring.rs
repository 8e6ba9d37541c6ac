//! Notices of a rank: a bounded ring with many producers and one consumer, in the consumer's segment.
//!
//! Position `p` of the endless sequence of notices has slot `p % CAPACITY` in lap `p / CAPACITY`. The *tail* packs the
//! next free position and who took the one before it; a producer takes a position by compare-and-swap on the tail. From then on
//! the slot is its own, and plain stores do: the payload, then the state word, which packs (lap, rank, stage). The
//! consumer waits for the state at its *head* to be READY, or VOID if there is no notice after all, in that position's lap, so
//! nobody need clear slots. It copies the payload and then moves the head on by compare-and-swap: if several threads of the
//! rank take notices, that tells whose each is, and what the others have copied is dropped.
//!
//! That costs a notice the least: the tail's line stays with the producers and the head's with the consumer, who reads it only
//! when the ring looks full (*seen* is what a producer read last); of the slot's line there is one transfer, which is asked for
//! before the compare-and-swap and the put's bytes. Each side has one locked instruction.
//!
//! # Death
//! A producer that dies with a claim blocks nobody for good: the claim of a rank that has *ended*, of which no code runs, is
//! skipped. (A rank that is merely lost, or has left, may have a thread that still writes into the slot, and will hand it over.
//! Threads of a living process always do.) Whose claim it is stands in the tail until the next position is taken; whoever takes
//! that writes it, before, into the position's *claim* word, unless it is its own rank: a position without a name was taken by
//! who took the next. Names are told from those of other laps by the lap, which wraps; so that none is mistaken for a new one,
//! all are written in every 2²⁰-th lap. Only if some rank has ended does the consumer look at tail and names.
//!
//! Positions wrap at 2³⁹.

use super::{layout, mapping::Mapping};
use core::sync::atomic::{
    AtomicU64,
    Ordering::{self, AcqRel, Acquire, Relaxed, Release},
};
use rdma_fabric::{FabricError, Notice, Rank, RegionKey};
use std::sync::Arc;

/// A shared word; the tests implement it for loom's.
pub(super) trait Word {
    fn load(&self, order: Ordering) -> u64;
    fn store(&self, value: u64, order: Ordering);
    /// Make it `new` if it holds `current`; what it holds otherwise.
    fn replace(&self, current: u64, new: u64, success: Ordering, failure: Ordering) -> Result<(), u64>;
}

impl Word for AtomicU64 {
    #[inline(always)]
    fn load(&self, order: Ordering) -> u64 {
        AtomicU64::load(self, order)
    }
    #[inline(always)]
    fn store(&self, value: u64, order: Ordering) {
        AtomicU64::store(self, value, order);
    }
    #[inline(always)]
    fn replace(&self, current: u64, new: u64, success: Ordering, failure: Ordering) -> Result<(), u64> {
        self.compare_exchange(current, new, success, failure).map(drop)
    }
}

/// The words of a ring.
pub(super) trait Ring {
    type Word: Word;
    /// Number of slots, a power of two.
    const CAPACITY: u64;
    /// Position of the oldest notice; written by the owner.
    fn head(&self) -> &Self::Word;
    /// The next position to be taken, and by whom the last was.
    fn tail(&self) -> &Self::Word;
    /// What a producer found at the head last.
    fn seen(&self) -> &Self::Word;
    /// Who claimed slot `index`, once somebody has claimed the next.
    fn claim(&self, index: usize) -> &Self::Word;
    /// Slot `index`: the state and three words of payload.
    fn slot(&self, index: usize) -> &[Self::Word; 4];
    /// Slot `index` will be written soon.
    fn expect(&self, _index: usize) {}
}

impl Ring for Mapping {
    type Word = AtomicU64;
    const CAPACITY: u64 = layout::RING_CAPACITY as u64;

    #[inline(always)]
    fn head(&self) -> &AtomicU64 {
        self.word(layout::RING_HEAD)
    }
    #[inline(always)]
    fn tail(&self) -> &AtomicU64 {
        self.word(layout::RING_TAIL)
    }
    #[inline(always)]
    fn seen(&self) -> &AtomicU64 {
        self.word(layout::RING_SEEN)
    }
    #[inline]
    fn claim(&self, index: usize) -> &AtomicU64 {
        self.word(layout::RING_CLAIMS + index * 8)
    }
    #[inline(always)]
    fn slot(&self, index: usize) -> &[AtomicU64; 4] {
        self.words(layout::RING + index * layout::RING_SLOT)
    }
    #[inline(always)]
    fn expect(&self, index: usize) {
        self.expect_store(layout::RING + index * layout::RING_SLOT);
    }
}

impl<R: Ring> Ring for Arc<R> {
    type Word = R::Word;
    const CAPACITY: u64 = R::CAPACITY;

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
    fn claim(&self, index: usize) -> &R::Word {
        (**self).claim(index)
    }
    #[inline(always)]
    fn slot(&self, index: usize) -> &[R::Word; 4] {
        (**self).slot(index)
    }
    #[inline(always)]
    fn expect(&self, index: usize) {
        (**self).expect(index);
    }
}

/// Bits of the tail that name a rank, plus one.
const RANK_BITS: u32 = 25;
/// Positions are below this, and wrap.
const POSITIONS: u64 = 1 << (u64::BITS - RANK_BITS);

/// Of so many laps, the last has all names.
const NAMING: u64 = 1 << 20;

/// Bits of the stage in a state or claim word.
const STAGE_BITS: u32 = 2;
/// Never written: only in lap 0.
const FREE: u64 = 0;
/// In a claim word.
const CLAIMED: u64 = 1;
const READY: u64 = 2;
const VOID: u64 = 3;

/// The state and the claim word: lap (32 bits), rank (30 bits), stage (2 bits).
fn pack<R: Ring>(position: u64, rank: u32, stage: u64) -> u64 {
    lap_of::<R>(position) << 32 | u64::from(rank) << STAGE_BITS | stage
}

fn lap_of<R: Ring>(position: u64) -> u64 {
    position % POSITIONS / R::CAPACITY
}

fn rank(state: u64) -> u32 {
    (state as u32) >> STAGE_BITS
}

#[inline(always)]
fn after(position: u64) -> u64 {
    position.wrapping_add(1) % POSITIONS
}

#[inline(always)]
fn before(position: u64) -> u64 {
    position.wrapping_sub(1) % POSITIONS
}

/// How many positions `later` is after `earlier`.
fn distance(later: u64, earlier: u64) -> u64 {
    later.wrapping_sub(earlier) % POSITIONS
}

/// What a state or claim word says, seen from a position that the slot is to serve.
#[derive(Debug, PartialEq)]
enum Said {
    /// Nothing about this lap.
    Nothing,
    /// Said for it.
    Now { rank: u32, stage: u64 },
    /// Said for a later one.
    Later,
}

fn read<R: Ring>(word: u64, position: u64) -> Said {
    let stage = word & 3;
    let laps = POSITIONS / R::CAPACITY;
    match lap_of::<R>(position).wrapping_sub(word >> 32) {
        _ if stage == FREE => Said::Nothing,
        0 => Said::Now { rank: rank(word), stage },
        behind if (1..laps / 2).contains(&(behind % laps)) => Said::Nothing,
        _ => Said::Later,
    }
}

#[inline(always)]
fn index<R: Ring>(position: u64) -> usize {
    (position % R::CAPACITY) as usize
}

#[inline(always)]
fn slot<R: Ring>(ring: &R, position: u64) -> &[R::Word; 4] {
    ring.slot(index::<R>(position))
}

fn claim_word<R: Ring>(ring: &R, position: u64) -> &R::Word {
    ring.claim(index::<R>(position))
}

fn pack_tail(position: u64, rank: u32) -> u64 {
    position << RANK_BITS | (u64::from(rank) + 1)
}

/// The next position, and the rank that took the one before, if any was.
fn unpack_tail(tail: u64) -> (u64, Option<u32>) {
    let rank = (tail % (1 << RANK_BITS)) as u32;
    (tail >> RANK_BITS, rank.checked_sub(1))
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

impl Damaged {
    /// Of the ring of `rank`.
    pub(super) fn error(self, rank: Rank) -> FabricError {
        FabricError::Corrupt { rank, what: "the notice ring" }
    }
}

/// Claim a slot of `ring` for `me` if that takes no more than a look and a compare-and-swap: there is room, nobody came between,
/// and `me` took the position before. Else [`claim`] tells more.
#[inline(always)]
pub(super) fn claim_next<R: Ring>(ring: &R, me: Rank) -> Option<Claim> {
    let rank = me.number();
    // Orderings as in `claim`.
    let tail = ring.tail().load(Acquire);
    let (position, last) = unpack_tail(tail);
    ring.expect(index::<R>(position));
    if distance(position, ring.seen().load(Acquire)) >= R::CAPACITY || needs_name::<R>(position, last, rank) {
        return None;
    }
    let next = pack_tail(after(position), rank);
    ring.tail().replace(tail, next, AcqRel, Relaxed).is_ok().then_some(Claim { position, rank })
}

/// Claim a slot of `ring` for `me`; `None` if it is full.
///
/// # Errors
/// [`Damaged`] if head and tail are further apart than the ring is long.
#[inline(never)]
pub(super) fn claim<R: Ring>(ring: &R, me: Rank) -> Result<Option<Claim>, Damaged> {
    let rank = me.number();
    // Acquire: pairs with the release below, which the next release passes on to `consume`.
    let mut tail = ring.tail().load(Acquire);
    loop {
        let (position, last) = unpack_tail(tail);
        // Acquire: pairs with the release in `look_at_head`, which passes on that the slot's payload was read.
        if distance(position, ring.seen().load(Acquire)) >= R::CAPACITY && !look_at_head(ring, position)? {
            return Ok(None);
        }
        ring.expect(index::<R>(position));
        if let Some(last) = last
            && needs_name::<R>(position, Some(last), rank)
        {
            keep_name(ring, before(position), last);
        }
        // Release: pairs with the acquire in `claimant`: the name of who took the position before is kept.
        match ring.tail().replace(tail, pack_tail(after(position), rank), AcqRel, Acquire) {
            Ok(()) => return Ok(Some(Claim { position, rank })),
            Err(now) => tail = now,
        }
    }
}

/// Whether there is room for `position`, by the head itself.
#[cold]
fn look_at_head<R: Ring>(ring: &R, position: u64) -> Result<bool, Damaged> {
    // Acquire: pairs with the release in `move_on`, so that the payload may be overwritten.
    let head = ring.head().load(Acquire) % POSITIONS;
    // Release: pairs with the acquire in `claim`.
    ring.seen().store(head, Release);
    match distance(position, head) {
        ahead if ahead < R::CAPACITY => Ok(true),
        ahead if ahead == R::CAPACITY => Ok(false),
        // By now the tail may be a lap further on, but then so is the head.
        _ if unpack_tail(ring.tail().load(Acquire)).0 != position => Ok(true),
        _ => Err(Damaged),
    }
}

/// Whether `last`, who took the position before `position`, is to be named there before `rank` takes `position`.
#[inline(always)]
fn needs_name<R: Ring>(position: u64, last: Option<u32>, rank: u32) -> bool {
    last != Some(rank) || lap_of::<R>(before(position)) % NAMING == NAMING - 1
}

/// Write down that `rank` took `position`. Whether it has handed it over is not looked at: the slot's line is where the
/// consumer looks, and fetching it from there takes longer than all the rest.
#[inline]
fn keep_name<R: Ring>(ring: &R, position: u64, rank: u32) {
    let word = claim_word(ring, position);
    let mut now = word.load(Relaxed);
    while read::<R>(now, position) == Said::Nothing {
        // Fails if somebody else was faster: with the same name, or an old one, having slept since.
        match word.replace(now, pack::<R>(position, rank, CLAIMED), Relaxed, Relaxed) {
            Ok(()) => break,
            Err(other) => now = other,
        }
    }
}

/// Whether [`claim`] is worth a try.
pub(super) fn has_room<R: Ring>(ring: &R) -> bool {
    distance(unpack_tail(ring.tail().load(Relaxed)).0, ring.head().load(Relaxed)) != R::CAPACITY
}

/// Fill in and hand over a claimed slot.
#[inline(always)]
pub(super) fn publish<R: Ring>(ring: &R, claim: Claim, data: u64, region: RegionKey, end: u64) {
    let [_, payload @ ..] = slot(ring, claim.position);
    for (word, value) in payload.iter().zip([data, region.to_bits(), end]) {
        word.store(value, Relaxed);
    }
    // The put's bytes and the payload come before.
    hand_over(ring, claim, READY);
}

/// Give a claimed slot up without a notice.
pub(super) fn withdraw<R: Ring>(ring: &R, claim: Claim) {
    hand_over(ring, claim, VOID);
}

#[inline(always)]
fn hand_over<R: Ring>(ring: &R, Claim { position, rank }: Claim, stage: u64) {
    // Release: pairs with the acquire in `state_at`.
    slot(ring, position)[0].store(pack::<R>(position, rank, stage), Release);
}

#[inline(always)]
fn state_at<R: Ring>(ring: &R, position: u64) -> u64 {
    // Acquire: pairs with the release in `hand_over`.
    slot(ring, position)[0].load(Acquire)
}

/// Whether [`consume`] would find nothing, unless a rank has ended.
#[inline(always)]
pub(super) fn is_empty<R: Ring>(ring: &R) -> bool {
    let head = ring.head().load(Relaxed);
    read::<R>(state_at(ring, head), head) == Said::Nothing
}

/// The oldest notice if it is ready and nobody else takes it. Else [`consume`] tells more.
#[inline(always)]
pub(super) fn take<R: Ring>(ring: &R, ranks: usize) -> Option<Notice> {
    let head = ring.head().load(Relaxed);
    // Of this lap and stage, what is left is the rank.
    let rank = (state_at(ring, head) ^ pack::<R>(head, 0, READY)).rotate_right(STAGE_BITS);
    if rank >= ranks as u64 {
        return None;
    }
    let [_, data, region, end] = slot(ring, head);
    let notice = Notice {
        from: Rank::new(rank as u32),
        data: data.load(Relaxed),
        region: RegionKey::from_bits(region.load(Relaxed)),
        end: end.load(Relaxed),
    };
    move_on(ring, head).then_some(notice)
}

/// Move the head on from `head`, unless somebody has: then what was read of its slot may be of any lap.
#[inline(always)]
fn move_on<R: Ring>(ring: &R, head: u64) -> bool {
    // Release: pairs with the acquire in `look_at_head`.
    ring.head().replace(head, after(head), Release, Relaxed).is_ok()
}

/// The oldest notice, if one is ready. `has_ended` tells which producers will never write again; `anybody_ended` whether there
/// are any.
///
/// # Errors
/// [`FabricError::Corrupt`] if a slot, its claim or the tail holds what no producer writes.
#[inline(never)]
pub(super) fn consume<R: Ring>(
    ring: &R,
    me: Rank,
    ranks: usize,
    anybody_ended: impl Fn() -> bool,
    has_ended: impl Fn(Rank) -> bool,
) -> Result<Option<Notice>, FabricError> {
    loop {
        if let Some(notice) = take(ring, ranks) {
            return Ok(Some(notice));
        }
        let head = ring.head().load(Relaxed);
        let is_void = match read::<R>(state_at(ring, head), head) {
            // Handed over just now, or taken by somebody else.
            Said::Now { rank, stage: READY } if (rank as usize) < ranks => continue,
            Said::Now { stage: VOID, .. } => Ok(true),
            Said::Nothing if !anybody_ended() => return Ok(None),
            Said::Nothing => match claimant(ring, head) {
                Ok(Some(rank)) if (rank as usize) < ranks && has_ended(Rank::new(rank)) => {
                    // It may have gone on before it ended.
                    if read::<R>(state_at(ring, head), head) != Said::Nothing {
                        continue;
                    }
                    Ok(true)
                }
                Ok(_) => Ok(false),
                Err(damaged) => Err(damaged),
            },
            _ => Err(Damaged),
        };
        match is_void {
            Ok(true) => _ = move_on(ring, head),
            // Somebody else has moved the head on, so that this is about another lap.
            _ if ring.head().load(Relaxed) != head => {}
            Ok(false) => return Ok(None),
            Err(damaged) => return Err(damaged.error(me)),
        }
    }
}

/// Who has claimed position `head`, if anybody has.
#[cold]
fn claimant<R: Ring>(ring: &R, head: u64) -> Result<Option<u32>, Damaged> {
    // Acquire: pairs with the release in `claim`.
    let (next, last) = unpack_tail(ring.tail().load(Acquire));
    let ahead = distance(next, head);
    if ahead > R::CAPACITY {
        return Err(Damaged);
    }
    // A position without a name was taken by who took the next; the last one's is in the tail.
    for position in (0..ahead.saturating_sub(1)).map(|behind| head.wrapping_add(behind) % POSITIONS) {
        match read::<R>(claim_word(ring, position).load(Relaxed), position) {
            Said::Now { rank, stage: CLAIMED } => return Ok(Some(rank)),
            Said::Nothing => {}
            _ => return Err(Damaged),
        }
    }
    Ok(last.filter(|_| ahead > 0))
}

#[cfg(all(test, not(miri)))]
mod model;
#[cfg(test)]
mod tests;
