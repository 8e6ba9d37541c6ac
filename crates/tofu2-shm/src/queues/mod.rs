//! Control queues over shared memory, including session queues, without hardware to run them.
//!
//! A queue's words (rings, pointers, table of tags) are in an extent of its owner's heap that no
//! region key can reach; a directory in the segment's header locates them. So any rank can do the
//! work of the network interface:
//!
//! * The poster executes a command of a *normal* queue immediately; only commands with a delayed
//!   start are kept, privately.
//! * A command of a *session* queue is executed by the rank that makes it executable: the CPU whose
//!   put advances the offset, regardless of its rank, or the poster, if there is already credit
//!   ([`claim`]). While its owner waits at one of its session queues, the owner's CPU executes them
//!   ([`mod@queue`]). Commands that this releases come after it ([`executor`]).
//!
//! These modules also ensure that no CPU does all the work forever and that an executor's death is
//! noticed.
//!
//! Read the modules in this order: a queue's words ([`mod@format`], [`config`], [`view`], [`tags`], [`mrq`]);
//! execution ([`claim`], [`executor`], [`perform`], [`reporting`], and the fast paths: [`route`],
//! [`fast_put`], [`known`]); the owner's side ([`own`], [`opening`], [`queue`], [`poster`]); and, last,
//! commands for queues of other nodes ([`remote`]).

mod claim;
pub(crate) mod config;
mod death;
pub(crate) mod executor;
mod fast_put;
pub(crate) mod format;
mod known;
mod lock;
mod mrq;
mod opening;
pub(crate) mod own;
mod perform;
mod poster;
pub(crate) mod progress;
mod queue;
pub(crate) mod remote;
mod reporting;
mod route;
mod tags;
mod view;

#[cfg(test)]
mod tests;
