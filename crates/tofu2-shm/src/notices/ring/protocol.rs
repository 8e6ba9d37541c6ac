//! The protocol of a ring. A producer claims a slot, then fills it and hands it over, or withdraws
//! it. A consumer copies the oldest entry and takes it.

use super::{
    CLAIMED, Claim, DamagedRing, READY, Ring, STAGE_BITS, Said, VOID, Word, after, before, distance, index, needs_name,
    pack, pack_tail, position, positions, read, unpack_tail,
};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use rdma_fabric::Rank;

/// Claims a slot of `ring` for `me` if a load and a compare-and-swap suffice: there is room, no
/// other producer interferes, and `me` took the position before. If this returns `None`, [`claim`]
/// gives the full answer.
#[inline(always)]
pub(crate) fn claim_next<R: Ring>(ring: &R, me: Rank) -> Option<Claim> {
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

/// Claims a slot of `ring` for `me`; `None` if it is full.
///
/// # Errors
/// [`DamagedRing`] if the tail does not contain a valid position, or the distance between head and
/// tail exceeds the ring's depth.
#[inline(never)]
pub(crate) fn claim<R: Ring>(ring: &R, me: Rank) -> Result<Option<Claim>, DamagedRing> {
    let rank = me.number();
    // Acquire: pairs with the release below, which the next release passes on to `consume`.
    let mut tail = ring.tail().load(Acquire);
    loop {
        let (position, last) = unpack_tail(tail);
        if position >= positions(ring) {
            return Err(DamagedRing);
        }
        // Acquire: pairs with the release in `poll_head`, which shows that the slot's entry was
        // read.
        if distance(ring, position, ring.seen().load(Acquire)) >= ring.depth() && !poll_head(ring, position)? {
            return Ok(None);
        }
        ring.expect(index(ring, position));
        if let Some(last) = last
            && needs_name(ring, position, Some(last), rank)
        {
            keep_name(ring, before(ring, position), last);
        }
        // Release: pairs with the acquire in `claimant`, so that the record of the rank that took
        // the previous position is visible.
        match ring.tail().replace(tail, pack_tail(after(ring, position), rank), AcqRel, Acquire) {
            Ok(()) => return Ok(Some(Claim { position, rank })),
            Err(now) => tail = now,
        }
    }
}

/// Returns whether there is room for position `wanted`, according to the head itself.
#[cold]
fn poll_head<R: Ring>(ring: &R, wanted: u64) -> Result<bool, DamagedRing> {
    // Acquire: pairs with the release in `move_on`, so that the entry may be overwritten.
    let head = position(ring, ring.head().load(Acquire));
    // Release: pairs with the acquire in `claim`.
    ring.seen().store(head, Release);
    match distance(ring, wanted, head) {
        ahead if ahead < ring.depth() => Ok(true),
        ahead if ahead == ring.depth() => Ok(false),
        // By now the tail may be a lap further on, but then so is the head.
        _ if unpack_tail(ring.tail().load(Acquire)).0 != wanted => Ok(true),
        _ => Err(DamagedRing),
    }
}

/// Records that `rank` took `position`. Whether the rank has handed the slot over is not checked:
/// the consumer polls the slot's line, and fetching that line takes longer than everything else.
#[inline]
pub(crate) fn keep_name<R: Ring>(ring: &R, position: u64, rank: u32) {
    let word = ring.name(index(ring, position));
    let mut now = word.load(Relaxed);
    while read(ring, now, position) == Said::Nothing {
        // This fails if another rank was faster: with the same name, or with an old one if it slept
        // in the meantime.
        match word.replace(now, pack(ring, position, rank, CLAIMED), Relaxed, Relaxed) {
            Ok(()) => break,
            Err(other) => now = other,
        }
    }
}

/// Returns whether [`claim`] is worth trying.
pub(crate) fn has_room<R: Ring>(ring: &R) -> bool {
    distance(ring, unpack_tail(ring.tail().load(Relaxed)).0, ring.head().load(Relaxed)) != ring.depth()
}

/// Returns whether more than `margin` slots are free, as far as the words show.
pub(crate) fn has_room_beyond<R: Ring>(ring: &R, margin: u64) -> bool {
    let taken = distance(ring, unpack_tail(ring.tail().load(Relaxed)).0, ring.head().load(Relaxed));
    taken.saturating_add(margin) < ring.depth()
}

/// Fills in and hands over a claimed slot.
#[inline(always)]
pub(crate) fn publish<R: Ring>(ring: &R, claim: Claim, entry: R::Entry) {
    ring.fill(index(ring, claim.position), entry);
    // After the entry and the bytes that it announces.
    hand_over(ring, claim, READY);
}

/// Gives a claimed slot up without an entry.
pub(crate) fn withdraw<R: Ring>(ring: &R, claim: Claim) {
    hand_over(ring, claim, VOID);
}

#[inline(always)]
fn hand_over<R: Ring>(ring: &R, Claim { position, rank }: Claim, stage: u64) {
    // Release: pairs with the acquire in `state_at`.
    ring.state(index(ring, position)).store(pack(ring, position, rank, stage), Release);
}

// ----- the consumers' side: copy and take the oldest entry, skip claims of the dead -----

#[inline(always)]
fn state_at<R: Ring>(ring: &R, position: u64) -> u64 {
    // Acquire: pairs with the release in `hand_over`.
    ring.state(index(ring, position)).load(Acquire)
}

/// Returns whether [`consume`] would find nothing, provided that no rank has ended.
#[inline(always)]
pub(crate) fn is_empty<R: Ring>(ring: &R) -> bool {
    let head = position(ring, ring.head().load(Relaxed));
    read(ring, state_at(ring, head), head) == Said::Nothing
}

/// Returns the oldest entry, and the one of the first `ranks` ranks that sent it, if it is ready
/// and no other thread takes it first. If this returns `None`, [`consume`] gives the full answer.
#[inline(always)]
pub(crate) fn take<R: Ring>(ring: &R, ranks: u64) -> Option<(u32, R::Entry)> {
    let now = ring.head().load(Relaxed);
    let head = position(ring, now);
    // If lap and stage match, only the rank is left.
    let rank = (state_at(ring, head) ^ pack(ring, head, 0, READY)).rotate_right(STAGE_BITS);
    if rank >= ranks {
        return None;
    }
    let entry = ring.copy(index(ring, head));
    move_on(ring, now).then_some((rank as u32, entry))
}

/// Takes the oldest entry, from one of the first `ranks` ranks, if it is ready, `fits` accepts it and
/// no other thread takes it first. Returns whether it did.
#[inline(always)]
pub(crate) fn take_if<R: Ring>(ring: &R, ranks: u64, fits: impl FnOnce(R::Entry) -> bool) -> bool {
    let now = ring.head().load(Relaxed);
    let head = position(ring, now);
    // As in `take`.
    let rank = (state_at(ring, head) ^ pack(ring, head, 0, READY)).rotate_right(STAGE_BITS);
    rank < ranks && fits(ring.copy(index(ring, head))) && move_on(ring, now)
}

/// Advances the head from `now`. Returns false if another thread has done so; the entry that was
/// read from the slot may then be from any lap.
#[inline(always)]
fn move_on<R: Ring>(ring: &R, now: u64) -> bool {
    // Release: pairs with the acquire in `poll_head`.
    ring.head().replace(now, after(ring, now), Release, Relaxed).is_ok()
}

/// Returns the oldest entry, and the rank that sent it, if one is ready. `has_ended` returns which
/// of the first `ranks` ranks will never write again; `anybody_ended` returns whether there are
/// any.
///
/// # Errors
/// [`DamagedRing`] if a slot, its claim or the tail holds a value that no producer writes.
#[inline]
pub(crate) fn consume<R: Ring>(
    ring: &R,
    ranks: u64,
    anybody_ended: impl Fn() -> bool,
    has_ended: impl Fn(u32) -> bool,
) -> Result<Option<(u32, R::Entry)>, DamagedRing> {
    loop {
        if let Some(taken) = take(ring, ranks) {
            return Ok(Some(taken));
        }
        let now = ring.head().load(Relaxed);
        let head = position(ring, now);
        let is_void = match read(ring, state_at(ring, head), head) {
            // It was handed over just now, or another thread took it.
            Said::Now { rank, stage: READY } if u64::from(rank) < ranks => continue,
            Said::Now { stage: VOID, .. } => Ok(true),
            Said::Nothing if !anybody_ended() => return Ok(None),
            Said::Nothing => match claimant(ring, head) {
                Ok(Some(rank)) if u64::from(rank) < ranks && has_ended(rank) => {
                    // The rank may have handed the slot over before it ended.
                    if read(ring, state_at(ring, head), head) != Said::Nothing {
                        continue;
                    }
                    Ok(true)
                }
                Ok(_) => Ok(false),
                Err(damaged) => Err(damaged),
            },
            _ => Err(DamagedRing),
        };
        match is_void {
            Ok(true) => _ = move_on(ring, now),
            // Another thread has advanced the head, so this is about another lap.
            _ if ring.head().load(Relaxed) != now => {}
            Ok(false) => return Ok(None),
            Err(damaged) => return Err(damaged),
        }
    }
}

/// Returns the rank that has claimed position `head`, if one has.
#[cold]
fn claimant<R: Ring>(ring: &R, head: u64) -> Result<Option<u32>, DamagedRing> {
    // Acquire: pairs with the release in `claim`.
    let (next, last) = unpack_tail(ring.tail().load(Acquire));
    let ahead = distance(ring, next, head);
    if ahead > ring.depth() {
        return Err(DamagedRing);
    }
    // A position without a name was taken by the rank that took the next one; the tail names the
    // rank that took the last.
    for at in (0..ahead.saturating_sub(1)).map(|behind| position(ring, head.wrapping_add(behind))) {
        match read(ring, ring.name(index(ring, at)).load(Relaxed), at) {
            Said::Now { rank, stage: CLAIMED } => return Ok(Some(rank)),
            Said::Nothing => {}
            _ => return Err(DamagedRing),
        }
    }
    Ok(last.filter(|_| ahead > 0))
}
