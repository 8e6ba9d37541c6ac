//! A six-dimensional mesh/torus of groups.

#![deny(clippy::arithmetic_side_effects)]

use super::{
    Axis, Coordinates, Path, PathId, Port, Route,
    axes::{Extent, write_extents},
};
use rdma_fabric::FabricError;
use std::fmt;

/// The maximum number of nodes of a network.
pub(crate) const MAX_NODES: u32 = 1 << 24;

/// Tofu's network: groups of 2 x 3 x 2 nodes along A, B, C, arranged along X, Y, Z. Node numbers
/// count C fastest and X slowest.
///
/// A node has ten links: two each along X, Y, Z and B, one each along A and C. The axes that close
/// into rings are a parameter. Routes take each leg in the shorter direction, or upwards if both
/// are equally long (an assumption).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TofuShape {
    extents: [Extent; 6],
}

impl TofuShape {
    /// Creates a shape from the lengths of X, Y, Z, A, B, C and the set of those that are rings.
    ///
    /// # Errors
    /// [`TopologyError`] for a length of 0, or above 256 (X, Y, Z), 2 (A, C), 4 (B); for a ring of
    /// one node, or along A or C; for more than 2^24 nodes.
    pub fn new(lengths: [u32; 6], rings: [bool; 6]) -> Result<Self, TopologyError> {
        let mut extents = [Extent { length: 1, wraps: false }; 6];
        for axis in Axis::ALL {
            let (length, wraps) = (lengths[axis.index()], rings[axis.index()]);
            let limit = match axis {
                Axis::X | Axis::Y | Axis::Z => 256,
                Axis::A | Axis::C => 2,
                Axis::B => 4,
            };
            match length {
                0 => return Err(TopologyError::Empty { axis }),
                _ if length > limit => return Err(TopologyError::TooLong { axis, length, limit }),
                1 if wraps => return Err(TopologyError::RingOfOne { axis }),
                _ if wraps && !axis.has_two_links() => return Err(TopologyError::RingOfOneLink { axis }),
                _ => extents[axis.index()] = Extent { length, wraps },
            }
        }
        let nodes = lengths.iter().map(|&length| u64::from(length)).product();
        if nodes > u64::from(MAX_NODES) {
            return Err(TopologyError::TooManyNodes { nodes, limit: MAX_NODES });
        }
        Ok(TofuShape { extents })
    }

    /// Creates a shape of `x`, `y` and `z` groups of 2 x 3 x 2 along X, Y and Z, with the usual
    /// rings: X, Z and B are rings; Y, A and C are not. (X or Z with one or two groups is a mesh
    /// too: a ring would make no path shorter.)
    ///
    /// # Errors
    /// [`TopologyError`] for a length of 0 or above 256, and for more than 2^24 nodes.
    pub fn of_groups([x, y, z]: [u32; 3]) -> Result<Self, TopologyError> {
        Self::new([x, y, z, 2, 3, 2], [x > 2, false, z > 2, false, true, false])
    }

    /// Returns the number of nodes along an axis.
    pub fn length(&self, axis: Axis) -> u32 {
        self.extent(axis).length
    }

    /// Returns whether an axis closes to a ring.
    pub fn is_ring(&self, axis: Axis) -> bool {
        self.extent(axis).wraps
    }

    /// Returns the number of nodes.
    pub fn nodes(&self) -> u32 {
        self.extents.iter().map(|extent| extent.length).product()
    }

