//! Detects the launcher that started this process from the environment.
//!
//! The variables of a launcher form a group: either all of them are set or none. [`cluster`] is
//! this crate's own group, [`slurm`] and [`node_list`] are Slurm's.

mod cluster;
mod error;
mod node_list;
mod slurm;
mod variables;

pub use cluster::{CLUSTER, Cluster, NotACluster, SecretAt};
pub use error::DetectError;
pub use node_list::{BadNodeList, node_list};
pub use slurm::Slurm;

use std::ffi::OsString;
use variables::Variables;

/// A launcher, and its description of this process's job.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Found {
    /// This crate's own launcher: `ONESIDED_CLUSTER`.
    Cluster(Cluster),
    /// A launcher with PMIx: `PMIX_RANK` and `PMIX_NAMESPACE`. The PMIx library provides the number
    /// of ranks.
    Pmix {
        /// The rank.
        rank: u32,
        /// The name of the job.
        namespace: String,
    },
    /// A launcher with PMI-1: `PMI_RANK`, `PMI_SIZE` and `PMI_FD`.
    Pmi1 {
        /// The rank.
        rank: u32,
        /// The number of ranks of the job.
        ranks: usize,
        /// The descriptor of the connection to the launcher.
        fd: i32,
    },
    /// A Slurm step without PMI.
    Slurm(Slurm),
    /// `torchrun`: `RANK`, `WORLD_SIZE`, `MASTER_ADDR` and `MASTER_PORT`.
    Torchrun {
        /// The rank.
        rank: u32,
        /// The number of ranks of the job.
        ranks: usize,
        /// Rank 0's host.
        host: String,
        /// A free port at this address for the coordinator: `MASTER_PORT`, or the next one if
        /// `TORCHELASTIC_USE_AGENT_STORE` says that torchrun itself listens there.
        port: u16,
    },
}

impl Found {
    /// Returns the launcher's name.
    pub fn launcher(&self) -> &'static str {
        match self {
            Self::Cluster(_) => "onesided",
            Self::Pmix { .. } => "PMIx",
            Self::Pmi1 { .. } => "PMI-1",
            Self::Slurm(_) => "Slurm",
            Self::Torchrun { .. } => "torchrun",
        }
    }

    /// Returns this process's rank.
    pub fn rank(&self) -> u32 {
        match self {
            Self::Cluster(Cluster { rank, .. }) | Self::Slurm(Slurm { rank, .. }) => *rank,
            Self::Pmix { rank, .. } | Self::Pmi1 { rank, .. } | Self::Torchrun { rank, .. } => *rank,
        }
    }

    /// Returns the number of ranks of the job, if the variables contain it.
    pub fn ranks(&self) -> Option<usize> {
        match self {
            Self::Cluster(Cluster { ranks, .. }) | Self::Slurm(Slurm { ranks, .. }) => Some(*ranks),
            Self::Pmi1 { ranks, .. } | Self::Torchrun { ranks, .. } => Some(*ranks),
            Self::Pmix { .. } => None,
        }
    }

    /// Returns whether these variables may be those of another launcher's daemons: Slurm starts one
    /// daemon on each node when `mpiexec` or `torchrun` asks it to, and the ranks inherit the
    /// daemon's variables.
    fn may_be_of_daemons(&self) -> bool {
        matches!(self, Self::Slurm(slurm) if slurm.ranks == slurm.nodes.len())
    }
}

/// Returns the launcher that started this process, according to the variables that `env` looks up;
/// `None` if there is none. For the process's own environment, `env` is
/// `&|name| std::env::var_os(name)`.
///
/// The first in this order wins: this crate's own launcher, PMIx, PMI-1, Slurm, torchrun. Several
/// launchers may be found if they agree about the rank and the number of ranks, since launchers
/// start each other; a disagreement is an error. There is one exception: a Slurm step with one task
/// for each of its nodes is how `mpiexec` and `torchrun` start their daemons. If such a step
/// disagrees, its variables belong to the daemon and are ignored.
///
/// The shell of `salloc` and the script of `sbatch` have Slurm's variables but are not ranks.
pub fn detect(env: &dyn Fn(&str) -> Option<OsString>) -> Result<Option<Found>, DetectError> {
    let env = Variables(env);
    let all = [cluster::find(env)?, pmix(env)?, pmi1(env)?, slurm::find(env)?, torchrun(env)?];
    let mut all: Vec<Found> = all.into_iter().flatten().collect();
    let disagrees = |one: &Found, other: &Found| disagreement(one, other).is_some();
    if let Some(daemons) = all.iter().position(Found::may_be_of_daemons)
        && all.iter().any(|other| disagrees(&all[daemons], other))
    {
        all.remove(daemons);
    }
    for (index, one) in all.iter().enumerate() {
        if let Some(error) = all[index + 1..].iter().find_map(|other| disagreement(one, other)) {
            return Err(error);
        }
    }
    Ok(all.into_iter().next())
}

fn disagreement(one: &Found, other: &Found) -> Option<DetectError> {
    let differ = |what, first: u64, second: u64| {
        let (one, other) = (one.launcher(), other.launcher());
        (first != second).then_some(DetectError::Disagreement { what, one, first, other, second })
    };
    let ranks = one.ranks().zip(other.ranks());
    differ("rank", one.rank().into(), other.rank().into())
        .or_else(|| ranks.and_then(|(one, other)| differ("number of ranks", one as u64, other as u64)))
}

fn pmix(env: Variables<'_>) -> Result<Option<Found>, DetectError> {
    let group = ["PMIX_RANK", "PMIX_NAMESPACE"];
    if !env.whole(&group, &group)? {
        return Ok(None);
    }
    Ok(Some(Found::Pmix { rank: env.number("PMIX_RANK")?, namespace: env.text("PMIX_NAMESPACE")? }))
}

fn pmi1(env: Variables<'_>) -> Result<Option<Found>, DetectError> {
    let group = ["PMI_RANK", "PMI_SIZE", "PMI_FD"];
    if !env.whole(&group, &group)? {
        return Ok(None);
    }
    let (rank, ranks) = env.rank_of("PMI_RANK", "PMI_SIZE")?;
    let fd: u32 = env.number("PMI_FD")?;
    let fd = i32::try_from(fd).map_err(|_| env.malformed("PMI_FD", "a descriptor"))?;
    Ok(Some(Found::Pmi1 { rank, ranks, fd }))
}

fn torchrun(env: Variables<'_>) -> Result<Option<Found>, DetectError> {
    // The other two variables are often set for other purposes.
    if !env.whole(&["RANK", "WORLD_SIZE"], &["RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"])? {
        return Ok(None);
    }
    let (rank, ranks) = env.rank_of("RANK", "WORLD_SIZE")?;
    let mut port: u16 = env.number("MASTER_PORT")?;
    if env.has("TORCHELASTIC_USE_AGENT_STORE") && env.text("TORCHELASTIC_USE_AGENT_STORE")? == "True" {
        port = port.checked_add(1).ok_or_else(|| env.malformed("MASTER_PORT", "a port before the last"))?;
    }
    Ok(Some(Found::Torchrun { rank, ranks, host: env.text("MASTER_ADDR")?, port }))
}
