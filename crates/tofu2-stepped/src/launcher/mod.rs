//! The simulator's side: starts the processes, and runs their ranks in virtual time.

mod fabric;
mod memory;
mod process;
mod replies;
mod requests;
mod waits;

use process::Process;
use rdma_fabric::{Fabric, FabricError, ProgramResult, Rank};
use requests::RankState;
use std::{
    ffi::OsString,
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI32, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};
use tofu2_virt::{Job, JobError, Platform, Run};

/// A job in virtual time whose ranks are processes, each a node of its own with the control queues and
/// gates of TofuD.
#[derive(Debug)]
pub struct Launcher {
    program: OsString,
    args: Vec<OsString>,
    ranks: usize,
    platform: Platform,
    seed: u64,
    stuck_after: Option<Duration>,
    timeline: Option<usize>,
}

/// A run that has ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct EndedRun {
    /// The simulator's figures, the timeline included if one was asked for. The ranks have no outputs.
    pub run: Run<Option<()>>,
    /// The first failure of a rank.
    pub failure: Option<JobError>,
    /// The exit code of the first process that failed, 0 if none did.
    pub code: i32,
    /// Requests of all ranks.
    pub requests: u64,
    /// How long the run took by the wall clock, with the start of the processes.
    pub took: Duration,
}

/// The error of a job that could not be run to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// A process could not be started.
    #[error("cannot start {program:?}: {error}")]
    Start {
        /// The program.
        program: OsString,
        /// The system's error.
        error: io::Error,
    },
    /// The simulation failed.
    #[error(transparent)]
    Job(#[from] JobError),
    /// A constant of the platform is missing.
    #[error(transparent)]
    Fabric(#[from] FabricError),
}

impl LaunchError {
    /// Returns the exit code of a launcher that this error ends: that of a rank that aborted the job, or 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            LaunchError::Job(error) => error.exit_code(),
            LaunchError::Start { .. } | LaunchError::Fabric(_) => 1,
        }
    }
}

/// What all ranks of a run count.
#[derive(Debug, Default)]
struct Counts {
    requests: AtomicU64,
    /// The exit code of the first process that failed.
    code: AtomicI32,
    /// Regions that have been deregistered.
    deregistered: Arc<AtomicU64>,
}

impl Launcher {
    /// Describes a job of `ranks` processes that run `program`, on the network of the FX100.
    pub fn new(ranks: usize, program: OsString, args: impl IntoIterator<Item = OsString>) -> Self {
        let stuck_after = Some(tofu2_shm::DEFAULT_STUCK_AFTER);
        let (args, platform) = (args.into_iter().collect(), Platform::fx100());
        Launcher { program, args, ranks, platform, seed: 0, stuck_after, timeline: None }
    }

    /// Takes the times and the network of a platform.
    #[must_use]
    pub fn platform(self, platform: Platform) -> Self {
        Launcher { platform, ..self }
    }

    /// Shuffles simultaneous events by this seed, unless it is 0.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Launcher { seed, ..self }
    }

    /// Sets how long a process may make no request before that is reported, or, if it sleeps, ends the
    /// job. `None`: forever.
    #[must_use]
    pub fn stuck_after(self, bound: Option<Duration>) -> Self {
        Launcher { stuck_after: bound, ..self }
    }

    /// Records the activities of the machine, at most `limit`.
    #[must_use]
    pub fn timeline(self, limit: usize) -> Self {
        Launcher { timeline: Some(limit), ..self }
    }

    /// Runs the job. All processes have ended when this returns.
    ///
    /// # Errors
    /// [`LaunchError`]. The failure of a rank is part of the result.
    pub fn run(self) -> Result<EndedRun, LaunchError> {
        let begun = Instant::now();
        let processes = self.start()?;
        // TofuD's queues and gates, which the programs expect; the times are the platform's.
        let mut platform = self.platform.clone();
        for (name, value) in [
            ("engines", 6),
            ("queues_per_engine", 12),
            ("system_queues", 1),
            ("queue_contexts", 8),
            ("session_queues", 3),
            ("exclusive_queues", 7),
            ("block_puts", 1),
            ("barrier_channels", 16),
            ("barrier_gates", 64),
        ] {
            platform = platform.with(name, value)?;
        }
        let mut job = Job::new(&platform, self.ranks).seed(self.seed).shuffle_ties(self.seed != 0);
        if let Some(limit) = self.timeline {
            job = job.timeline(limit, rdma_fabric::Time::ZERO);
        }
        let counts = Counts::default();
        let program = async |fabric: Fabric| step(fabric, &processes, &counts).await;
        let (run, failure) = job.run_through(&program)?;
        let (requests, code) = (counts.requests.load(Relaxed), counts.code.load(Relaxed));
        Ok(EndedRun { run, failure, code, requests, took: begun.elapsed() })
    }

    /// Starts the processes.
    fn start(&self) -> Result<Vec<Mutex<Process>>, LaunchError> {
        let start = |rank| Process::start(&self.program, &self.args, Rank::new(rank), self.ranks, self.stuck_after);
        let ranks = u32::try_from(self.ranks).unwrap_or(u32::MAX);
        let started = (0..ranks).map(|rank| start(rank).map(Mutex::new)).collect::<io::Result<_>>();
        started.map_err(|error| LaunchError::Start { program: self.program.clone(), error })
    }
}

/// Runs one rank: performs its requests, one after another, until its process has ended.
async fn step<'a>(fabric: Fabric, processes: &'a [Mutex<Process>], counts: &Counts) -> ProgramResult<()> {
    let Some(process) = processes.get(fabric.rank().index()) else { return Ok(()) };
    let lock = || process.lock().unwrap_or_else(PoisonError::into_inner);
    let ended = |lock: &dyn Fn() -> MutexGuard<'a, Process>| -> ProgramResult<()> {
        let ended = lock().ended();
        if let Err(failed) = &ended {
            let _ = counts.code.compare_exchange(0, failed.code(), Relaxed, Relaxed);
        }
        Ok(ended?)
    };
    let mut state =
        RankState::new(fabric, lock().memory(), counts.deregistered.clone()).ok_or("a rank that is not simulated")?;
    loop {
        let Some(request) = lock().receive()? else {
            counts.deregistered.fetch_add(1, Relaxed);
            return ended(&lock);
        };
        counts.requests.fetch_add(1, Relaxed);
        let has_reply = request.has_reply();
        let reply = state.perform(request).await;
        if let Err(error) = state.check_memory() {
            // The memory of a process that is being killed is the first to go.
            return if lock().ends_soon() { ended(&lock) } else { Err(error.into()) };
        }
        if has_reply {
            lock().reply(&reply)?;
        }
    }
}
