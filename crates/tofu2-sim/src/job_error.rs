//! Why a job ended without a result.

use crate::{Stuck, awaited::Lines};
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
    /// The ranks wait for each other and nothing else will happen.
    #[error("deadlock at {at}: nothing can happen any more and {waiting} ranks wait, {first} first{}", Lines { stuck, waiting: *waiting })]
    Deadlock {
        /// When that was found: virtual time, or since the job's start.
        at: rdma_fabric::Time,
        /// How many ranks wait.
        waiting: usize,
        /// The lowest of them.
        first: Rank,
        /// What they wait for; of the first sixteen, in rank order.
        stuck: Vec<Stuck>,
    },
    /// The job could not be started.
    #[error(transparent)]
    Fabric(#[from] FabricError),
}
