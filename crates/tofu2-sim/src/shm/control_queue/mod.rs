//! Control queues over shared memory: the session queues that nobody's hardware runs.
//!
//! A queue's words (rings, pointers, table of tags) stand in an extent of its owner's heap that no region key leads to; a
//! directory in the segment's header says where. So any rank can do what the network interface would:
//!
//! * A command of a *normal* queue is executed at once by who posts it; only delayed starts are kept, privately.
//! * A command of a *session* queue is executed by who makes it executable: the CPU whose put advances the offset, whatever
//!   rank it belongs to, or the poster, if there is credit already ([`claim`]). What that releases comes after it
//!   ([`executor`]).
//!
//! No CPU does it alone for ever, and the death of one is noticed: see these modules.

mod claim;
mod death;
mod executor;
mod geometry;
mod lock;
mod mrq;
mod node;
mod open;
mod options;
mod own;
mod perform;
mod poster;
mod queue;
mod registering;
mod route;
mod short;
mod tags;
mod telling;
mod words;

#[cfg(test)]
mod tests;

pub(super) use executor::Executor;
pub(super) use options::QueueOptions;
pub(super) use own::{OwnQueues, Progress};
