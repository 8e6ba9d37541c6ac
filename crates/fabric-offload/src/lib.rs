//! Offloads: work of a network interface without a CPU, in the form in which programs use it.
//!
//! The problem: a CPU that forwards data or takes part in a barrier does not compute in the
//! meantime. Network interfaces can do both, if their commands are prepared in advance.
//!
//! * A [control queue](control_queue) holds commands that peers' arrivals release:
//!   [`ControlQueue::open`].
//! * A [barrier unit](barrier) combines the signals of a group's members: [`barrier::Barrier`],
//!   [`barrier::Reduction`]; [`barrier::ColourBarrier`] is a barrier in the network's switches.
//! * A [triggered] put is issued when words of its own rank reach a number. It needs no
//!   hardware: the CPU issues it in the next call in which its rank waits.
//!
//! The first two are optional services of a provider, whose interfaces are
//! [`rdma_fabric::provider::control_queue`] and [`rdma_fabric::provider::barrier`]. A program
//! recognises a missing service by limits of zero; using it is
//! [`Unsupported`](rdma_fabric::FabricError::Unsupported).

#![forbid(unsafe_code)]

pub mod barrier;
pub mod control_queue;
pub mod triggered;

pub use control_queue::ControlQueue;
pub use triggered::Triggers;
