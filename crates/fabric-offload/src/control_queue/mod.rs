//! Control queues like those of Tofu network interfaces, as programs use them.
//!
//! [`provider::control_queue`](rdma_fabric::provider::control_queue) defines a queue's rings, its
//! session mode, and the errors of commands.

mod program;
mod queue;

pub use program::QueueProgram;
pub use queue::ControlQueue;
pub use rdma_fabric::provider::control_queue::*;
