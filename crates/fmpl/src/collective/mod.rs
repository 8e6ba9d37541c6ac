//! Collectives (paper, sections 3.3 and 5.2): in hardware, if it exists and a table selects it, or
//! in software, over the matching areas.
//!
//! Where ranks outnumber CPUs, members meet at a counter (`central`).
//!
//! In software all other collectives use a binomial tree: up, down, or up and down. Each edge has a channel
//! for each direction, which user messages never use. A receive is posted before it is awaited, and
//! a sender waits for it, so a body is put directly from one member's memory into the other's and
//! never passes through the spool.
//!
//! # Why consecutive collectives don't mix
//! A member runs one collective of a communicator at a time, and all members run the same ones in
//! the same order. So two neighbours agree on the meaning of the n-th message of a channel between
//! them. A message with a body is sent when the receive with its number is posted, which happens
//! after the previous message has been received. A barrier's flags need no receive, but a channel has
//! space for the flags of two messages, and message n is sent only when message n − 2 is known to
//! have been received: if message n − 1 had a body, its receive was posted; if it was a barrier's
//! upward flag, the barrier has since been released downwards. A downward flag answers an upward
//! one, which was sent after everything before it had been received.
//!
//! # Errors in a collective
//! The sender has the length of the receive, so it detects lengths that differ. It sends the two
//! lengths instead of the body, as does every member that receives them, so the tree is traversed
//! as usual. After any other error, or if its future is dropped, a member has *left*: it no longer
//! takes part, but reports this to its neighbours, in this collective and in the tree of each later
//! one that is called. A member that waits for one that has left also leaves. Every wait for a
//! neighbour depends on all members being alive, because the neighbour waits for others.

mod algorithms;
mod barrier;
mod boxes;
mod broadcast;
mod central;
mod choice;
mod combine;
mod direct;
mod edge;
mod fast_barrier;
mod fast_broadcast;
mod fast_reduce;
mod hardware;
mod multicast;
mod op;
mod part;
mod piece_flag;
mod pieces;
mod reduce;
mod rounds;
mod staging;
mod tree;
mod unit;

pub(crate) use algorithms::{Algorithms, Chosen};
pub(crate) use central::Arrival;
pub use choice::{Algorithm, Choice, Collective, Rule, Table};
pub(crate) use combine::Scratch;
pub(crate) use hardware::{Hardware, Memories};
pub use op::{Op, Scalar};
pub(crate) use part::{Collectives, Part, Work};
use rounds::Rounds;
use staging::{Outcome, Staging, notify_all};
use tree::Tree;
pub(crate) use unit::ByUnit;
