//! Operations that another rank carries out for this one.
//!
//! Where the network cannot copy between two other ranks, the destination's rank fetches the bytes;
//! where it has no atomics, the word's rank changes the word. The one that asks is the *initiator*,
//! the one that does it the *server*.
//!
//! # Protocol
//! Every rank has slots for requests to it, a word that says that some hold one, and places for
//! replies to it.
//! 1. The initiator claims a slot: compare and swap of its owner, from 0 to the initiator's rank
//!    plus one. If all are taken, it backs off and tries again; it never fails.
//! 2. It puts the request into the slot, and flushes.
//! 3. It sets the slot's bit in the word. The server, which waits for that word, copies the
//!    requests of all bits, and takes these bits back.
//! 4. The server frees the slots, resolves the addresses, does what is asked and flushes: the
//!    effect is visible.
//! 5. It puts the reply: the word's previous value, if that was asked for, and then the request's
//!    number.
//!
//! A slot whose owner died between 1 and 3 is taken over by whoever finds it so: once a loss has
//! been reported, nothing of the dead rank takes effect any more, so if the bit is not set then it
//! never will be. It may have been set, and taken back by the server. Then the server has copied
//! the request, and frees the slot only if its owner is the one that it saw before: compare and
//! swap.
//!
//! Without the network's atomics, 1 and 3 are impossible. Then each rank's program and helper have a
//! slot of their own at every rank, and never more than one request for it. After 2, the initiator
//! puts the owner, flushes, and puts a 1 into the word; the server puts it back to 0 before it looks
//! at all owners. This takes memory in proportion to the job, as in the paper.
//!
//! Between the helpers of [`Mode::Split`], 2 and 3 are one put with a notice at the server's control
//! queue ([`queues`]).
//!
//! # Who serves
//! The program, whenever it waits in a call of this crate; the helper that carries out its
//! operations; or a helper that does nothing else.
//!
//! # Source
//! Section 3.2 and figure 7 of the paper.

mod calls;
mod helper;
mod initiator;
mod queues;
mod request;
mod server;

pub(crate) use helper::Serving;
pub(crate) use initiator::{Replies, ask};
pub(crate) use queues::Sending;
pub(crate) use request::Request;
pub(crate) use server::serve;

use crate::{Atomics, Mode, Options, Result};
use rdma_fabric::{Atomics as OfNetwork, Fabric, RemoteAddr};

/// Requests that a task of a rank can have under way.
const REPLIES: u64 = 16;

/// Where things are in the area, from its start: the word, what a delegation helper is told and
/// tells, the places for replies to the program and to the helper, the slots, what is sent.
const ARMED: u64 = 0;
const AREA_STOP: u64 = 8;
const AREA_QUEUE: u64 = 16;
const REPLIES_AT: u64 = 64;
const REPLY_BYTES: u64 = 16;
const SLOTS_AT: u64 = REPLIES_AT + 2 * REPLIES * REPLY_BYTES;
const SLOT_BYTES: u64 = 64;
/// Where the request is in a slot, behind the owner.
const REQUEST: u64 = 8;
/// What a request is sent from.
const OUTGOING_BYTES: u64 = 64;

/// How a rank's slots are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slots {
    /// So many, by whoever claims one; at most 64, the bits of a word.
    Shared(u64),
    /// Each by one task, program or helper, of so many ranks.
    Own(u64),
}

impl Slots {
    /// Returns how slots are used in a job.
    pub(crate) fn of(fabric: &Fabric, options: &Options) -> Self {
        match is_atomic_delegated(fabric, options) {
            true => Slots::Own(fabric.ranks() as u64),
            false => Slots::Shared(options.delegation_slots as u64),
        }
    }

    pub(crate) fn count(self) -> u64 {
        match self {
            Slots::Shared(slots) => slots,
            Slots::Own(ranks) => 2 * ranks,
        }
    }

    /// Returns the bytes of a rank's area.
    pub(crate) fn bytes(self, mode: Mode) -> usize {
        let outgoing = if mode == Mode::Split { queues::outgoing_bytes() } else { 0 };
        (SLOTS_AT + self.count() * SLOT_BYTES + outgoing) as usize
    }
}

/// Returns the address `offset` bytes into a slot of the area at `area`.
fn slot_at(area: RemoteAddr, slot: u64, offset: u64) -> RemoteAddr {
    RemoteAddr { offset: area.offset + SLOTS_AT + slot * SLOT_BYTES + offset, ..area }
}

/// Returns the address of a place for a reply in the area at `area`.
fn reply_at(area: RemoteAddr, place: u8) -> RemoteAddr {
    RemoteAddr { offset: area.offset + REPLIES_AT + REPLY_BYTES * u64::from(place), ..area }
}

/// Returns whether atomics are carried out by the CPU of the word's rank.
pub(crate) fn is_atomic_delegated(fabric: &Fabric, options: &Options) -> bool {
    options.atomics == Atomics::Delegated || fabric.caps().atomics == OfNetwork::None
}

/// Returns whether a rank's CPU carries out its atomics on words of its own.
pub(crate) fn is_own_by_cpu(fabric: &Fabric, options: &Options) -> bool {
    options.atomics == Atomics::LocalByCpu || is_atomic_delegated(fabric, options)
}

/// Returns whether ranks have to serve each other: the network leaves something to them.
pub(crate) fn is_needed(fabric: &Fabric, options: &Options) -> bool {
    !fabric.caps().third_party_copy || is_atomic_delegated(fabric, options)
}

/// Starts a delegation helper with a control queue of its own, and opens the one from which its
/// rank's other helper sends.
pub(crate) async fn split(
    memory: &crate::directory::Resolver,
    world: &std::sync::Arc<rdma_fabric::Region>,
    me: rdma_fabric::Rank,
) -> Result<(Serving, Sending)> {
    let serving = Serving::start(memory, world, me, true)?;
    let name = serving.listens().await?;
    Ok((serving, Sending::open(memory.fabric(), name)?))
}
