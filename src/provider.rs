//! What ranks run on, by name.

use crate::settings::setting;
use rdma_fabric::{Fabric, FabricError};
use std::str::FromStr;
use tofu2_sim::shm::{self, JOB_VARIABLE};

/// What the ranks of a program run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Provider {
    /// Processes of this machine over shared memory, in wall-clock time.
    #[default]
    Shm,
    /// Threads of this process, in wall-clock time.
    Threads,
    /// Tasks of one simulator, in virtual time.
    Virt,
}

/// The error for a name that no provider has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is none of shm, threads, virt")]
pub struct UnknownProvider;

impl FromStr for Provider {
    type Err = UnknownProvider;

    fn from_str(name: &str) -> Result<Self, UnknownProvider> {
        match name {
            "shm" => Ok(Provider::Shm),
            "threads" => Ok(Provider::Threads),
            "virt" => Ok(Provider::Virt),
            _ => Err(UnknownProvider),
        }
    }
}

impl Provider {
    /// Returns the rank that this process is, for a library whose callers own `main`, such as a C
    /// library, between its "open" and "close" calls.
    ///
    /// `onesided run` starts the processes. Futures of the fabric run on the calling thread, by
    /// [`block_on`](crate::block_on). The rank leaves its job when the last clone of its fabric is
    /// dropped; a process that ends before that is lost to its peers.
    ///
    /// # Errors
    /// [`FabricError::Setting`] if this process was not started as a rank,
    /// [`FabricError::RankTaken`] if this was called before, [`FabricError::Unsupported`] if ranks
    /// are not processes here.
    pub fn attach(self) -> Result<Fabric, FabricError> {
        match self {
            Provider::Shm => shm::from_env()?
                .ok_or_else(|| setting(JOB_VARIABLE, "this process is no rank; `onesided run` starts some".into())),
            Provider::Threads => Err(FabricError::Unsupported { feature: &"attaching to ranks that are threads" }),
            Provider::Virt => Err(FabricError::Unsupported { feature: &"attaching to ranks in virtual time" }),
        }
    }
}
