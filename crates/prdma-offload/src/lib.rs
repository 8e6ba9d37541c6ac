//! Persistent communication with neighbours that the network runs by itself.

#![forbid(unsafe_code)]

pub mod layout;
pub mod topology;

mod agree;
mod publish;

pub use layout::{Layout, LayoutError};
pub use topology::{Cartesian, Edge, Topology, TopologyError};
