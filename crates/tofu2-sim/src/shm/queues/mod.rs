//! Control queues over shared memory: the session queues that nobody's hardware runs.
//!
//! A queue's words (rings, pointers, table of tags) stand in an extent of its owner's heap that no
//! region key leads to; a directory in the segment's header says where. So any rank can do what the
//! network interface would:
//!
//! * A command of a *normal* queue is executed at once by the poster; only delayed starts are kept,
//!   privately.
//! * A command of a *session* queue is executed by whichever rank makes it executable: the CPU
//!   whose put advances the offset, whatever rank it belongs to, or the poster, if there is credit
//!   already ([`claim`]). What that releases comes after it ([`executor`]).
//!
//! No CPU does it alone for ever, and the death of one is noticed: see these modules.
//!
//! To be read in this order: a queue's words ([`config`], [`view`], [`tags`], [`mrq`]); executing
//! ([`claim`], [`executor`], [`perform`], [`reporting`], and the fast path: [`route`],
//! [`fast_put`]); the owner's side ([`own`], [`opening`], [`queue`], [`poster`]).

mod claim;
pub(crate) mod config;
mod death;
pub(crate) mod executor;
mod fast_put;
mod lock;
mod mrq;
mod opening;
pub(crate) mod own;
mod perform;
mod poster;
mod queue;
mod reporting;
mod route;
mod tags;
mod view;

#[cfg(test)]
mod tests;
