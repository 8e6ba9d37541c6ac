//! Persistent communication with neighbours that the network runs by itself.

#![forbid(unsafe_code)]

pub mod layout;
pub mod topology;

pub use layout::Layout;
pub use topology::{Edge, Topology};
