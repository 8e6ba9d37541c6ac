//! Why a job ended without a result.

use crate::{Stuck, awaited::Lines, virt::BadFault};
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
    /// This machine has too little memory for the simulation. (A simulated machine's is [`FabricError::OutOfMemory`].)
    #[error("too little memory for {what}: {needed} bytes are needed and {available} can be had")]
    TooLittleMemory {
        /// What for.
        what: String,
        /// Bytes needed. An estimate, of what is needed at least.
        needed: u64,
        /// Bytes that the system says can be had.
        available: u64,
    },
    /// A fault is of a node, rank or queue that the job hasn't.
    #[error(transparent)]
    Fault(#[from] BadFault),
    /// The job could not be started.
    #[error(transparent)]
    Fabric(#[from] FabricError),
}
