//! Operations that another rank executes on behalf of this one.
//!
//! If the network cannot copy between two other ranks, the destination's rank fetches the bytes; if
//! it has no atomics, the word's rank changes the word. The requesting rank is the *initiator*, the
//! executing rank the *server*.
//!
//! # Protocol
//! Every rank has slots for requests to it, a word with one bit per slot for pending requests, and
//! places for replies to it.
//! 1. The initiator claims a slot: a compare-and-swap of its owner from 0 to the initiator's rank
//!    plus one. If all are taken, it backs off and retries; it never fails.
//! 2. It puts the request into the slot, and flushes.
//! 3. It sets the slot's bit in the word. The server, which waits for that word, copies the
//!    requests of all set bits, and clears these bits.
//! 4. The server frees the slots, resolves the addresses, executes the requests and flushes: the
//!    effect is visible.
//! 5. It puts the reply: the word's previous value, if the request is an atomic, and then the
//!    request's number.
//!
//! A slot whose owner died between 1 and 3 is taken over by the next rank that finds it: once a
//! loss has been reported, operations of the dead rank no longer take effect, so a bit that is not
//! set will never be set. If instead the bit was set and the server has cleared it, the server has
//! copied the request, and frees the slot by compare-and-swap only if the owner is unchanged.
//!
//! Without the network's atomics, 1 and 3 are impossible. Then each rank's program and helper have
//! a separate slot at every rank, and never more than one request for it. After 2, the initiator
//! puts the owner, flushes, and puts a 1 into the word; the server resets it to 0 before it checks
//! all owners. This requires memory proportional to the size of the job, as in the paper.
//!
//! Between the helpers of [`Mode::Split`], steps 2 and 3 are one put with a notice to the server's
//! control queue ([`queues`]).
//!
//! # The serving task
//! The program, whenever it waits in a call of this crate; the helper that executes its operations;
//! or a helper that does nothing else.
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

/// The maximum number of requests that one task has in flight.
const REPLIES: u64 = 16;

/// Offsets in the area: the word of pending requests, the words to and from a delegation helper,
/// the reply places of the program and of the helper, the slots, and the buffer for outgoing
/// requests.
const ARMED: u64 = 0;
const AREA_STOP: u64 = 8;
const AREA_QUEUE: u64 = 16;
const REPLIES_AT: u64 = 64;
const REPLY_BYTES: u64 = 16;
const SLOTS_AT: u64 = REPLIES_AT + 2 * REPLIES * REPLY_BYTES;
const SLOT_BYTES: u64 = 64;
/// The offset of the request in a slot, after the owner.
const REQUEST: u64 = 8;
/// The size of the buffer of an outgoing request.
const OUTGOING_BYTES: u64 = 64;

/// The use of a rank's slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slots {
    /// This number of slots, each for any rank that claims it; at most 64, the bits of a word.
    Shared(u64),
    /// Slots of the tasks, program and helper, of this number of ranks.
    Own(u64),
}

#[deny(clippy::arithmetic_side_effects)]
impl Slots {
    /// Returns the use of slots in a job.
    pub(crate) fn of(fabric: &Fabric, options: &Options) -> Self {
        match is_atomic_delegated(fabric, options) {
            true => Slots::Own(fabric.ranks() as u64),
            false => Slots::Shared(options.delegation_slots as u64),
        }
    }

    #[expect(clippy::arithmetic_side_effects, reason = "the number of a rank has 32 bits")]
    pub(crate) fn count(self) -> u64 {
        match self {
            Slots::Shared(slots) => slots,
            Slots::Own(ranks) => 2 * ranks,
        }
    }

    /// Returns the bytes of a rank's area.
    pub(crate) fn bytes(self, mode: Mode) -> usize {
        let outgoing = if mode == Mode::Split { queues::outgoing_bytes() } else { 0 };
        self.count().saturating_mul(SLOT_BYTES).saturating_add(SLOTS_AT).saturating_add(outgoing) as usize
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

/// Returns whether the CPU of the word's rank executes atomics.
pub(crate) fn is_atomic_delegated(fabric: &Fabric, options: &Options) -> bool {
    options.atomics == Atomics::Delegated || fabric.caps().atomics == OfNetwork::None
}

/// Returns whether a rank's CPU executes the rank's atomics on its own words.
pub(crate) fn is_own_by_cpu(fabric: &Fabric, options: &Options) -> bool {
    options.atomics == Atomics::LocalByCpu || is_atomic_delegated(fabric, options)
}

/// Returns whether ranks have to serve each other, for operations that the network lacks.
pub(crate) fn is_needed(fabric: &Fabric, options: &Options) -> bool {
    !fabric.caps().third_party_copy || is_atomic_delegated(fabric, options)
}

/// Starts a delegation helper with its own control queue, and opens the queue from which the rank's
/// other helper sends.
pub(crate) async fn split(
    memory: &crate::directory::Resolver,
    world: &std::sync::Arc<rdma_fabric::Region>,
    me: rdma_fabric::Rank,
) -> Result<(Serving, Sending)> {
    let serving = Serving::start(memory, world, me, true)?;
    let name = serving.listens().await?;
    Ok((serving, Sending::open(memory.fabric(), name)?))
}
