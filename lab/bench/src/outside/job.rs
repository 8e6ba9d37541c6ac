//! One job of ranks that measure: processes, each this program executed again, or threads.

use super::{bare::Bare, lines, watch::watch};
use core::{sync::atomic::Ordering::Release, time::Duration};
use rdma_fabric::{Fabric, ProgramResult};
use repro::progress::Progress;
use rustix::fs::{MemfdFlags, memfd_create};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    env,
    error::Error,
    fs::{self, File},
    io,
    os::fd::AsRawFd,
    path::PathBuf,
    process::{self, ExitCode},
    sync::Arc,
};
use tofu2_sim::shm::{self, DEFAULT_SEGMENT_BYTES, Launcher, Threads};

/// The hidden subcommand by which this program runs as a rank.
pub(crate) const RANK: &str = "rank";

/// The fabric of the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Provider {
    /// Processes.
    Shm,
    /// Threads of one process.
    Threads,
}

impl Provider {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Provider::Shm => "shm",
            Provider::Threads => "threads",
        }
    }
}

/// The part of a rank in a measurement, sent to each rank as JSON.
pub(crate) trait Task: Clone + Sync + Serialize + DeserializeOwned {
    /// Identifies the measurement on the command line of a rank.
    const NAME: &'static str;
    /// The results of a rank.
    type Out: Serialize + DeserializeOwned + Send + 'static;

    async fn measure(self, fabric: Fabric, bare: &Arc<Bare>) -> ProgramResult<Self::Out>;
}

/// The number of ranks, and what each of them gets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) ranks: usize,
    /// Memory that a rank can register. The system provides only the pages that are used.
    pub(crate) segment_bytes: usize,
    /// Ranks of a node; `None`: all.
    pub(crate) ranks_per_node: Option<usize>,
}

impl Size {
    pub(crate) fn of(ranks: usize) -> Self {
        Size { ranks, segment_bytes: DEFAULT_SEGMENT_BYTES, ranks_per_node: None }
    }
}

/// A task, and the files that all ranks open.
#[derive(Debug, Serialize, Deserialize)]
struct Sent<T> {
    task: T,
    /// The bare memory.
    memory: PathBuf,
    /// The files to which the ranks write their results.
    results: Vec<PathBuf>,
}

/// Runs a job, and returns the results of its ranks. `at` converts the word that identifies the current stage to
/// the number of earlier ones and its name.
pub(crate) fn run<T: Task>(
    task: &T,
    provider: Provider,
    size: Size,
    progress: &Progress,
    at: impl Fn(u64) -> Option<(usize, String)> + Sync,
) -> Result<Vec<T::Out>, Box<dyn Error>> {
    let memory = memory_file("onesided-measuring-memory")?;
    Bare::size(&memory)?;
    let results = (0..size.ranks).map(|_| memory_file("onesided-measured")).collect::<Result<Vec<_>, _>>()?;
    let sent = Sent { task: task.clone(), memory: path_of(&memory), results: results.iter().map(path_of).collect() };
    let bare = Bare::open(&sent.memory)?;
    watch(progress, &bare, at, || match provider {
        Provider::Shm => {
            let rank = [RANK.into(), T::NAME.to_owned(), serde_json::to_string(&sent)?];
            let mut launcher = Launcher::new(size.ranks).segment_bytes(size.segment_bytes);
            if let Some(ranks) = size.ranks_per_node {
                launcher = launcher.ranks_per_node(ranks);
            }
            let launcher = launcher.grace(Duration::from_secs(1));
            match launcher.command(env::current_exe()?, rank).run()? {
                0 => {}
                code => return Err(format!("the measuring ranks ended with code {code}").into()),
            }
            sent.results.iter().map(|path| Ok(serde_json::from_slice(&fs::read(path)?)?)).collect()
        }
        Provider::Threads => {
            let mut threads = Threads::new(size.ranks).segment_bytes(size.segment_bytes);
            if let Some(ranks) = size.ranks_per_node {
                threads = threads.ranks_per_node(ranks);
            }
            Ok(threads.run(&async |fabric| sent.measure(fabric).await)?)
        }
    })
}

/// Runs a rank that [`run`] started.
pub(crate) fn be_rank<T: Task>(sent: &str) -> Result<ExitCode, Box<dyn Error>> {
    let sent: Sent<T> = serde_json::from_str(sent)?;
    let endpoint = shm::from_env()?.ok_or("only this program starts its ranks")?;
    let place = sent.results.get(endpoint.rank().index()).ok_or("there are more ranks than files for their results")?;
    let measured = shm::run_rank(endpoint, &async |fabric| sent.measure(fabric).await)?;
    fs::write(place, serde_json::to_vec(&measured)?)?;
    Ok(ExitCode::SUCCESS)
}

impl<T: Task> Sent<T> {
    async fn measure(&self, fabric: Fabric) -> ProgramResult<T::Out> {
        let bare = Arc::new(Bare::open(&self.memory)?);
        let outcome = self.task.clone().measure(fabric, &bare).await;
        if outcome.is_err() {
            // Release: ranks that wait outside the fabric for this rank stop, and so do ranks that
            // enter repeatedly.
            bare.word(lines::ABANDONED).store(1, Release);
            bare.word(lines::STOP).store(1, Release);
        }
        outcome
    }
}

/// Creates a nameless file in memory that is removed with this process.
fn memory_file(name: &str) -> io::Result<File> {
    Ok(memfd_create(name, MemfdFlags::CLOEXEC)?.into())
}

/// Returns the path under which this process's children find one of its open files.
fn path_of(file: &File) -> PathBuf {
    format!("/proc/{}/fd/{}", process::id(), file.as_raw_fd()).into()
}
