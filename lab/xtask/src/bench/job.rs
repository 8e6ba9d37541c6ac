//! One job of ranks that measure: processes, each this program executed again, or threads.

use super::{
    bare::Bare,
    cases::{self, JobPlan},
    progress::Progress,
    sampling::Measured,
};
use rdma_fabric::Rank;
use rustix::fs::{MemfdFlags, memfd_create};
use std::{
    error::Error,
    fs::{self, File},
    os::fd::AsRawFd,
    path::PathBuf,
    process::{self, ExitCode},
    time::Duration,
};
use tofu2_sim::shm::{self, DEFAULT_SEGMENT_BYTES, Launcher, Threads};

/// The fabric of the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Provider {
    /// Processes.
    Shm,
    /// Threads of one process.
    Threads,
}

impl Provider {
    pub(super) fn name(self) -> &'static str {
        match self {
            Provider::Shm => "shm",
            Provider::Threads => "threads",
        }
    }
}

/// The kind of job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Ranks {
    /// Two, each on its own core.
    Pair,
    /// Four, which may share cores.
    Four,
    /// Many on few cores.
    Oversubscribed,
}

impl Ranks {
    /// All, in the order in which they are run.
    pub(super) const ALL: [Ranks; 3] = [Ranks::Pair, Ranks::Four, Ranks::Oversubscribed];

    fn number(self) -> usize {
        match self {
            Ranks::Pair => 2,
            Ranks::Four => cases::FOUR,
            Ranks::Oversubscribed => cases::OVERSUBSCRIBED,
        }
    }

    /// Returns the memory that each rank can register. The long cases of two ranks take more than
    /// the default; the system provides only the pages that are used.
    fn segment_bytes(self) -> usize {
        match self {
            Ranks::Pair => 1 << 30,
            Ranks::Four | Ranks::Oversubscribed => DEFAULT_SEGMENT_BYTES,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Ranks::Pair => "pair",
            Ranks::Four => "four",
            Ranks::Oversubscribed => "oversubscribed",
        }
    }
}

/// The measurements of one job of ranks.
#[derive(Clone, Debug)]
pub(super) struct Measurement {
    pub(super) ranks: Ranks,
    pub(super) provider: Provider,
    pub(super) cases: Vec<String>,
    pub(super) quick: bool,
    pub(super) sample_ms: Option<u32>,
    pub(super) cores: Vec<usize>,
}

/// Runs a job whose cases come after `before` others in the whole run, and returns the results of
/// rank 0.
pub(super) fn run(
    measurement: &Measurement,
    before: usize,
    progress: &Progress,
) -> Result<Vec<Measured>, Box<dyn Error>> {
    let memory = memory_file("onesided-measuring-memory")?;
    let results = memory_file("onesided-measuring-results")?;
    Bare::size(&memory)?;
    let plan = JobPlan {
        cases: measurement.cases.clone(),
        quick: measurement.quick,
        sample_ms: measurement.sample_ms,
        cores: measurement.cores.clone(),
        memory: path_of(&memory),
        results: path_of(&results),
    };
    let (bare, ranks) = (Bare::open(&plan.memory)?, measurement.ranks);
    let at = |number: u64| {
        let case = cases::all().nth(number.checked_sub(1)? as usize)?;
        let done = measurement.cases.iter().position(|name| name == case.name)?;
        Some((before + done, case.what.to_owned()))
    };
    progress.watch(&bare, at, || -> Result<(), Box<dyn Error>> {
        match measurement.provider {
            Provider::Shm => {
                let plan = serde_json::to_string(&plan)?;
                let rank = ["bench-rank".into(), measurement.ranks.name().to_owned(), plan];
                let launcher = Launcher::new(ranks.number()).segment_bytes(ranks.segment_bytes());
                let launcher = launcher.grace(Duration::from_secs(1));
                match launcher.command(std::env::current_exe()?, rank).run()? {
                    0 => Ok(()),
                    code => Err(format!("the measuring ranks ended with code {code}").into()),
                }
            }
            Provider::Threads => {
                let threads = Threads::new(ranks.number()).segment_bytes(ranks.segment_bytes());
                let measured = threads.run(&async |fabric| cases::measure(ranks, fabric, plan.clone()).await)?;
                Ok(fs::write(&plan.results, serde_json::to_vec(&measured[0])?)?)
            }
        }
    })?;
    Ok(serde_json::from_slice(&fs::read(&plan.results)?)?)
}

/// Runs a rank that [`run`] started.
pub(super) fn be_rank(ranks: Ranks, plan: &str) -> Result<ExitCode, Box<dyn Error>> {
    let plan: JobPlan = serde_json::from_str(plan)?;
    let endpoint = tofu2_sim::shm::from_env()?.ok_or("only `bench` starts its ranks")?;
    let rank = endpoint.rank();
    let measured = shm::run_rank(endpoint, &async |fabric| cases::measure(ranks, fabric, plan.clone()).await)?;
    if rank == Rank::new(0) {
        fs::write(&plan.results, serde_json::to_vec(&measured)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Creates a nameless file in memory that is removed with this process.
pub(super) fn memory_file(name: &str) -> Result<File, Box<dyn Error>> {
    Ok(memfd_create(name, MemfdFlags::CLOEXEC)?.into())
}

/// Returns the path under which this process's children find one of its open files.
pub(super) fn path_of(file: &File) -> PathBuf {
    format!("/proc/{}/fd/{}", process::id(), file.as_raw_fd()).into()
}
