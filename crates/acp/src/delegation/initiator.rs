//! Delegating an operation to another rank.

use super::{
    ARMED, REPLIES, REQUEST, Sending, Slots, reply_at,
    request::{Outcome, ReplyTo, Request, WORDS},
    slot_at,
};
use crate::{AcpError, Result, directory::Resolver, pace::Pace};
use core::sync::atomic::{AtomicU16, AtomicU64, Ordering::Relaxed};
use rdma_fabric::{Deps, Fabric, FabricError, LocalWord, Rank, RemoteAddr, provider::Boxed};
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The reply places of one task of a rank.
#[derive(Debug)]
pub(crate) struct Replies {
    /// The first place.
    first: u8,
    /// One bit for each place; set if it is in use.
    taken: AtomicU64,
    /// The number of the last request.
    number: AtomicU16,
    /// The ranks that execute a request of this task, one request each.
    busy: Mutex<HashSet<Rank>>,
    /// The control queue for sending requests, if one is used.
    sending: Option<Sending>,
}

/// The reply place of a request, until it is dropped.
#[derive(Debug)]
pub(crate) struct Reply {
    replies: Arc<Replies>,
    place: u8,
    number: u16,
    /// The rank that executes the request, once it is the request's turn.
    server: Option<Rank>,
}

impl Replies {
    /// Returns the places of the program.
    pub(crate) fn of_program() -> Arc<Self> {
        Self::starting_at(0, None)
    }

    /// Returns the places of the communication helper.
    pub(crate) fn of_helper(sending: Option<Sending>) -> Arc<Self> {
        Self::starting_at(REPLIES as u8, sending)
    }

    fn starting_at(first: u8, sending: Option<Sending>) -> Arc<Self> {
        let (taken, number, busy) = Default::default();
        Arc::new(Replies { first, taken, number, busy, sending })
    }

    fn busy(&self) -> MutexGuard<'_, HashSet<Rank>> {
        // The set is consistent between statements, wherever a panic occurs.
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place; `None` if all are in use. Must not be called concurrently.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Reply> {
        let free = self.taken.load(Relaxed).trailing_ones() as u8;
        if u64::from(free) >= REPLIES {
            return None;
        }
        self.taken.fetch_or(1 << free, Relaxed);
        let number = self.number.load(Relaxed).wrapping_add(1).max(1);
        self.number.store(number, Relaxed);
        Some(Reply { replies: self.clone(), place: self.first + free, number, server: None })
    }
}

impl Reply {
    /// Returns the number of this place among those of its task, from 0.
    fn nth(&self) -> u8 {
        self.place - self.replies.first
    }

    /// Returns the slot of this task of rank `me`, where each task has its own slot.
    fn own_slot(&self, me: Rank) -> u64 {
        2 * u64::from(me.number()) + u64::from(self.replies.first > 0)
    }

    /// Waits until `server` executes no other request of this task.
    async fn turn(&mut self, fabric: &Fabric, server: Rank) {
        let mut pace = Pace::new(fabric);
        while !self.replies.busy().insert(server) {
            pace.pause(fabric).await;
        }
        self.server = Some(server);
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if let Some(server) = self.server {
            self.replies.busy().remove(&server);
        }
        self.replies.taken.fetch_and(!(1 << self.nth()), Relaxed);
    }
}

/// Returns a future that, once polled, delegates a request of rank `me` to another rank, and that
/// completes with the request. For an atomic, it yields the word's previous value.
pub(crate) fn ask(
    memory: &Resolver,
    me: Rank,
    request: Request,
    mut reply: Reply,
) -> Result<Boxed<'static, Result<u64>>> {
    let (fabric, layout) = (memory.fabric().clone(), memory.layout());
    let (at, slots) = (memory.world_at(request.server(), layout.delegation())?, layout.slots());
    let own = memory.world_at(me, layout.delegation())?;
    let answer = reply_at(own, reply.place);
    let status = fabric.local_word::<u64>(answer)?;
    let value = fabric.local_word::<u64>(RemoteAddr { offset: answer.offset + 8, ..answer })?;
    Ok(Box::pin(async move {
        reply.turn(&fabric, at.rank).await;
        let to = ReplyTo { rank: fabric.rank(), place: reply.place, number: reply.number };
        let words = request.to_words(to);
        let slot = match slots {
            Slots::Shared(slots) => claim(&fabric, at, slots).await?,
            Slots::Own(_) => reply.own_slot(me),
        };
        match (&reply.replies.sending, slots) {
            (Some(sending), _) => sending.send(&fabric, (own, reply.nth()), (at, slots, slot), words).await?,
            (None, Slots::Shared(_)) => send_claimed(&fabric, at, slot, words).await?,
            (None, Slots::Own(_)) => send_to_own(&fabric, at, slot, words).await?,
        }
        replied(&fabric, &status, at.rank, reply.number, request).await?;
        Ok(fabric.load(&value)?)
    }))
}

/// Sends a request in a slot that this rank has claimed.
async fn send_claimed(fabric: &Fabric, at: RemoteAddr, slot: u64, words: [u64; WORDS]) -> Result<()> {
    fabric.put(&fabric.remote_span::<u64>(slot_at(at, slot, REQUEST), WORDS)?, words).await?;
    fabric.flush(at.rank).await?;
    fabric.fetch_or(&fabric.remote_word::<u64>(at)?, 1 << slot).await?;
    Ok(())
}

/// Sends a request in a slot that only this task uses. The slot is free, because its last request
/// has been answered.
async fn send_to_own(fabric: &Fabric, at: RemoteAddr, slot: u64, words: [u64; WORDS]) -> Result<()> {
    fabric.put(&fabric.remote_span::<u64>(slot_at(at, slot, REQUEST), WORDS)?, words).await?;
    fabric.flush(at.rank).await?;
    fabric.put_word(&fabric.remote_word::<u64>(slot_at(at, slot, 0))?, slot + 1).await?;
    fabric.flush(at.rank).await?;
    Ok(fabric.put_word(&fabric.remote_word::<u64>(at)?, 1).await?)
}

/// Claims one of the `slots` of the rank whose area is at `at`.
async fn claim(fabric: &Fabric, at: RemoteAddr, slots: u64) -> Result<u64> {
    let me = u64::from(fabric.rank().number()) + 1;
    let mut pace = Pace::new(fabric);
    loop {
        for turn in 0..slots {
            let slot = (me + turn) % slots;
            let owner = fabric.remote_word::<u64>(slot_at(at, slot, 0))?;
            let before = fabric.compare_swap(&owner, 0, me).await?;
            if before == 0
                || is_abandoned(fabric, at, slot, before).await?
                    && fabric.compare_swap(&owner, before, me).await? == before
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

/// Waits for the reply to a request.
async fn replied(fabric: &Fabric, status: &LocalWord<u64>, server: Rank, number: u16, request: Request) -> Result<()> {
    let is_this = |word: u64| Outcome::from_word(word).0 == number;
    let (_, outcome) = Outcome::from_word(fabric.wait_until(status, Deps::One(server), is_this).await?);
    let [to, from] = request.addresses();
    match outcome {
        Outcome::Done => Ok(()),
        Outcome::NoSuchRegion => Err(AcpError::NoSuchRegion { address: from }),
        Outcome::OutOfBounds => Err(AcpError::out_of_bounds(to, 0, 0)),
        Outcome::Lost(rank) => Err(FabricError::PeerLost { rank }.into()),
        Outcome::Refused => Err(FabricError::Corrupt { rank: server, what: &"a delegated request" }.into()),
    }
}
