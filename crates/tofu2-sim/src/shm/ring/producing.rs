//! The producers' side: a slot is claimed, then filled and handed over, or given up.

use super::{
    Claim, Damaged, Ring, Word,
    position::{
        CLAIMED, READY, Said, VOID, after, before, distance, index, needs_name, pack, pack_tail, position, positions,
        read, unpack_tail,
    },
};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use rdma_fabric::Rank;

/// Claim a slot of `ring` for `me` if that takes no more than a look and a compare-and-swap: there is room, nobody came between,
/// and `me` took the position before. Else [`claim`] tells more.
#[inline(always)]
pub(in super::super) fn claim_next<R: Ring>(ring: &R, me: Rank) -> Option<Claim> {
    let rank = me.number();
    // Orderings as in `claim`.
    let tail = ring.tail().load(Acquire);
    let (position, last) = unpack_tail(tail);
    ring.expect(index(ring, position));
    if distance(ring, position, ring.seen().load(Acquire)) >= ring.depth()
        || position >= positions(ring)
        || needs_name(ring, position, last, rank)
    {
        return None;
    }
    let next = pack_tail(after(ring, position), rank);
    ring.tail().replace(tail, next, AcqRel, Relaxed).is_ok().then_some(Claim { position, rank })
}

/// Claim a slot of `ring` for `me`; `None` if it is full.
///
/// # Errors
/// [`Damaged`] if the tail holds no position, or head and tail are further apart than the ring is long.
#[inline(never)]
pub(in super::super) fn claim<R: Ring>(ring: &R, me: Rank) -> Result<Option<Claim>, Damaged> {
    let rank = me.number();
    // Acquire: pairs with the release below, which the next release passes on to `consume`.
    let mut tail = ring.tail().load(Acquire);
    loop {
        let (position, last) = unpack_tail(tail);
        if position >= positions(ring) {
            return Err(Damaged);
        }
        // Acquire: pairs with the release in `look_at_head`, which passes on that the slot's entry was read.
        if distance(ring, position, ring.seen().load(Acquire)) >= ring.depth() && !look_at_head(ring, position)? {
            return Ok(None);
        }
        ring.expect(index(ring, position));
        if let Some(last) = last
            && needs_name(ring, position, Some(last), rank)
        {
            keep_name(ring, before(ring, position), last);
        }
        // Release: pairs with the acquire in `claimant`: the name of who took the position before is kept.
        match ring.tail().replace(tail, pack_tail(after(ring, position), rank), AcqRel, Acquire) {
            Ok(()) => return Ok(Some(Claim { position, rank })),
            Err(now) => tail = now,
        }
    }
}

/// Whether there is room for `wanted`, by the head itself.
#[cold]
fn look_at_head<R: Ring>(ring: &R, wanted: u64) -> Result<bool, Damaged> {
    // Acquire: pairs with the release in `move_on`, so that the entry may be overwritten.
    let head = position(ring, ring.head().load(Acquire));
    // Release: pairs with the acquire in `claim`.
    ring.seen().store(head, Release);
    match distance(ring, wanted, head) {
        ahead if ahead < ring.depth() => Ok(true),
        ahead if ahead == ring.depth() => Ok(false),
        // By now the tail may be a lap further on, but then so is the head.
        _ if unpack_tail(ring.tail().load(Acquire)).0 != wanted => Ok(true),
        _ => Err(Damaged),
    }
}

/// Write down that `rank` took `position`. Whether it has handed it over is not looked at: the slot's line is where the
/// consumer looks, and fetching it from there takes longer than all the rest.
#[inline]
pub(super) fn keep_name<R: Ring>(ring: &R, position: u64, rank: u32) {
    let word = ring.name(index(ring, position));
    let mut now = word.load(Relaxed);
    while read(ring, now, position) == Said::Nothing {
        // Fails if somebody else was faster: with the same name, or an old one, having slept since.
        match word.replace(now, pack(ring, position, rank, CLAIMED), Relaxed, Relaxed) {
            Ok(()) => break,
            Err(other) => now = other,
        }
    }
}

/// Whether [`claim`] is worth a try.
pub(in super::super) fn has_room<R: Ring>(ring: &R) -> bool {
    distance(ring, unpack_tail(ring.tail().load(Relaxed)).0, ring.head().load(Relaxed)) != ring.depth()
}

/// Fill in and hand over a claimed slot.
#[inline(always)]
pub(in super::super) fn publish<R: Ring>(ring: &R, claim: Claim, entry: R::Entry) {
    ring.fill(index(ring, claim.position), entry);
    // What the entry tells of, and the entry, come before.
    hand_over(ring, claim, READY);
}

/// Give a claimed slot up without an entry.
pub(in super::super) fn withdraw<R: Ring>(ring: &R, claim: Claim) {
    hand_over(ring, claim, VOID);
}

#[inline(always)]
fn hand_over<R: Ring>(ring: &R, Claim { position, rank }: Claim, stage: u64) {
    // Release: pairs with the acquire in `state_at`.
    ring.state(index(ring, position)).store(pack(ring, position, rank, stage), Release);
}
