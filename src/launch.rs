//! Starting a program's ranks.

#[cfg(target_os = "linux")]
use crate::cluster;
use crate::{
    Launch,
    backend::Backend,
    observing::{self, TimelineFile},
    report::{LaunchError, emit, failed, print, report, simulated_end, threads_end, usage_error},
    settings::setting,
};
use rdma_fabric::{Fabric, FabricError, Program, ProgramResult};
use std::{ffi::OsString, fmt::Display, pin::Pin, process::ExitCode};
use tofu2_sim::{
    shm::{self, Launcher, Threads, run_rank_with},
    virt::Job,
};

/// Starts `program` as specified on the command line, and returns the exit code.
///
/// `--ranks N` sets the number of ranks, `--fabric shm|threads|virt` their backend, and `--help`
/// prints the other options; see [`Launch`]. If ranks are processes, the program's binary is
/// executed again for each rank, so code before this call should have no side effects.
///
/// Errors go to standard error, prefixed with the rank. Any other argument is an error; programs
/// with additional options use [`launch_with`].
pub fn launch<P: Program>(program: P) -> ExitCode {
    launch_with("", |rest| nothing_more(rest).map(|()| program))
}

/// Starts a program with additional options, as [`launch`] does. `program` makes it from the
/// arguments that [`Launch::from_args`] left over.
///
/// `--help` prints `usage`, then [`Launch::HELP`].
///
/// ```no_run
/// use onesided::{Fabric, ProgramResult};
///
/// async fn count(fabric: Fabric, to: u64) -> ProgramResult<u64> {
///     Ok(to + u64::from(fabric.rank().number()))
/// }
///
/// fn main() -> std::process::ExitCode {
///     onesided::launch_with("Counts.\n\n  N   how far\n", |rest| {
///         let [to] = &rest[..] else { return Err(format!("one number, not {rest:?}")) };
///         let to = to.to_string_lossy().parse().map_err(|error| format!("N: {error}"))?;
///         Ok(async move |fabric| count(fabric, to).await)
///     })
/// }
/// ```
pub fn launch_with<P: Program, E: Display>(
    usage: &str,
    program: impl FnOnce(Vec<OsString>) -> Result<P, E>,
) -> ExitCode {
    started(usage, |launch, rest| match program(rest) {
        Ok(program) => launch.run(&program),
        Err(error) => usage_error(&error),
    })
}

/// Starts ranks that are written only for shared memory and bring their own runtime, by
/// [`Launch::from_args`] and [`Launch::run_shared`]. They can't be observed (`--stats`, `--trace`).
///
/// ```no_run
/// fn main() -> std::process::ExitCode {
///     onesided::launch_shared(|fabric| {
///         let runtime = tokio::runtime::Runtime::new()?;
///         runtime.block_on(async move {
///             let mut world = onesided::Group::world(&fabric).await?;
///             Ok(world.barrier().await?)
///         })
///     })
/// }
/// ```
pub fn launch_shared<T: Send>(rank: impl Fn(Fabric) -> ProgramResult<T> + Sync) -> ExitCode {
    started("", |launch, rest| match nothing_more(rest) {
        Ok(()) => launch.run_shared(rank),
        Err(error) => usage_error(&error),
    })
}

/// Calls `start` with the parsed command line, unless it asks for help.
fn started(usage: &str, start: impl FnOnce(Launch, Vec<OsString>) -> ExitCode) -> ExitCode {
    release_signals();
    #[cfg(target_os = "linux")]
    if let Some(code) = bootstrap::serve_if_asked().or_else(cluster::serve_if_asked) {
        return code;
    }
    match Launch::from_args() {
        Ok((_, rest)) if rest.iter().any(|word| word == "--version" || word == "-V") => {
            match print(concat!("onesided ", env!("CARGO_PKG_VERSION"), "\n")) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => report(&format_args!("standard output can't be written: {error}")),
            }
        }
        Ok((_, rest)) if rest.iter().any(|word| word == "--help" || word == "-h") => {
            let gap = if usage.is_empty() { "" } else { "\n" };
            match print(&format!("{usage}{gap}{}", Launch::HELP)) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => report(&format_args!("standard output can't be written: {error}")),
            }
        }
        Ok((launch, rest)) => start(launch, rest),
        Err(error) => usage_error(&error),
    }
}

/// Reverts the changes to signals that libraries of libfabric made when this program was loaded.
fn release_signals() {
    #[cfg(feature = "ofi")]
    fabric_ofi::release_signals();
}

fn nothing_more(rest: Vec<OsString>) -> Result<(), FabricError> {
    match rest.first() {
        None => Ok(()),
        Some(word) => Err(setting("arguments", format!("there is no `{}`; --help says what there is", word.display()))),
    }
}

/// Any program; the output of its ranks is dropped.
type AnyProgram<'p> = dyn Fn(Fabric) -> Pin<Box<dyn Future<Output = ProgramResult<()>> + 'p>> + Sync + 'p;

impl Launch {
    /// Runs `program` and returns its exit code: 0 if all ranks succeeded, otherwise that of the
    /// rank that failed first, or 1 if it has none of its own; the given code if a rank
    /// [aborted](Fabric::abort) the job, or 1 if that code is invalid.
    pub fn run<P: Program>(&self, program: &P) -> ExitCode {
        release_signals();
        match self.try_run(&|fabric| Box::pin(async move { program.run(fabric).await.map(drop) })) {
            Ok(code) => code,
            Err(error) => failed(&error),
        }
    }

