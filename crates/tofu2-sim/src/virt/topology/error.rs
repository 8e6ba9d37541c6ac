//! What can be wrong with a shape, or with a question to one.

use super::{Axis, Coordinates, Path};
use rdma_fabric::FabricError;

/// A shape that cannot be, or a place that is not in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// An axis has no node.
    #[error("axis {axis} has length 0; give it at least one node")]
    Empty {
        /// The axis.
        axis: Axis,
    },
    /// An axis is longer than its coordinate, its links or its part of a path id allow.
    #[error("axis {axis} has length {length}; at most {limit} are possible")]
    TooLong {
        /// The axis.
        axis: Axis,
        /// The length asked for.
        length: u32,
        /// The greatest possible.
        limit: u32,
    },
    /// An axis of one node cannot close to a ring.
    #[error("axis {axis} has one node and cannot be a ring; make it a mesh axis")]
    RingOfOne {
        /// The axis.
        axis: Axis,
    },
    /// A node has one link along the axis, so it cannot close to a ring.
    #[error("axis {axis} has one link per node and cannot be a ring; make it a mesh axis")]
    RingOfOneLink {
        /// The axis.
        axis: Axis,
    },
    /// More nodes than a job can simulate.
    #[error("{nodes} nodes; at most {limit} are possible")]
    TooManyNodes {
        /// The product of all lengths.
        nodes: u64,
        /// The greatest possible.
        limit: u32,
    },
    /// No such node number.
    #[error("node {node} does not exist: the shape has nodes 0 to {last}", last = .nodes.saturating_sub(1))]
    NoSuchNode {
        /// The number.
        node: u32,
        /// The number of nodes.
        nodes: u32,
    },
    /// These coordinates are outside the shape.
    #[error("{coordinates} is outside the shape along {axis}, which is {length} long")]
    Outside {
        /// The coordinates.
        coordinates: Coordinates,
        /// The first axis along which they are too great.
        axis: Axis,
        /// Its length.
        length: u32,
    },
    /// No node of a group has these coordinates.
    #[error("path {path} is outside the group along {axis}, which is {length} long")]
    NoSuchPath {
        /// The path coordinates.
        path: Path,
        /// The first axis along which they are too great.
        axis: Axis,
        /// Its length.
        length: u32,
    },
    /// Path coordinates that four bits cannot hold.
    #[error("path {path} does not fit a path id: A and C have one bit, B has two")]
    PathTooLarge {
        /// The path coordinates.
        path: Path,
    },
    /// A path id has four bits.
    #[error("path id {bits} is more than 15")]
    NoSuchPathId {
        /// The number.
        bits: u8,
    },
}

impl From<TopologyError> for FabricError {
    fn from(error: TopologyError) -> Self {
        FabricError::setting("topology", error.to_string())
    }
}
