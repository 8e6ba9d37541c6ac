//! Why a launch failed.

use rdma_fabric::FabricError;
use tofu2_sim::JobError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum LaunchError {
    #[error(transparent)]
    Job(#[from] JobError),
    #[cfg(feature = "observe")]
    #[error(transparent)]
    Observe(#[from] observe::ObserveError),
}

impl From<FabricError> for LaunchError {
    fn from(error: FabricError) -> Self {
        LaunchError::Job(error.into())
    }
}
