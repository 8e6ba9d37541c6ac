//! Collectives (paper, sections 3.3 and 5.2): by what hardware there is, as a table says, or in
//! software, over the areas by which members meet.
//!
//! In software all go along a binomial tree, up, down, or up and down. Each edge has a lane for either way, which
//! user messages never come to. A receive is posted before it is waited for, and a sender waits for
//! it, so a body goes straight from one member's memory into the other's and never through the
//! spool.
//!
//! # Why consecutive collectives don't mix
//! A member runs one collective of a communicator at a time, and all run the same ones in the same
//! order. So two neighbours agree on what the n-th message of a lane between them is. A message with
//! a body leaves when the receive with its number is posted, and that is when the one before is
//! received. A barrier's flags need no receive, but a lane has room for the flags of two messages,
//! and message n is sent only when n − 2 is known to be received: if n − 1 had a body, its receive
//! was posted; if it was a barrier's on the way up, the barrier has come down since. A flag on the
//! way down answers one that came up when everything before was received.
//!
//! # When something is wrong
//! Lengths that differ are seen by the sender, which has the receive's. It sends the two numbers
//! instead of the body, and so does everyone who gets them: the tree goes on. After any other error,
//! or if its future is dropped, a member has *left*: it takes part no more, but says so to its
//! neighbours, in this collective and in the tree of each later one that it is asked for. Who waits
//! for one that has left, has left. Every wait for a neighbour depends on all members being alive,
//! because the neighbour waits for others.

mod barrier;
mod broadcast;
mod choice;
mod edge;
mod hardware;
mod meeting;
mod near;
mod op;
mod part;
mod passing;
mod reduce;
mod reducing;
mod rounds;
mod staging;
mod tree;
mod unit;
mod ways;

pub use choice::{Algorithm, Choice, Collective, Rule, Table};
pub(crate) use hardware::Hardware;
pub use op::{Op, Scalar};
pub(crate) use part::{Collectives, Part, Work};
use rounds::Rounds;
use staging::{Staging, Told, tell_all};
use tree::Tree;
pub(crate) use unit::ByUnit;
pub(crate) use ways::{Chosen, Ways};
