//! The providers that ranks run on, by name.

use rdma_fabric::{Fabric, FabricError};
use std::str::FromStr;
use tofu2_sim::shm;

/// The provider on which the ranks of a program run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Backend {
    /// Processes of this machine over shared memory, in wall-clock time.
    #[default]
    Shm,
    /// Threads of this process, in wall-clock time.
    Threads,
    /// Processes of several machines: over shared memory within each, with the feature `ofi` over
    /// libfabric between them, in wall-clock time. Linux only.
    Cluster,
    /// Tasks of one simulator, in virtual time.
    Virt,
}

/// The error for a name that no backend has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not one of shm, threads, cluster, virt")]
pub struct UnknownBackend;

/// The transport between ranks of one node of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnNode {
    /// Shared memory.
    #[default]
    Shm,
    /// The network, as if each were on a separate node.
    Ofi,
}

/// The error for a name that is not an [`OnNode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not one of shm, ofi")]
pub struct UnknownOnNode;

impl FromStr for OnNode {
    type Err = UnknownOnNode;

    fn from_str(name: &str) -> Result<Self, UnknownOnNode> {
        match name {
            "shm" => Ok(OnNode::Shm),
            "ofi" => Ok(OnNode::Ofi),
            _ => Err(UnknownOnNode),
        }
    }
}

/// How words of other ranks of a cluster are loaded, stored and changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum AtomicsBy {
    /// By the target's CPU, which receives a message.
    #[default]
    Cpu,
    /// By the network, with libfabric's atomics. Requires one rank per node, and
    /// [`Caps::coherent_atomics`](rdma_fabric::Caps::coherent_atomics) is false.
    Nic,
}

/// The error for a name that is not an [`AtomicsBy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not one of cpu, nic")]
pub struct UnknownAtomicsBy;

impl FromStr for AtomicsBy {
    type Err = UnknownAtomicsBy;

    fn from_str(name: &str) -> Result<Self, UnknownAtomicsBy> {
        match name {
            "cpu" => Ok(AtomicsBy::Cpu),
            "nic" => Ok(AtomicsBy::Nic),
            _ => Err(UnknownAtomicsBy),
        }
    }
}

impl FromStr for Backend {
    type Err = UnknownBackend;

    fn from_str(name: &str) -> Result<Self, UnknownBackend> {
        match name {
            "shm" => Ok(Backend::Shm),
            "threads" => Ok(Backend::Threads),
            "cluster" => Ok(Backend::Cluster),
            "virt" => Ok(Backend::Virt),
            _ => Err(UnknownBackend),
        }
    }
}

impl Backend {
    /// Attaches this process to its job as a rank, as an *attached process*: for a library whose
    /// callers own `main`, such as a C library, between its "open" and "close" calls. Futures of
    /// the fabric run on the calling thread, by [`block_on`](crate::block_on).
    ///
    /// `onesided run` starts the ranks, with `--fabric virt` in virtual time. A process that was started without it is a job of one rank,
    /// unless another launcher (`mpirun`, `srun`) started it as one of several, which is an error.
    /// An attached process leaves its job when the last clone of its fabric is dropped, or by
    /// ending with code 0; if it ends by a signal, or with another code, it is lost to its peers.
    /// See [`attach_process`](tofu2_sim::shm::attach_process).
    ///
    /// [`Backend::Cluster`] also attaches to a job of several ranks that another launcher started
    /// *on this machine*: Open MPI, MPICH, Slurm, `torchrun`. The program may use MPI beside it. The
    /// first rank waits for none, the others at most ten minutes for the first. A rank that ends by
    /// C's `exit` has left; any other end of its process is a loss, and ends the processes that still
    /// run ten seconds later. Without a launcher this is a job of one rank as well, whose memory is a
    /// file, so that it can [share](tofu2_sim::shm::nic::Nic::share) memory of the program. Such a
    /// rank may register the number of bytes in `ONESIDED_SEGMENT_BYTES`, 16 GiB if it is not set.
    ///
    /// # Errors
    /// The errors of [`attach_process`](tofu2_sim::shm::attach_process), such as
    /// [`FabricError::RankTaken`] if this was called before; [`FabricError::Setting`] for a rank of
    /// another launcher's job; [`FabricError::Unsupported`] if ranks are not processes here.
    pub fn attach(self) -> Result<Fabric, FabricError> {
        #[cfg(target_os = "linux")]
        if matches!(self, Backend::Shm | Backend::Cluster)
            && let Some(fabric) = crate::simulated::attached()?
        {
            return Ok(fabric);
        }
        match self {
            Backend::Shm => {
                #[cfg(target_os = "linux")]
                if std::env::var_os(shm::JOB_VARIABLE).is_none() {
                    crate::cluster::is_alone(&|name| std::env::var_os(name))?;
                }
                shm::attach_process()
            }
            Backend::Threads => Err(FabricError::Unsupported { feature: &"attaching to ranks that are threads" }),
            #[cfg(target_os = "linux")]
            Backend::Cluster => crate::cluster::attach_here(),
            #[cfg(not(target_os = "linux"))]
            Backend::Cluster => Err(FabricError::Unsupported { feature: &"attaching to ranks of several machines" }),
            Backend::Virt => Err(FabricError::Unsupported { feature: &"attaching to ranks in virtual time" }),
        }
    }

    /// Attaches this process as rank `rank` of `ranks` processes on this machine that a launcher of
    /// the program's own started, as [`Backend::Cluster`] attaches to those of others. All pass the
    /// same `job`, which no other job of the user has at that time, and attach within a minute: later
    /// ones are lost.
    ///
    /// # Errors
    /// [`FabricError::NoSuchRank`], [`FabricError::Setting`] for more ranks than the provider has;
    /// [`FabricError::RankTaken`], also if another job has this name; [`FabricError::System`].
    #[cfg(target_os = "linux")]
    pub fn attach_as(rank: rdma_fabric::Rank, ranks: usize, job: &str) -> Result<Fabric, FabricError> {
        crate::cluster::attach_rank(rank, ranks, job)
    }
}
