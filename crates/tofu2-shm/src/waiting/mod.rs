//! The waits of a rank, and the events that end them.
//!
//! Read the modules in this order: the [`doorbell`], by which a rank that writes another rank's
//! memory wakes it; a [`wait`] and how it is polled again, either by [`block_on::block_on`], which
//! parks its own thread, or by another executor, whose tasks register [`wakers`]; and the
//! [`watchdog`], which detects deadlocked jobs from the [`report`]s of parked ranks.

pub(crate) mod block_on;
pub(crate) mod block_on_short;
pub(crate) mod doorbell;
pub(crate) mod report;
pub(crate) mod wait;
pub(crate) mod wakers;
pub(crate) mod watchdog;

pub(crate) use block_on::block_on;
pub(crate) use wait::Wait;
pub(crate) use watchdog::WaitsFor;
