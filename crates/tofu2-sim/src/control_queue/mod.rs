//! The parts of control queues shared by both providers: descriptors, ring arithmetic, steering
//! addresses, machines.
//!
//! This module does no I/O and does not depend on the location of a queue's memory. A queue that is
//! kept in words (shared memory) writes commands as [`descriptor`]s and errors as [`status`] words.
//! It checks every word when it reads them back: garbage is an error.

pub(crate) mod descriptor;
pub(crate) mod machine;
pub(crate) mod ring;
pub(crate) mod stadd;
pub(crate) mod status;

pub use machine::QueueMachine;
