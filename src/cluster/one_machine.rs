//! Attached processes that another launcher started as ranks on one machine, and single ones.
//!
//! No coordinator is needed here: the ranks find each other by the launcher's variables,
//! and share one memory file. A thread of each rank watches the others' processes. It is the only
//! one that notices a loss: a launcher may not end the job when a rank ends.

use crate::report::emit;
use bootstrap::{Found, Slurm};
use rdma_fabric::{Fabric, FabricError, Rank, Result};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, getppid, getuid, pidfd_open},
};
use std::{
    env,
    ffi::OsString,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    os::fd::OwnedFd,
    thread,
    time::{Duration, Instant},
};
use tofu2_sim::shm::{
    self, SegmentBytes,
    part::{Fate, Part, PartPlan},
};

/// Bytes that a rank can register by default. Unused bytes take no memory.
const SEGMENT_BYTES: usize = 16 << 30;
/// How long a rank waits for the first one.
const PATIENCE: Duration = Duration::from_secs(600);
/// The same where all ranks attach as soon as they start.
const START: Duration = Duration::from_secs(60);
/// How long a process may run after another one was lost.
const GRACE: Duration = Duration::from_secs(10);
/// The time between two looks for processes that have attached.
const LOOK: Duration = Duration::from_millis(50);

/// The variables with the number of ranks, and of those on this machine.
const LOCAL_RANKS: [&str; 2] = ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"];
const OPEN_MPI_RANKS: &str = "OMPI_COMM_WORLD_SIZE";
const SLURM_RANKS: &str = "SLURM_STEP_NUM_TASKS";
const SLURM_NODES: &str = "SLURM_STEP_NUM_NODES";

/// Attaches this process to its job: that of `onesided run`, that of another launcher, or its own.
///
/// # Errors
/// [`FabricError::Setting`], also for ranks on several machines, and those of
/// [`attach_process`](shm::attach_process).
pub(crate) fn attach_here() -> Result<Fabric> {
    if env::var_os(shm::JOB_VARIABLE).is_some() {
        return shm::attach_process();
    }
    attach(&Described::of(&|name| env::var_os(name))?, None)
}

/// Attaches this process to a job of a launcher of the program's own: `ranks` processes on this
/// machine that pass the same `job`, which no other job of the user has at that time. A rank that has
/// not attached after a minute is lost.
///
/// # Errors
/// [`FabricError::Setting`], and those of [`attach_process`](shm::attach_process).
pub(crate) fn attach_rank(rank: Rank, ranks: usize, job: &str) -> Result<Fabric> {
    if rank.index() >= ranks {
        return Err(FabricError::NoSuchRank { rank, ranks });
    }
    attach(&Described { rank: rank.number(), ranks, job: job.to_owned() }, Some(START))
}

fn attach(described: &Described, start: Option<Duration>) -> Result<Fabric> {
    let ranks = described.ranks;
    let plan = PartPlan {
        ranks,
        local: (0..ranks as u32).map(Rank::new).collect(),
        me: Rank::new(described.rank),
        segment_bytes: segment_bytes()?,
        age: Duration::ZERO,
        oversubscribed: ranks > thread::available_parallelism().map_or(1, usize::from),
    };
    let (number, secret) = (described.hash("number"), described.hash("secret"));
    let part = match plan.me.number() {
        0 => Part::lead(&plan, number, secret)?,
        _ => join(&plan, number, secret, start.unwrap_or(PATIENCE))?,
    };
    if ranks > 1 {
        watch(part.clone(), start)?;
    }
    Ok(part.fabric())
}

/// Joins the memory of rank 0, which may attach much later.
fn join(plan: &PartPlan, number: u64, secret: u64, patience: Duration) -> Result<Part> {
    let begun = Instant::now();
    loop {
        match Part::join(plan, number, secret) {
            Err(FabricError::System { .. } | FabricError::PeerLost { .. }) if begun.elapsed() < patience => {}
            joined => return joined,
        }
    }
}

fn segment_bytes() -> Result<usize> {
    let Some(text) = env::var_os(shm::SEGMENT_VARIABLE) else { return Ok(SEGMENT_BYTES) };
    let text = text.to_string_lossy();
    let bytes: SegmentBytes =
        text.parse().map_err(|problem| FabricError::setting(shm::SEGMENT_VARIABLE, format!("`{text}`: {problem}")))?;
    Ok(bytes.0)
}

