//! The barrier unit: barriers and small reductions that run in the network interface, without a
//! CPU.
//!
//! [`provider::barrier`](rdma_fabric::provider::barrier) states what gates and rounds are.
//! [`GateUnit`] is the unit itself; [`Barrier`], [`Reduction`] and [`ReductionTo`] build the usual
//! graphs of gates for a [`Group`](rdma_fabric::Group).
//!
//! # Barriers by colour
//! Other networks have no gates: their switches combine the signals of all nodes of a box.
//! [`ColourBarrier`] is such a barrier, on networks that have one.

mod channel;
mod collectives;
mod colour;
mod plan;
mod unit;

pub use collectives::{Barrier, Reduced, Reduction, ReductionTo};
pub use colour::ColourBarrier;
pub use plan::GraphShape;
pub use rdma_fabric::provider::barrier::*;
pub use unit::{GateUnit, Gates};
