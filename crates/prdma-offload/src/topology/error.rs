//! The errors of topologies.

use core::fmt;
use rdma_fabric::FabricError;

/// One of a member's two lists of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The members from which blocks are received.
    Source,
    /// The members to which blocks are sent.
    Destination,
}

impl Side {
    /// Returns the side of the same edges at the other end.
    pub(crate) fn other(self) -> Side {
        match self {
            Side::Source => Side::Destination,
            Side::Destination => Side::Source,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Source => "source",
            Side::Destination => "destination",
        })
    }
}

/// A topology that is invalid, or on which its members do not agree (`MPI_ERR_TOPOLOGY`,
/// `MPI_ERR_DIMS`, `MPI_ERR_RANK`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// The given number is not a member's.
    #[error("there is no member {member} among {members}")]
    NotAMember {
        /// The given number.
        member: usize,
        /// The number of members.
        members: usize,
    },
    /// A slot refers to a member that does not exist.
    #[error("{side} {slot} is member {member}, of {members}")]
    NoSuchMember {
        /// The list.
        side: Side,
        /// The slot.
        slot: usize,
        /// The member to which it refers.
        member: usize,
        /// The number of members.
        members: usize,
    },
    /// The number of weights differs from the number of slots.
    #[error("{weights} weights for {slots} slots of the {side} side")]
    Weights {
        /// The list.
        side: Side,
        /// The number of weights.
        weights: usize,
        /// The number of slots.
        slots: usize,
    },
    /// An edge is listed at only one end. All members receive the same error.
    #[error(
        "member {member} has an edge with label {label} as {side} {slot}; member {peer} has no such {}",
        .side.other()
    )]
    Unmatched {
        /// The member that has the edge.
        member: usize,
        /// The list that contains it.
        side: Side,
        /// The slot.
        slot: usize,
        /// The edge's label.
        label: u32,
        /// The member that lacks the edge.
        peer: usize,
    },
    /// An edge passed by a member refers to a nonexistent member. All members receive this error.
    #[error("an edge given by member {contributor} names member {named}, of {members}")]
    NoSuchEnd {
        /// The member that passed the edge.
        contributor: usize,
        /// The member to which the edge refers.
        named: usize,
        /// The number of members.
        members: usize,
    },
    /// Another member had an error, which only that member receives; the call had no effect.
    #[error("member {member} could not take part")]
    Failed {
        /// The first such member.
        member: usize,
    },
    /// The number of members of a grid must be the product of its extents.
    #[error("a grid of {wanted:?} members over {members}")]
    WrongMembers {
        /// Members of the grid; `None` if they can't be counted.
        wanted: Option<usize>,
        /// The number of members of the group.
        members: usize,
    },
    /// The number of values given differs from the grid's number of dimensions.
    #[error("{given} values for a grid of {dims} dimensions")]
    Dimensions {
        /// The number of values given.
        given: usize,
        /// Dimensions of the grid.
        dims: usize,
    },
    /// There is no such dimension.
    #[error("there is no dimension {dim} in a grid of {dims}")]
    NoSuchDim {
        /// The requested dimension.
        dim: usize,
        /// Dimensions of the grid.
        dims: usize,
    },
    /// The underlying fabric failed.
    #[error("{0}")]
    Fabric(#[from] FabricError),
}
