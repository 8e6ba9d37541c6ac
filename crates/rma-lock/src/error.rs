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
    /// A guard of this lock was dropped without release; the lock is still taken on its behalf.
    #[error("a guard of this lock was dropped without release")]
    GuardLeaked,
    /// A future of this lock was dropped half-way; what it had done at the home is unknown.
    #[error("an operation of this lock was dropped half-way")]
    Interrupted,
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
