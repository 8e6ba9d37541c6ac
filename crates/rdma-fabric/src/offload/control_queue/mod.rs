//! Control queues like those of Tofu network interfaces, as programs use them.
//!
//! [`provider::control_queue`](crate::provider::control_queue) states what a queue does: its rings,
//! session mode, and the errors of commands.

mod queue;

pub use crate::provider::control_queue::*;
pub use queue::{ControlQueue, QueueUnit};
