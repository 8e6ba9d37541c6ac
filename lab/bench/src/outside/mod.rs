//! What the ranks of a measurement share outside the fabric that is measured: memory, meetings, their cores, and
//! the limits of the machine over that memory.

pub(crate) mod futex;
pub(crate) mod job;
pub(crate) mod placement;
mod watch;

pub(crate) use limits::{bare, limit, lines, rendezvous};
