//! What the ranks of a measurement share outside the fabric that is measured: memory, meetings, their cores, and
//! the limits of the machine over that memory.

pub(crate) mod bare;
pub(crate) mod futex;
pub(crate) mod job;
pub(crate) mod limit;
pub(crate) mod lines;
pub(crate) mod placement;
pub(crate) mod rendezvous;
mod watch;
