//! Errors of calls. C functions return a failure value instead; the text is for standard error.

use acp::AcpError;
use core::ffi::c_int;
use observe::ObserveError;
use rdma_fabric::FabricError;
use tofu2_shm::nic::ShareError;

/// The result of a call.
pub(crate) type Result<T, E = CallError> = core::result::Result<T, E>;

/// The error of a failed call.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    #[error("acp_init has not been called, or has failed")]
    NotRunning,
    #[error("acp_finalize has been called")]
    Finalized,
    #[error("acp_init was called before")]
    Running,
    #[error("another thread is in acp_init, acp_reset or acp_finalize")]
    Changing,
    #[error("rank {rank} does not exist: the job has ranks 0 to {}", .ranks.saturating_sub(1))]
    NoSuchRank { rank: c_int, ranks: usize },
    #[error("{0:#x} is not a global address")]
    NoAddress(u64),
    #[error("{0:#x} is not the key of a registered region of this process")]
    NoKey(u64),
    #[error("address {address:#x} is not in the {len} bytes that were registered at {start:#x}")]
    NotInRegion { address: usize, start: usize, len: usize },
    #[error("{0}")]
    Argument(&'static str),
    #[error("{what} is a null pointer")]
    Null { what: &'static str },
    #[error("{0:#x} is not an address in memory of this process")]
    NotOwn(u64),
    #[error("the memory at address {0:#x} is starter memory, which has global addresses already")]
    Starter(usize),
    #[error("a region has at least 1 byte")]
    Empty,
    #[error("a process has no colour {0}")]
    NoSuchColour(c_int),
    #[error("the middle layer failed to start: {function} returned {code}")]
    Middle { function: &'static str, code: c_int },
    #[error("{0}")]
    Options(String),
    #[error("the ranks do not share memory")]
    NotShared,
    #[error(transparent)]
    Acp(#[from] AcpError),
    #[error(transparent)]
    Fabric(#[from] FabricError),
    #[error(transparent)]
    Share(#[from] ShareError),
    #[error(transparent)]
    Observe(#[from] ObserveError),
}

impl CallError {
    /// Returns whether the job cannot continue: a rank was lost, has aborted the job, or all ranks
    /// wait for each other.
    pub(crate) fn is_of_job(&self) -> bool {
        use FabricError::{Aborted, Deadlock, PeerLost};
        match self {
            CallError::Fabric(error)
            | CallError::Acp(AcpError::Fabric(error))
            | CallError::Share(ShareError::Fabric(error)) => {
                matches!(error, PeerLost { .. } | Aborted { .. } | Deadlock { .. })
            }
            _ => false,
        }
    }
}
