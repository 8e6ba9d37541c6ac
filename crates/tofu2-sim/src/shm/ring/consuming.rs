//! The consumers' side: the oldest entry is copied and taken, and claims of the dead are skipped.

use super::{
    Damaged, Ring, Word,
    position::{CLAIMED, READY, STAGE_BITS, Said, VOID, after, distance, index, pack, position, read, unpack_tail},
};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

#[inline(always)]
fn state_at<R: Ring>(ring: &R, position: u64) -> u64 {
    // Acquire: pairs with the release in `hand_over`.
    ring.state(index(ring, position)).load(Acquire)
}

/// Whether [`consume`] would find nothing, unless a rank has ended.
#[inline(always)]
pub(in super::super) fn is_empty<R: Ring>(ring: &R) -> bool {
    let head = position(ring, ring.head().load(Relaxed));
    read(ring, state_at(ring, head), head) == Said::Nothing
}

/// The oldest entry, and which of the first `ranks` ranks left it, if it is ready and nobody else takes it. Else [`consume`] tells
/// more.
#[inline(always)]
pub(in super::super) fn take<R: Ring>(ring: &R, ranks: u64) -> Option<(u32, R::Entry)> {
    let now = ring.head().load(Relaxed);
    let head = position(ring, now);
    // Of this lap and stage, what is left is the rank.
    let rank = (state_at(ring, head) ^ pack(ring, head, 0, READY)).rotate_right(STAGE_BITS);
    if rank >= ranks {
        return None;
    }
    let entry = ring.copy(index(ring, head));
    move_on(ring, now).then_some((rank as u32, entry))
}

/// Move the head on from what it holds, unless somebody has: then what was read of its slot may be of any lap.
#[inline(always)]
fn move_on<R: Ring>(ring: &R, now: u64) -> bool {
    // Release: pairs with the acquire in `look_at_head`.
    ring.head().replace(now, after(ring, now), Release, Relaxed).is_ok()
}

/// The oldest entry, and who left it, if one is ready. `has_ended` tells which of the first `ranks` ranks will never write again;
/// `anybody_ended` whether there are any.
///
/// # Errors
/// [`Damaged`] if a slot, its claim or the tail holds what no producer writes.
#[inline]
pub(in super::super) fn consume<R: Ring>(
    ring: &R,
    ranks: u64,
    anybody_ended: impl Fn() -> bool,
    has_ended: impl Fn(u32) -> bool,
) -> Result<Option<(u32, R::Entry)>, Damaged> {
    loop {
        if let Some(taken) = take(ring, ranks) {
            return Ok(Some(taken));
        }
        let now = ring.head().load(Relaxed);
        let head = position(ring, now);
        let is_void = match read(ring, state_at(ring, head), head) {
            // Handed over just now, or taken by somebody else.
            Said::Now { rank, stage: READY } if u64::from(rank) < ranks => continue,
            Said::Now { stage: VOID, .. } => Ok(true),
            Said::Nothing if !anybody_ended() => return Ok(None),
            Said::Nothing => match claimant(ring, head) {
                Ok(Some(rank)) if u64::from(rank) < ranks && has_ended(rank) => {
                    // It may have gone on before it ended.
                    if read(ring, state_at(ring, head), head) != Said::Nothing {
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
            Ok(true) => _ = move_on(ring, now),
            // Somebody else has moved the head on, so that this is about another lap.
            _ if ring.head().load(Relaxed) != now => {}
            Ok(false) => return Ok(None),
            Err(damaged) => return Err(damaged),
        }
    }
}

/// Who has claimed position `head`, if anybody has.
#[cold]
fn claimant<R: Ring>(ring: &R, head: u64) -> Result<Option<u32>, Damaged> {
    // Acquire: pairs with the release in `claim`.
    let (next, last) = unpack_tail(ring.tail().load(Acquire));
    let ahead = distance(ring, next, head);
    if ahead > ring.depth() {
        return Err(Damaged);
    }
    // A position without a name was taken by who took the next; the last one's is in the tail.
    for at in (0..ahead.saturating_sub(1)).map(|behind| position(ring, head.wrapping_add(behind))) {
        match read(ring, ring.name(index(ring, at)).load(Relaxed), at) {
            Said::Now { rank, stage: CLAIMED } => return Ok(Some(rank)),
            Said::Nothing => {}
            _ => return Err(Damaged),
        }
    }
    Ok(last.filter(|_| ahead > 0))
}