    /// Returns a node's coordinates.
    ///
    /// # Errors
    /// [`TopologyError::NoSuchNode`].
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "of a shape of at most `MAX_NODES` nodes, none of whose axes has length 0"
    )]
    pub fn coordinates(&self, node: u32) -> Result<Coordinates, TopologyError> {
        let nodes = self.nodes();
        if node >= nodes {
            return Err(TopologyError::NoSuchNode { node, nodes });
        }
        let (mut rest, mut at) = (node, [0; 6]);
        for (place, extent) in at.iter_mut().zip(&self.extents).rev() {
            *place = (rest % extent.length) as u8;
            rest /= extent.length;
        }
        Ok(at.into())
    }

    /// Returns the number of the node at these coordinates.
    ///
    /// # Errors
    /// [`TopologyError::Outside`].
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "of a shape of at most `MAX_NODES` nodes, none of whose axes has length 0"
    )]
    pub fn node(&self, coordinates: Coordinates) -> Result<u32, TopologyError> {
        let mut node = 0;
        for axis in Axis::ALL {
            let (at, length) = (u32::from(coordinates.along(axis)), self.length(axis));
            if at >= length {
                return Err(TopologyError::Outside { coordinates, axis, length });
            }
            node = node * length + at;
        }
        Ok(node)
    }

    /// Returns the node to which a port's link leads; `None` at the end of a mesh axis, where there
    /// is no link.
    ///
    /// # Errors
    /// [`TopologyError::NoSuchNode`].
    pub fn neighbour(&self, node: u32, port: Port) -> Result<Option<u32>, TopologyError> {
        let at = self.coordinates(node)?;
        let (axis, extent) = (port.axis(), self.extent(port.axis()));
        let here = u32::from(at.along(axis));
        let up = match port {
            Port::A | Port::C => here == 0,
            _ => port == Port::along(axis, true),
        };
        let (next, wrapped) = extent.step(here, up);
        if wrapped && !extent.wraps {
            return Ok(None);
        }
        self.node(at.with(axis, next as u8)).map(Some)
    }

    /// Returns the path that a message to a node takes by default: the node's own in-group
    /// coordinates.
    ///
    /// # Errors
    /// [`TopologyError::NoSuchNode`].
    pub fn default_path(&self, to: u32) -> Result<Path, TopologyError> {
        let Coordinates { a, b, c, .. } = self.coordinates(to)?;
        Ok(Path { a, b, c })
    }

    /// Returns all paths between two groups, one for each node of a group: 12 in a full one.
    pub fn paths(&self) -> impl Iterator<Item = Path> + use<> {
        let [a, b, c] = [Axis::A, Axis::B, Axis::C].map(|axis| self.length(axis) as u8);
        (0..a).flat_map(move |a| (0..b).flat_map(move |b| (0..c).map(move |c| Path { a, b, c })))
    }

    /// Returns the number of links on the route between two nodes, along `path` or the default
    /// path. In-group legs in both groups are counted. The result is 0 within a node.
    ///
    /// # Errors
    /// [`TopologyError::NoSuchNode`], [`TopologyError::NoSuchPath`].
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "of a shape of at most `MAX_NODES` nodes, none of whose axes has length 0"
    )]
    pub fn hops(&self, from: u32, to: u32, path: Option<Path>) -> Result<u32, TopologyError> {
        let (at, goal) = (self.coordinates(from)?, self.coordinates(to)?);
        let via = self.via(to, path)?;
        if from == to {
            return Ok(0);
        }
        let via = Coordinates { a: via.a, b: via.b, c: via.c, ..at };
        Ok(self.distance(at, via) + self.distance(via, goal))
    }

    /// Returns the links of the route between two nodes, along `path` or the default path. There
    /// are none within a node.
    ///
    /// # Errors
    /// [`TopologyError::NoSuchNode`], [`TopologyError::NoSuchPath`].
    pub fn route(&self, from: u32, to: u32, path: Option<Path>) -> Result<Route, TopologyError> {
        let (at, goal) = (self.coordinates(from)?, self.coordinates(to)?);
        let via = PathId::try_from(self.via(to, path)?)?;
        Ok(Route::new(*self, at, goal, via))
    }

    fn via(&self, to: u32, path: Option<Path>) -> Result<Path, TopologyError> {
        path.map_or_else(|| self.default_path(to), |path| self.check_path(path).map(|()| path))
    }

    /// Checks that a node of a group has these coordinates.
    pub(super) fn check_path(&self, path: Path) -> Result<(), TopologyError> {
        for (axis, at) in [(Axis::A, path.a), (Axis::B, path.b), (Axis::C, path.c)] {
            let length = self.length(axis);
            if u32::from(at) >= length {
                return Err(TopologyError::NoSuchPath { path, axis, length });
            }
        }
        Ok(())
    }

    /// Returns the length of the shortest way along all axes.
    pub(super) fn distance(&self, a: Coordinates, b: Coordinates) -> u32 {
        Axis::ALL.iter().map(|&axis| self.extent(axis).steps(a.along(axis).into(), b.along(axis).into()).0).sum()
    }

    #[inline]
    pub(super) fn extent(&self, axis: Axis) -> Extent {
        self.extents[axis.index()]
    }
}

impl fmt::Debug for TofuShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_extents(&self.extents, f)
    }
}

/// Writes the lengths of all axes; those that are not rings have an `m`.
impl fmt::Display for TofuShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// An impossible shape, or a place that is not in the shape.
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
    /// An axis of one node cannot close into a ring.
    #[error("axis {axis} has one node and cannot be a ring; make it a mesh axis")]
    RingOfOne {
        /// The axis.
        axis: Axis,
    },
    /// Each node has only one link along the axis, so it cannot close into a ring.
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
    /// The shape has no node of this number.
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
        /// The first axis along which they are too large.
        axis: Axis,
        /// Its length.
        length: u32,
    },
    /// No node of a group has these coordinates.
    #[error("path {path} is outside the group along {axis}, which is {length} long")]
    NoSuchPath {
        /// The path coordinates.
        path: Path,
        /// The first axis along which they are too large.
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
