//! Why there is no such topology.

use core::fmt;
use rdma_fabric::FabricError;

/// Which of a member's two lists of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// Whom blocks come from.
    Source,
    /// Whom blocks go to.
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

/// A topology that is impossible, or that its members do not agree on (`MPI_ERR_TOPOLOGY`,
/// `MPI_ERR_DIMS`, `MPI_ERR_RANK`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// The number of a member that there is not.
    #[error("there is no member {member} among {members}")]
    NotAMember {
        /// The number given.
        member: usize,
        /// How many members there are.
        members: usize,
    },
    /// A slot names a member that there is not.
    #[error("{side} {slot} is member {member}, of {members}")]
    NoSuchMember {
        /// The list.
        side: Side,
        /// The slot.
        slot: usize,
        /// Whom it names.
        member: usize,
        /// How many members there are.
        members: usize,
    },
    /// Weights are not as many as slots.
    #[error("{weights} weights for {slots} slots of the {side} side")]
    Weights {
        /// The list.
        side: Side,
        /// How many weights.
        weights: usize,
        /// How many slots.
        slots: usize,
    },
    /// An edge that only one end knows. All members get the same one.
    #[error(
        "member {member} has an edge with label {label} as {side} {slot}; member {peer} has no such {}",
        .side.other()
    )]
    Unmatched {
        /// Who has the edge.
        member: usize,
        /// In which list.
        side: Side,
        /// The slot.
        slot: usize,
        /// The edge's label.
        label: u32,
        /// Who does not have it.
        peer: usize,
    },
    /// An edge that a member gave names one that there is not. All members get this.
    #[error("an edge given by member {contributor} names member {named}, of {members}")]
    NoSuchEnd {
        /// Who gave the edge.
        contributor: usize,
        /// Whom the edge names.
        named: usize,
        /// How many members there are.
        members: usize,
    },
    /// Another member met an error of its own, which it gets; nothing came of the call.
    #[error("member {member} could not take part")]
    Failed {
        /// The first such member.
        member: usize,
    },
    /// A grid has as many members as its extents multiply to.
    #[error("a grid of {wanted:?} members over {members}")]
    WrongMembers {
        /// Members of the grid; `None` if they can't be counted.
        wanted: Option<usize>,
        /// How many there are.
        members: usize,
    },
    /// Something is given for each dimension, and not of the grid's number.
    #[error("{given} values for a grid of {dims} dimensions")]
    Dimensions {
        /// How many are given.
        given: usize,
        /// Dimensions of the grid.
        dims: usize,
    },
    /// There is no such dimension.
    #[error("there is no dimension {dim} in a grid of {dims}")]
    NoSuchDim {
        /// The dimension asked for.
        dim: usize,
        /// Dimensions of the grid.
        dims: usize,
    },
    /// The fabric failed underneath.
    #[error(transparent)]
    Fabric(#[from] FabricError),
}
