//! The errors of calls.

use crate::{mapping::MappingError, plan::PlanError};
use core::ops::RangeInclusive;
use prdma_offload::{LayoutError, PrdmaError};
use rdma_fabric::{FabricError, Rank};
use rma_lock::WindowError;

/// A call that failed or was refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum XmpError {
    /// The fabric failed underneath.
    #[error("{0}")]
    Fabric(#[from] FabricError),
    /// An exchange failed, or cells are in use. It contains [`FabricError::PeerLost`] if a node was
    /// lost.
    #[error("{0}")]
    Exchange(#[source] PrdmaError),
    /// A window failed.
    #[error("{0}")]
    Window(#[source] WindowError),
    /// A mapping is impossible.
    #[error("{0}")]
    Mapping(#[from] MappingError),
    /// A reflect is impossible.
    #[error("{0}")]
    Plan(#[from] PlanError),
    /// The node set and the group of ranks have different sizes.
    #[error("a node set of {nodes} nodes does not fit a group of {ranks} ranks")]
    NodeSet {
        /// Nodes of the set.
        nodes: usize,
        /// Ranks of the group.
        ranks: usize,
    },
    /// An array is mapped onto nodes other than those that execute the call.
    #[error("the array is mapped onto {array}, but {executing} executes the call")]
    OtherNodes {
        /// The node set of the array's mapping.
        array: String,
        /// The node set that executes the call.
        executing: String,
    },
    /// Nodes gave different arguments to a global call; nothing was moved.
    #[error("nodes gave different {what}; all of them must give the same")]
    Disagreement {
        /// The argument.
        what: &'static str,
    },
    /// A reflect touches cells that another one of the same array moves; nothing was moved.
    #[error("asynchronous communication {id} moves some of the same cells: wait for it first")]
    InFlight {
        /// The id of the communication in progress.
        id: u64,
    },
    /// A call failed at another node.
    #[error("the call failed at another node, which knows why; nothing was made anywhere")]
    ElsewhereFailed,
    /// An element that this node does not have.
    #[error("node {node} has no cell for element {index:?}")]
    NotHere {
        /// The asking node.
        node: usize,
        /// The element's indices.
        index: Vec<i64>,
    },
    /// A section that is not inside the cells of this node.
    #[error("section {section} is not inside the {extents:?} cells of the node")]
    OutsideCells {
        /// The section.
        section: String,
        /// The cells that the node has along each dimension.
        extents: Vec<usize>,
    },
    /// A transport that can't be used.
    #[error("transport {transport} can't be used here: {why}")]
    Transport {
        /// The transport.
        transport: String,
        /// The reason.
        why: String,
    },
    /// An id that is not a tag of the machine's RDMA interface.
    #[error(
        "id {id} is not a tag: asynchronous reflects by transport {transport} can have ids {} to {}",
        .allowed.start(), .allowed.end()
    )]
    AsyncId {
        /// The transport.
        transport: String,
        /// The id given.
        id: u64,
        /// The possible ids.
        allowed: RangeInclusive<u64>,
    },
    /// A node set of some ranks, on a machine whose RDMA interface needs all of them.
    #[error("transport {transport} needs a node set of all {ranks} ranks, not of {nodes}")]
    NotWorld {
        /// The transport.
        transport: String,
        /// Nodes of the set.
        nodes: usize,
        /// Ranks of the job.
        ranks: usize,
    },
    /// Threads to pack with can't be started.
    #[error("{threads} threads can't be started: {why}")]
    Threads {
        /// The number of threads.
        threads: usize,
        /// The reason.
        why: String,
    },
    /// No transport has this name.
    #[error("{name:?} is not a transport: the transports are {known}")]
    NoTransport {
        /// The name.
        name: String,
        /// The existing names.
        known: String,
    },
}

/// Result of a call.
pub type Result<T, E = XmpError> = core::result::Result<T, E>;

impl XmpError {
    /// Returns the rank that was lost or has left according to this error, as [`FabricError::gone`]
    /// does.
    pub fn gone(&self) -> Option<Rank> {
        match self {
            XmpError::Fabric(error) => PrdmaError::from(error.clone()).gone(),
            XmpError::Exchange(error) => error.gone(),
            _ => None,
        }
    }
}

impl From<PrdmaError> for XmpError {
    fn from(error: PrdmaError) -> Self {
        match error {
            PrdmaError::Fabric(error) => XmpError::Fabric(error),
            PrdmaError::ElsewhereFailed => XmpError::ElsewhereFailed,
            error => XmpError::Exchange(error),
        }
    }
}

impl From<LayoutError> for XmpError {
    fn from(error: LayoutError) -> Self {
        XmpError::Exchange(error.into())
    }
}

impl From<WindowError> for XmpError {
    fn from(error: WindowError) -> Self {
        match error {
            WindowError::Fabric(error) => XmpError::Fabric(error),
            error => XmpError::Window(error),
        }
    }
}
