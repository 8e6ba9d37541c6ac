//! The errors of calls on a window.

use super::EpochKind;
use crate::LockError;
use rdma_fabric::{FabricError, Rank};

/// The failure of a call on a window.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WindowError {
    /// The window's lock failed.
    #[error("{0}")]
    Lock(#[from] LockError),
    /// The underlying fabric failed.
    #[error("{0}")]
    Fabric(#[from] FabricError),
    /// This rank is inside an epoch of the window that excludes one of the requested kind, in the
    /// same task or in another one. No epoch was opened.
    #[error("{asked} begun while this rank is inside {open} of the same window")]
    EpochOpen {
        /// The open epoch that excludes it.
        open: EpochKind,
        /// The requested epoch.
        asked: EpochKind,
    },
    /// The rank is not one of those for which the epoch was started.
    #[error("{rank} is none of the ranks that the epoch was started for")]
    NotInEpoch {
        /// The rank that was addressed.
        rank: Rank,
    },
    /// Post and start need two words at each member for every other member; windows beyond this
    /// limit do not have them.
    #[error("post and start work in windows of at most {limit} members; this one has {members}")]
    TooManyMembers {
        /// The number of members of the window.
        members: usize,
        /// The largest number of members supported.
        limit: usize,
    },
    /// Another member could not register its memory, so the window was not created.
    #[error("{rank} could not register the memory that it brings into the window")]
    NotAttached {
        /// The first member whose registration failed.
        rank: Rank,
    },
}

/// Result of a call on a window.
pub type WindowResult<T> = Result<T, WindowError>;
