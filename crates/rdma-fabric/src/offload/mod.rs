//! Work that a network interface does without a CPU: commands that peers' arrivals release,
//! barriers and small reductions. Also triggered puts, which a CPU executes if there are no queues
//! for them.
//!
//! The core does not depend on this module, except for three names: the traits by which a
//! [provider](crate::provider::Provider) offers it, the error types that
//! [`FabricError`](crate::FabricError) holds, and the board of [armed puts](triggered::Triggers),
//! which are executed in a group's waits.

pub mod barrier;
pub mod control_queue;
pub mod triggered;
