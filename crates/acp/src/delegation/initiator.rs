//! Asking another rank to carry out an operation.

use super::{
    ARMED, REPLIES, REPLIES_AT, SLOT_BYTES, SLOTS, SLOTS_AT,
    request::{Outcome, ReplyTo, Request},
};
use crate::{AcpError, Result, directory::Resolver, engine::Flight, pace::Pace};
use core::sync::atomic::{AtomicU16, AtomicU64, Ordering::Relaxed};
use rdma_fabric::{Deps, Fabric, FabricError, LocalWord, Rank, RemoteAddr};
use std::sync::Arc;

/// The words in which a rank awaits replies.
#[derive(Debug, Default)]
pub(crate) struct Replies {
    /// A bit for each word that is in use.
    taken: AtomicU64,
    /// The number of the last request.
    number: AtomicU16,
}

/// A word that a request has, until it is dropped.
#[derive(Debug)]
pub(crate) struct Reply {
    replies: Arc<Replies>,
    word: u8,
    number: u16,
}

impl Replies {
    /// Takes a word; `None` if all are in use.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Reply> {
        let taken = self.taken.load(Relaxed);
        let word = taken.trailing_ones() as u8;
        if u64::from(word) >= REPLIES {
            return None;
        }
        self.taken.store(taken | 1 << word, Relaxed);
        let number = self.number.load(Relaxed).wrapping_add(1).max(1);
        self.number.store(number, Relaxed);
        Some(Reply { replies: self.clone(), word, number })
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.replies.taken.fetch_and(!(1 << self.word), Relaxed);
    }
}

/// Asks `server` to carry out a request of rank `me`, when it is first polled, and ends when that is
/// done.
pub(crate) fn delegate(
    memory: &Resolver,
    me: Rank,
    server: Rank,
    request: Request,
    reply: Reply,
    flush_first: bool,
) -> Result<Flight> {
    let fabric = memory.fabric().clone();
    let area = memory.layout().delegation();
    let at = memory.world_at(server, area)?;
    let reply_at = memory.world_at(me, area + REPLIES_AT + 8 * u64::from(reply.word))?;
    let reply_word = fabric.local_word::<u64>(reply_at)?;
    Ok(Box::pin(async move {
        if flush_first {
            fabric.flush_all().await?;
        }
        let to = ReplyTo { rank: fabric.rank(), word: reply.word, number: reply.number };
        let slot = claim(&fabric, at).await?;
        let place = fabric.remote_span::<u64>(slot_at(at, slot, 8), super::request::WORDS)?;
        fabric.put(&place, request.to_words(to)).await?;
        fabric.flush(at.rank).await?;
        let armed = fabric.remote_word::<u64>(at)?;
        fabric.fetch_or(&armed, 1 << slot).await?;
        outcome(&fabric, &reply_word, at.rank, reply.number, request).await
    }))
}

/// Returns the address `offset` bytes into a slot.
pub(super) fn slot_at(area: RemoteAddr, slot: u64, offset: u64) -> RemoteAddr {
    RemoteAddr { offset: area.offset + SLOTS_AT + slot * SLOT_BYTES + offset, ..area }
}

/// Claims a slot of the rank whose area is at `at`.
async fn claim(fabric: &Fabric, at: RemoteAddr) -> Result<u64> {
    let me = u64::from(fabric.rank().number()) + 1;
    let mut pace = Pace::new(fabric);
    loop {
        for turn in 0..SLOTS {
            let slot = (me + turn) % SLOTS;
            let owner = fabric.remote_word::<u64>(slot_at(at, slot, 0))?;
            let before = fabric.compare_swap(&owner, 0, me).await?;
            if before == 0
                || is_abandoned(fabric, at, slot, before).await? && {
                    fabric.compare_swap(&owner, before, me).await? == before
                }
            {
                return Ok(slot);
            }
        }
        pace.pause(fabric).await;
    }
}

/// Returns whether the owner of a slot died before it armed the slot.
async fn is_abandoned(fabric: &Fabric, at: RemoteAddr, slot: u64, owner: u64) -> Result<bool> {
    let Some(owner) = owner.checked_sub(1).and_then(|rank| u32::try_from(rank).ok()).map(Rank::new) else {
        return Ok(false);
    };
    let lives = fabric.remote_word::<u64>(RemoteAddr { rank: owner, offset: at.offset + ARMED, ..at });
    if !matches!(lives, Err(FabricError::PeerLost { .. })) {
        return Ok(false);
    }
    let armed = fabric.get_word(&fabric.remote_word::<u64>(at)?).await?;
    Ok(armed & 1 << slot == 0)
}

async fn outcome(fabric: &Fabric, word: &LocalWord<u64>, server: Rank, number: u16, request: Request) -> Result<()> {
    let is_this = |word: u64| Outcome::from_word(word).0 == number;
    let (_, outcome) = Outcome::from_word(fabric.wait_until(word, Deps::One(server), is_this).await?);
    let [to, from] = request.addresses();
    match outcome {
        Outcome::Done => Ok(()),
        Outcome::NoSuchRegion => Err(AcpError::NoSuchRegion { address: from }),
        Outcome::OutOfBounds => Err(AcpError::out_of_bounds(to, 0, 0)),
        Outcome::Lost(rank) => Err(FabricError::PeerLost { rank }.into()),
        Outcome::Refused => Err(FabricError::Corrupt { rank: server, what: &"a delegated request" }.into()),
    }
}
