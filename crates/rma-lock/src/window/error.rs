//! The errors of calls on a window.

use super::EpochKind;
use crate::LockError;
use rdma_fabric::{FabricError, Rank};

/// A call on a window that did not do what it was asked to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WindowError {
    /// The window's lock failed.
    #[error("{0}")]
    Lock(#[from] LockError),
    /// The fabric failed underneath.
    #[error("{0}")]
    Fabric(#[from] FabricError),
    /// This rank is inside an epoch of the window that excludes one of the kind asked for, be it in
    /// the same task or in another one. Nothing was begun.
    #[error("{asked} begun while this rank is inside {open} of the same window")]
    EpochOpen {
        /// The epoch that the rank is inside.
        open: EpochKind,
        /// The epoch that the rank asked for.
        asked: EpochKind,
    },
    /// The rank is not among those that the epoch was started for.
    #[error("{rank} is none of the ranks that the epoch was started for")]
    NotInEpoch {
        /// The rank addressed.
        rank: Rank,
    },
    /// Post and start need two words at each member for every other member; windows beyond this
    /// limit have none.
    #[error("post and start work in windows of at most {limit} members; this one has {members}")]
    TooManyMembers {
        /// Members of the window.
        members: usize,
        /// The largest number of members supported.
        limit: usize,
    },
    /// Another member could not register its memory, so there is no window.
    #[error("{rank} could not register the memory that it brings into the window")]
    NotAttached {
        /// The first member that could not.
        rank: Rank,
    },
}

/// Result of a call on a window.
pub type WindowResult<T> = Result<T, WindowError>;
