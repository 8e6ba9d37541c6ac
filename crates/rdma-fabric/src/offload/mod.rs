//! Work that a network interface does without a CPU, as programs use it: commands that peers'
//! arrivals release, barriers and small reductions. Also triggered puts, which a CPU executes if
//! there are no queues for them.
//!
//! [`crate::provider::control_queue`] and [`crate::provider::barrier`] are the interfaces beneath.
//! The core depends on one name of this module: the board of [armed puts](triggered::Triggers),
//! which are executed in a group's waits.

pub mod barrier;
pub mod control_queue;
pub mod triggered;
