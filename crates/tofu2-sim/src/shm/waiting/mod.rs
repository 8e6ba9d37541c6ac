//! How a rank waits, and what ends its wait.
//!
//! To be read in this order: the [`doorbell`], by which a rank that writes another's memory wakes
//! it; a [`wait`] and how it gets polled again, either by [`block_on::block_on`], which parks its
//! own thread, or by a foreign executor, whose tasks leave [`wakers`]; and the [`watchdog`], which
//! finds deadlocked jobs by what parked ranks [`report`].

pub(crate) mod block_on;
pub(crate) mod doorbell;
pub(crate) mod report;
pub(crate) mod wait;
pub(crate) mod wakers;
pub(crate) mod watchdog;

pub(crate) use block_on::block_on;
pub(crate) use wait::Wait;
pub(crate) use watchdog::WaitsFor;
