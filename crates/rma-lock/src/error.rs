//! Why a lock call failed.

use rdma_fabric::{FabricError, Rank};

/// A lock call that did not do what it was asked to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// The fabric failed underneath.
    #[error(transparent)]
    Fabric(#[from] FabricError),
    /// The deadline came first. The lock is not held and nothing is left to undo.
    #[error("the deadline came before the lock")]
    TimedOut,
    /// An earlier operation of this rank on this lock failed between two steps of the protocol; what it left in the lock's words is
    /// unknown. Guards still held can be released.
    #[error("an earlier operation of this lock failed half-way: {0}")]
    Broken(Box<LockError>),
    /// More acquisitions of one rank wait than its lock has queue nodes.
    #[error("all {nodes} queue nodes of {rank} are in use")]
    TooManyWaiting {
        /// The rank.
        rank: Rank,
        /// Its queue nodes per lock.
        nodes: usize,
    },
    /// A lock word holds what no rank that keeps to the protocol writes.
    #[error("{word} of the lock holds {value:#x}")]
    Corrupt {
        /// Which word.
        word: &'static str,
        /// Its value.
        value: u64,
    },
}

/// Result of a lock call.
pub type Result<T, E = LockError> = core::result::Result<T, E>;

/// How a step of the protocol ends when it does not go on.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// In an orderly way: nothing is left to undo.
    GaveUp(LockError),
    /// Between two steps: what is in the lock's words is unknown.
    Broken(LockError),
}

impl From<FabricError> for Trouble {
    fn from(error: FabricError) -> Self {
        Trouble::Broken(error.into())
    }
}