// ----- the launcher's description of the job -----

/// A rank of a launcher's job on this machine.
#[derive(Debug, PartialEq, Eq)]
struct Described {
    rank: u32,
    ranks: usize,
    /// Differs between jobs that run at the same time.
    job: String,
}

impl Described {
    fn of(env: &dyn Fn(&str) -> Option<OsString>) -> Result<Self> {
        let refused = |problem: String| Err(FabricError::setting("launcher", problem));
        let text = |name: &str| env(name).map(|text| text.to_string_lossy().into_owned());
        let number = |name: &str| text(name).and_then(|text| text.parse::<usize>().ok());
        let found = match bootstrap::detect(env) {
            Ok(Some(Found::Cluster(_))) => {
                return refused("`onesided run` starts such a program on one machine only".to_owned());
            }
            Ok(found) => found,
            Err(error) => return refused(error.to_string()),
        };
        let Some(found) = found else {
            return Ok(Described { rank: 0, ranks: 1, job: format!("process {}", std::process::id()) });
        };
        let ranks_of_launcher = || [OPEN_MPI_RANKS, SLURM_RANKS].iter().find_map(|name| number(name));
        let Some(ranks) = found.ranks().or_else(ranks_of_launcher) else {
            return refused(format!("{} does not say how many ranks there are", found.launcher()));
        };
        let here = LOCAL_RANKS.iter().find_map(|name| number(name)).unwrap_or(match &found {
            Found::Slurm(Slurm { nodes, .. }) if nodes.len() > 1 => 0,
            // PMIx is Slurm's.
            Found::Pmix { .. } if number(SLURM_NODES).is_some_and(|nodes| nodes > 1) => 0,
            _ => ranks,
        });
        if here != ranks {
            return refused(format!("{} started {ranks} ranks on several machines, not on one", found.launcher()));
        }
        let job = match &found {
            Found::Pmix { namespace, .. } => {
                format!("pmix {namespace} {}", text("PMIX_SERVER_URI2").unwrap_or_default())
            }
            Found::Pmi1 { .. } => format!("pmi {}", parent()),
            Found::Slurm(Slurm { job, step, .. }) => format!("slurm {job} {step}"),
            Found::Torchrun { host, port, .. } => format!("torchrun {host} {port} {}", parent()),
            _ => return refused(format!("{} is not supported for such programs", found.launcher())),
        };
        Ok(Described { rank: found.rank(), ranks, job })
    }

    /// Returns a number that all ranks of the job compute.
    fn hash(&self, what: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        ("ranks of one machine", what, &self.job, self.ranks, getuid().as_raw()).hash(&mut hasher);
        hasher.finish()
    }
}

/// Returns the process that started this rank, which is the launcher's and the same for all ranks.
fn parent() -> String {
    let parent = getppid().map_or(0, |parent| parent.as_raw_nonzero().get());
    // The time of its start: numbers of processes are reused.
    let stat = fs::read_to_string(format!("/proc/{parent}/stat")).unwrap_or_default();
    let start = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(19)).unwrap_or_default();
    format!("parent {parent} {start}")
}

// ----- watching the other ranks' processes -----

/// Reports losses, and ends this process if it outlives one for long. Ranks that have not attached
/// after `start` are lost.
fn watch(part: Part, start: Option<Duration>) -> Result<()> {
    part.leave_at_exit();
    let me = part.local().iter().position(|rank| part.process_of(*rank) == Some(std::process::id()));
    let others: Vec<Rank> = part.local().iter().copied().filter(|rank| Some(rank.index()) != me).collect();
    let watched =
        thread::Builder::new().name("watches ranks".to_owned()).spawn(move || watch_all(&part, others, start));
    let refused = |error: std::io::Error| FabricError::System {
        call: &"pthread_create",
        errno: error.raw_os_error().unwrap_or(0),
    };
    watched.map(drop).map_err(refused)
}

