//! Operations that another rank carries out for this one.
//!
//! Where the network cannot copy between two other ranks, the destination's rank fetches the bytes;
//! where it has no atomics, the word's rank changes the word. The one that asks is the *initiator*,
//! the one that does it the *server*.
//!
//! # Protocol
//! Every rank has [`SLOTS`] slots for requests to it, a word with a bit for each slot that holds
//! one, and [`REPLIES`] words for replies to it.
//! 1. The initiator claims a slot: compare and swap of its owner, from 0 to the initiator's rank
//!    plus one. If all are taken, it backs off and tries again; it never fails.
//! 2. It puts the request into the slot, and flushes.
//! 3. It sets the slot's bit. The server, which waits for that word, takes all bits.
//! 4. The server copies the request, frees the slot, resolves the addresses, does what is asked
//!    and flushes: the effect is visible.
//! 5. It puts the reply, which holds the request's number, into the initiator's word.
//!
//! A slot whose owner died between 1 and 3 is taken over by whoever finds it so: once a loss has
//! been reported, nothing of the dead rank takes effect any more, so if the bit is not set then it
//! never will be.
//!
//! # Source
//! Section 3.2 and figure 7 of the paper; there, a rank has a slot for each other rank.

mod initiator;
mod request;
mod server;

pub(crate) use initiator::{Replies, delegate};
pub(crate) use request::Request;
pub(crate) use server::serve;

use rdma_fabric::Fabric;

/// Requests that a rank holds at a time; at most 64, the bits of a word.
const SLOTS: u64 = 16;
/// Requests that a rank can have under way.
const REPLIES: u64 = 16;

/// Where things are in the area, from its start.
const ARMED: u64 = 0;
const REPLIES_AT: u64 = 64;
const SLOTS_AT: u64 = REPLIES_AT + REPLIES * 8;
const SLOT_BYTES: u64 = 64;

/// The bytes that every rank has for delegation.
pub(crate) const BYTES: usize = (SLOTS_AT + SLOTS * SLOT_BYTES) as usize;

/// Returns whether ranks have to serve each other: the network leaves something to them.
pub(crate) fn is_needed(fabric: &Fabric) -> bool {
    !fabric.caps().third_party_copy
}