    /// Runs ranks that are written only for shared memory, and returns the exit code as
    /// [`Launch::run`] does. `rank` is called once per rank, on its process's main thread or on its
    /// own thread; it may run its futures on any executor, and move or spawn them anywhere: futures
    /// over shared memory are `Send`.
    ///
    /// Ranks in virtual time are refused with [`FabricError::Unsupported`]: the simulator is the
    /// only runtime there.
    pub fn run_shared<T: Send>(&self, rank: impl Fn(Fabric) -> ProgramResult<T> + Sync) -> ExitCode {
        release_signals();
        match self.try_run_shared(&|fabric| rank(fabric).map(drop)) {
            Ok(code) => code,
            Err(error) => failed(&error),
        }
    }

    fn try_run_shared(&self, rank: &(dyn Fn(Fabric) -> ProgramResult<()> + Sync)) -> Result<ExitCode, LaunchError> {
        if let Some(endpoint) = shm::from_env()? {
            observing::leave_out(&endpoint);
            run_rank_with(endpoint, rank)?;
            return Ok(ExitCode::SUCCESS);
        }
        #[cfg(target_os = "linux")]
        if let Some(found) = cluster::found(self)? {
            return cluster::run_shared(self, &found, rank).map(|()| ExitCode::SUCCESS);
        }
        match self.backend {
            Backend::Shm => self.start_processes(),
            Backend::Threads => {
                observing::leave_out_threads(self);
                threads_end(self.threads().run_through_with(rank)?)?;
                Ok(ExitCode::SUCCESS)
            }
            Backend::Cluster => self.start_cluster(),
            Backend::Virt => Err(FabricError::Unsupported { feature: &"a runtime of the program's own" }.into()),
        }
    }

    fn threads(&self) -> Threads {
        let threads = Threads::new(self.ranks).bind(self.bind).stuck_after(self.stuck_after);
        threads.shared_address_space(self.shared_address_space).progress_thread(self.progress_thread)
    }

    /// Executes this binary again, as all ranks.
    fn start_processes(&self) -> Result<ExitCode, LaunchError> {
        #[cfg(target_os = "linux")]
        let found = bootstrap::ThisProgram::find().map(|this| (this.file().to_owned(), this.loading().to_vec()));
        #[cfg(not(target_os = "linux"))]
        let found = std::env::current_exe().map(|file| (file, Vec::new()));
        let (program, loading) = found.map_err(|error| FabricError::System {
            call: &"find this program",
            errno: error.raw_os_error().unwrap_or(0),
        })?;
        let launcher = Launcher::new(self.ranks).bind(self.bind).stuck_after(self.stuck_after);
        let launcher = launcher.shared_address_space(self.shared_address_space).progress_thread(self.progress_thread);
        let launcher = launcher.command(program, loading.into_iter().chain(std::env::args_os().skip(1)));
        let code = observing::start(self, launcher)?;
        Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
    }

    /// Executes this binary again, as all ranks, on the hosts that the options name.
    fn start_cluster(&self) -> Result<ExitCode, LaunchError> {
        #[cfg(target_os = "linux")]
        return cluster::start(self).map(|code| ExitCode::from(u8::try_from(code).unwrap_or(1)));
        #[cfg(not(target_os = "linux"))]
        Err(FabricError::Unsupported { feature: &"ranks on several machines" }.into())
    }

    /// Runs `program`. Not generic over it, so that the code that starts ranks is compiled once,
    /// with this crate, and not again with each program.
    fn try_run(&self, program: &AnyProgram<'_>) -> Result<ExitCode, LaunchError> {
        let program = async |fabric| program(fabric).await;
        #[cfg(target_os = "linux")]
        if crate::simulated::run(&program)? {
            return Ok(ExitCode::SUCCESS);
        }
        if let Some(endpoint) = tofu2_sim::shm::from_env()? {
            return observing::run_rank(endpoint, &program).map(|()| ExitCode::SUCCESS);
        }
        // Programs whose options have another source enter here.
        #[cfg(target_os = "linux")]
        if let Some(code) = cluster::serve_if_asked() {
            return Ok(code);
        }
        #[cfg(target_os = "linux")]
        if let Some(found) = cluster::found(self)? {
            return cluster::run(self, &found, &program).map(|()| ExitCode::SUCCESS);
        }
        if self.backend == Backend::Cluster {
            return self.start_cluster();
        }
        if self.backend == Backend::Shm {
            return self.start_processes();
        }
        observing::run_here(self, &program)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Runs all ranks in this process.
    pub(crate) fn run_here<P: Program>(&self, program: &P) -> Result<(), LaunchError> {
        if self.backend == Backend::Threads {
            return threads_end(self.threads().run_through(program)?);
        }
        let timeline_file = TimelineFile::open(self)?;
        let mut platform = self.platform.clone();
        if self.shared_address_space {
            platform = platform.with("shared_tags", 1)?;
        }
        let mut job = Job::new(&platform, self.ranks)
            .ranks_per_node(self.ranks_per_node.unwrap_or(1))
            .seed(self.seed)
            .jitter(self.jitter)
            .shuffle_ties(self.seed != 0);
        if let Some(faults) = &self.faults {
            job = job.faults(faults.clone());
        }
        let (run, failure) = timeline_file.of(job).run_through(program)?;
        if let Some(report) = &run.faults {
            for (fault, struck) in report.faults.as_slice().iter().zip(&report.struck) {
                emit(format_args!("fault: {fault} ({})", if *struck { "struck" } else { "met nothing" }));
            }
        }
        let told = timeline_file.write(&run);
        let stats = run.stats;
        let jitter = if self.jitter.is_zero() { String::new() } else { format!(", jitter {:?}", self.jitter) };
        emit(format_args!(
            "virtual time {}, {} events, trace {:016x}, seed {}{jitter}",
            stats.end, stats.events, stats.trace_hash, self.seed
        ));
        observing::both(simulated_end((run, failure)), told)
    }
}
