//! Why a job ended without a result.

use rdma_fabric::{FabricError, Rank};
use std::error::Error;

/// A job that did not end well. When several ranks failed, the first one is named.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    /// A rank's program returned an error.
    #[error("{rank} failed: {error}")]
    RankFailed {
        /// Which rank.
        rank: Rank,
        /// What it returned.
        error: Box<dyn Error + Send + Sync>,
    },
    /// A rank's program panicked.
    #[error("{rank} panicked: {message}")]
    RankPanicked {
        /// Which rank.
        rank: Rank,
        /// The panic's message, if it was text.
        message: String,
    },
    /// The simulated ranks wait for each other and nothing else will happen.
    #[error("deadlock at {at}: no event is pending and {waiting} ranks wait, {first} first")]
    Deadlock {
        /// Virtual time.
        at: rdma_fabric::Time,
        /// How many ranks wait.
        waiting: usize,
        /// The lowest of them.
        first: Rank,
    },
    /// The job could not be started.
    #[error(transparent)]
    Fabric(#[from] FabricError),
}