fn watch_all(part: &Part, mut unknown: Vec<Rank>, start: Option<Duration>) {
    let begun = Instant::now();
    let mut known: Vec<(Rank, OwnedFd)> = Vec::new();
    let mut lost: Option<(Rank, Instant)> = None;
    while !(known.is_empty() && unknown.is_empty()) || lost.is_some() {
        unknown.retain(|&rank| {
            let Some(process) = part.process_of(rank) else {
                let is_late = start.is_some_and(|start| begun.elapsed() >= start);
                if is_late {
                    lost = ended(part, rank).or(lost);
                }
                return !is_late;
            };
            let opened = Pid::from_raw(process as i32).map(|process| pidfd_open(process, PidfdFlags::empty()));
            match opened {
                Some(Ok(process)) => known.push((rank, process)),
                // It has ended, and was reaped.
                _ => lost = ended(part, rank).or(lost),
            }
            false
        });
        let mut sources: Vec<PollFd<'_>> =
            known.iter().map(|(_, process)| PollFd::new(process, PollFlags::IN)).collect();
        let look = if unknown.is_empty() && lost.is_none() { Duration::from_secs(1) } else { LOOK };
        let timeout = Timespec { tv_sec: look.as_secs() as i64, tv_nsec: look.subsec_nanos().into() };
        let _ = poll(&mut sources, Some(&timeout));
        let over: Vec<bool> = sources.iter().map(|source| !source.revents().is_empty()).collect();
        let mut over = over.into_iter();
        known.retain(|(rank, _)| {
            let is_over = over.next() == Some(true);
            if is_over {
                lost = ended(part, *rank).or(lost);
            }
            !is_over
        });
        if let Some((rank, since)) = lost
            && since.elapsed() >= GRACE
        {
            emit(format_args!("error: {rank} was lost {} s ago, and this rank still runs", GRACE.as_secs()));
            std::process::exit(1);
        }
    }
}

/// Publishes the end of a rank's process. Returns the rank and the time if it was lost, or has aborted the job and
/// exited.
fn ended(part: &Part, rank: Rank) -> Option<(Rank, Instant)> {
    let has_left = part.fate(rank) == Fate::Left;
    if !has_left {
        part.lost(&[rank], true);
    }
    (!has_left || part.is_aborted()).then(|| (rank, Instant::now()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(variables: &[(&str, &str)]) -> Result<Described> {
        Described::of(&|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into()))
    }

    #[test]
    fn ranks_of_each_launcher_are_one_job() {
        let pmix = |rank| {
            let job = [("PMIX_NAMESPACE", "7"), ("PMIX_SERVER_URI2", "7.0;tcp4://x"), ("OMPI_COMM_WORLD_SIZE", "4")];
            described(&[&job[..], &[("PMIX_RANK", rank)]].concat()).unwrap()
        };
        assert_eq!((pmix("3").rank, pmix("3").ranks), (3, 4));
        assert_eq!(pmix("0").hash("number"), pmix("1").hash("number"));
        assert_ne!(pmix("0").hash("number"), pmix("0").hash("secret"));
        let slurms = [("PMIX_NAMESPACE", "slurm.pmix.1.0"), ("PMIX_RANK", "1"), ("SLURM_STEP_NUM_TASKS", "3")];
        assert_eq!(described(&slurms).unwrap().ranks, 3);
        assert!(described(&[&slurms[..], &[("SLURM_STEP_NUM_NODES", "2")]].concat()).is_err());
        let pmi = described(&[("PMI_RANK", "1"), ("PMI_SIZE", "2"), ("PMI_FD", "9")]).unwrap();
        assert_eq!((pmi.rank, pmi.ranks), (1, 2));
        let slurm =
            [("SLURM_JOB_ID", "9"), ("SLURM_STEP_ID", "0"), ("SLURM_PROCID", "1"), ("SLURM_STEP_NUM_TASKS", "4")];
        let on = |nodes| described(&[&slurm[..], &[("SLURM_STEP_NODELIST", nodes)]].concat());
        assert_eq!(on("node").unwrap().job, "slurm 9 0");
        assert!(on("node[1-2]").unwrap_err().to_string().contains("on several machines"));
        assert_eq!(described(&[]).unwrap().ranks, 1);
    }

    #[test]
    fn ranks_elsewhere_are_refused() {
        let open_mpi = [
            ("PMIX_NAMESPACE", "7"),
            ("PMIX_RANK", "0"),
            ("OMPI_COMM_WORLD_SIZE", "4"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
        ];
        assert!(described(&open_mpi).unwrap_err().to_string().contains("4 ranks on several machines"));
    }
}
