//! The error of a rank whose helper failed.

use crate::JobError;
use rdma_fabric::Rank;
use std::error::Error;

/// The error of a rank that was lost because one of its [helpers](rdma_fabric::Fabric::helper)
/// returned an error: its [`RankFailed`](crate::JobError::RankFailed) holds this.
#[derive(Debug, thiserror::Error)]
#[error("its helper `{name}` failed: {error}")]
pub struct HelperFailed {
    /// The helper's name.
    pub name: &'static str,
    /// The error that it returned.
    pub error: Box<dyn Error + Send + Sync>,
}

/// The failure of a helper.
#[derive(Debug)]
pub enum HelperEnd {
    /// It returned an error.
    Failed(HelperFailed),
    /// It panicked.
    Panicked {
        /// The helper's name.
        name: &'static str,
        /// The panic's message, if it was text.
        message: String,
    },
}

impl HelperEnd {
    /// Returns the error of the helper's rank.
    pub fn of(self, rank: Rank) -> JobError {
        match self {
            HelperEnd::Failed(failed) => JobError::RankFailed { rank, error: failed.into() },
            HelperEnd::Panicked { name, message } => {
                JobError::RankPanicked { rank, message: format!("its helper `{name}` panicked: {message}") }
            }
        }
    }
}
