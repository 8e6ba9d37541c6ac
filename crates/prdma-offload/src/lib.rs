//! Persistent communication with neighbours that the network runs by itself.

#![forbid(unsafe_code)]

pub mod layout;
pub mod topology;

#[cfg_attr(not(test), expect(dead_code))]
mod publish;

pub use layout::{Layout, LayoutError};
pub use topology::{Edge, Topology};
