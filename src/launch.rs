//! Starting a program's ranks.

use crate::{
    amount::Amount,
    any_program::AnyProgram,
    ended, faults_file,
    launch_error::LaunchError,
    observing::{self, Drawing},
    provider::Provider,
    settings::{option, setting},
    tell::{print, say},
};
use rdma_fabric::{Fabric, FabricError, Program, ProgramResult};
use std::{ffi::OsString, fmt::Display, path::PathBuf, process::ExitCode, time::Duration};
use tofu2_sim::{
    shm::{self, Bind, DEFAULT_STUCK_AFTER, Launcher, StuckAfter, Threads, run_rank_with},
    virt::{Faults, Job, Platform},
};

/// Start `program` as the command line says, and be its exit code.
///
/// `--ranks N` says how many, `--fabric shm|threads|virt` on what, `--help` what else there is; see [`Launch`]. With processes the
/// program's binary is executed once more for each rank, so nothing before this call should have effects.
///
/// Errors go to standard error, with the rank in front. What the command line says beyond that is one: programs with options of their own
/// have [`launch_with`].
pub fn launch<P: Program>(program: P) -> ExitCode {
    launch_with("", |rest| nothing_more(rest).map(|()| program))
}

/// [`launch`] for a program with options of its own. `program` makes it of what [`Launch::from_args`] left over.
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
        Err(error) => report(&error),
    })
}

/// Start ranks that are written for shared memory alone and bring their own runtime: [`Launch::from_args`] and
/// [`Launch::run_shared`]. They can't be observed (`--stats`, `--trace`).
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
        Err(error) => report(&error),
    })
}

/// `start` with what the command line says, unless it asks for help.
fn started(usage: &str, start: impl FnOnce(Launch, Vec<OsString>) -> ExitCode) -> ExitCode {
    match Launch::from_args() {
        Ok((_, rest)) if rest.iter().any(|word| word == "--help" || word == "-h") => {
            let gap = if usage.is_empty() { "" } else { "\n" };
            match print(&format!("{usage}{gap}{}", Launch::HELP)) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => report(&format_args!("standard output can't be written: {error}")),
            }
        }
        Ok((launch, rest)) => start(launch, rest),
        Err(error) => report(&error),
    }
}

fn nothing_more(rest: Vec<OsString>) -> Result<(), FabricError> {
    match rest.first() {
        None => Ok(()),
        Some(word) => Err(setting("arguments", format!("there is no `{}`; --help says what there is", word.display()))),
    }
}

/// How to start a program.
///
/// | option | environment | meaning | default |
/// |---|---|---|---|
/// | `--ranks N` | `ONESIDED_RANKS` | number of ranks | 1 |
/// | `--fabric NAME` | `ONESIDED_FABRIC` | `shm`, `threads` or `virt` | `shm` |
/// | `--stats` | `ONESIDED_STATS=1` | feature `observe`: print counters of operations and waits at the end, on standard error | off |
/// | `--trace FILE` | `ONESIDED_TRACE` | feature `observe`: write a trace that Perfetto reads | off |
/// | `--bind NAME` | `ONESIDED_BIND` | CPUs of each rank: `none` (any), `core` (one) or `numa` (those of a node); see [`Bind`] | `none` |
/// | `--stuck-after SECONDS` | `ONESIDED_STUCK_AFTER` | shm, threads: end the job, and say who waits for what, when all ranks have been parked so long and nobody can wake them; `never` or 0: don't look | 10 |
/// | `--ranks-per-node N` | | virt: ranks on each simulated machine | 1 |
/// | `--platform NAME` | | virt: `fx100` or `fx10` | `fx100` |
/// | `--timeline FILE` | | virt, feature `observe`: write what the simulated machine did, for Perfetto: CPUs, control queues, TNIs, atomic units | off |
/// | `--faults FILE` | | virt: let these things go wrong, a line each; see [`tofu2_sim::virt::Faults`] | none |
/// | `--seed N` | | virt: shuffle events of one moment by this seed; 0 keeps their order | 0 |
/// | `--jitter AMOUNT` | | virt: add a random latency up to this (`500ns`, `2us`, `1ms`) to each leg of an operation, drawn by the seed: puts overtake each other where the contract lets them | none |
///
/// Events of one moment are few, so `--seed` alone shows little. A flag that is put behind data without a flush, for instance, comes before the data
/// with `--jitter 2us` and one of a few seeds. Same program, seed and jitter: the same run, and the same trace hash at its end.
///
/// An option wins over the environment; an empty value is an error. A process that [`Launch`] or `onesided run` started as a rank ignores all
/// of them and is that rank.
///
/// `--stats` and `--trace` put a provider that observes between the program and its fabric
/// (`onesided::observe::observed`); without them nothing is there, and nothing paid. Ranks of
/// [`Launch::run_shared`] have the bare fabric always and are not observed, which is said on
/// standard error. A program that was built without the feature `observe` refuses these options,
/// and `--timeline`.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Number of ranks.
    pub ranks: usize,
    /// What they run on.
    pub provider: Provider,
    /// Ranks on each simulated machine.
    pub ranks_per_node: u32,
    /// The simulated machine.
    pub platform: Platform,
    /// Seed of a simulated run: shuffles events of one moment unless it is 0.
    pub seed: u64,
    /// Longest random latency that is added to each leg of an operation in a simulated run.
    pub jitter: Duration,
    /// How long all ranks may be parked while nobody can wake them, before the job ends; see [`Launcher::stuck_after`].
    pub stuck_after: Option<Duration>,
    /// Which CPUs each rank may use. Virtual time has only one thread and ignores it.
    pub bind: Bind,
    /// Counters and traces, with the feature `observe`.
    #[cfg(feature = "observe")]
    pub observe: observe::WantedReport,
    /// Where to write the timeline of a simulated run, with the feature `observe`.
    #[cfg(feature = "observe")]
    pub timeline: Option<PathBuf>,
    /// What goes wrong in a simulated run.
    pub faults: Option<Faults>,
}

impl Default for Launch {
    fn default() -> Self {
        Launch {
            ranks: 1,
            provider: Provider::Shm,
            ranks_per_node: 1,
            platform: Platform::fx100(),
            seed: 0,
            jitter: Duration::ZERO,
            stuck_after: Some(DEFAULT_STUCK_AFTER),
            bind: Bind::None,
            #[cfg(feature = "observe")]
            observe: observe::WantedReport::default(),
            #[cfg(feature = "observe")]
            timeline: None,
            faults: None,
        }
    }
}

/// [`Launch::HELP`], with what is there in some builds only: lines of all fabrics, lines of virtual time, an end.
macro_rules! help {
    ($common:literal, $simulated:literal, $end:literal) => {
        concat!(
            "\
Ranks and what they run on:
  --ranks N            number of ranks (1; ONESIDED_RANKS)
  --fabric NAME        shm: processes; threads; virt: simulated, in virtual time (shm; ONESIDED_FABRIC)
  --bind NAME          CPUs of each rank: none, core or numa (none; ONESIDED_BIND)",
            $common,
            "
  --stuck-after S      end a job whose ranks all wait for each other after S seconds, or never (10; ONESIDED_STUCK_AFTER)
Of virtual time:
  --platform NAME      fx100 or fx10 (fx100)
  --ranks-per-node N   ranks on each simulated machine (1)",
            $simulated,
            "
  --faults FILE        let these things go wrong
  --seed N             shuffle events of one moment (0: keep their order)
  --jitter AMOUNT      add a random latency up to this to each leg of an operation, as 2us (none)
",
            $end
        )
    };
}

impl Launch {
    /// The options of [`Launch::from_args`], a line each, for a program's help.
    pub const HELP: &str = if cfg!(feature = "observe") {
        help!(
            "
  --stats              print counters of operations and waits (ONESIDED_STATS=1)
  --trace FILE         write operations and waits for Perfetto (ONESIDED_TRACE)",
            "
  --timeline FILE      write what the simulated machine did for Perfetto",
            ""
        )
    } else {
        help!("", "", "Built without the feature `observe` of the crate `onesided`: no --stats, --trace, --timeline.\n")
    };

    /// Read this process's arguments and environment. Yields what was not ours, for the program's own use.
    ///
    /// # Errors
    /// [`FabricError::Setting`].
    pub fn from_args() -> Result<(Self, Vec<OsString>), FabricError> {
        let mut args = pico_args::Arguments::from_env();
        let mut launch = Launch::default();
        if let Some(ranks) = option(&mut args, "--ranks", Some("ONESIDED_RANKS"))? {
            launch.ranks = ranks;
        }
        if let Some(provider) = option(&mut args, "--fabric", Some("ONESIDED_FABRIC"))? {
            launch.provider = provider;
        }
        if let Some(n) = option(&mut args, "--ranks-per-node", None)? {
            launch.ranks_per_node = n;
        }
        if let Some(seed) = option(&mut args, "--seed", None)? {
            launch.seed = seed;
        }
        if let Some(Amount(jitter)) = option(&mut args, "--jitter", None)? {
            launch.jitter = jitter;
        }
        if let Some(StuckAfter(bound)) = option(&mut args, "--stuck-after", Some("ONESIDED_STUCK_AFTER"))? {
            launch.stuck_after = bound;
        }
        if let Some(bind) = option(&mut args, "--bind", Some("ONESIDED_BIND"))? {
            launch.bind = bind;
        }
        observing::from_args(&mut launch, &mut args)?;
        match option::<String>(&mut args, "--platform", None)?.as_deref() {
            None | Some("fx100") => {}
            Some("fx10") => launch.platform = Platform::fx10(),
            Some(other) => return Err(setting("--platform", format!("`{other}` is neither fx100 nor fx10"))),
        }
        if launch.ranks == 0 || launch.ranks_per_node == 0 {
            return Err(setting("--ranks", "a job has at least one rank".into()));
        }
        if let Some(path) = option::<PathBuf>(&mut args, "--faults", None)? {
            launch.faults = Some(faults_file::read(&path).map_err(|problem| setting("--faults", problem))?);
        }
        if launch.faults.is_some() && launch.provider != Provider::Virt {
            return Err(setting("--faults", "only `--fabric virt` has them".into()));
        }
        if !launch.jitter.is_zero() && launch.provider != Provider::Virt {
            return Err(setting("--jitter", "only `--fabric virt` has it".into()));
        }
        Ok((launch, args.finish()))
    }

    /// Run `program` and be its exit code: 0 if all ranks ended well, otherwise that of the rank that failed
    /// first, 1 if it has none of its own.
    pub fn run<P: Program>(&self, program: &P) -> ExitCode {
        self.run_any(&AnyProgram(&|fabric| Box::pin(async move { program.run(fabric).await.map(drop) })))
    }

    fn run_any(&self, program: &AnyProgram<'_>) -> ExitCode {
        match self.try_run(program) {
            Ok(code) => code,
            Err(error) => report(&error),
        }
    }

    /// [`Launch::run`] for ranks that are written for shared memory alone. `rank` is called once per rank, on its process's main
    /// thread or on its own thread; it may run its futures on any executor, and move or spawn them where it likes: futures of
    /// shared memory are `Send`.
    ///
    /// Ranks in virtual time are refused with [`FabricError::Unsupported`]: there is no runtime there but the simulator.
    pub fn run_shared<T: Send>(&self, rank: impl Fn(Fabric) -> ProgramResult<T> + Sync) -> ExitCode {
        match self.try_run_shared(&|fabric| rank(fabric).map(drop)) {
            Ok(code) => code,
            Err(error) => report(&error),
        }
    }

    fn try_run_shared(&self, rank: &(dyn Fn(Fabric) -> ProgramResult<()> + Sync)) -> Result<ExitCode, LaunchError> {
        if let Some(endpoint) = shm::from_env()? {
            observing::leave_out(&endpoint);
            run_rank_with(endpoint, rank)?;
            return Ok(ExitCode::SUCCESS);
        }
        match self.provider {
            Provider::Shm => self.start_processes(),
            Provider::Threads => {
                observing::leave_out_threads(self);
                ended::of_threads(self.threads().run_through_with(rank)?)?;
                Ok(ExitCode::SUCCESS)
            }
            Provider::Virt => Err(FabricError::Unsupported { feature: &"a runtime of the program's own" }.into()),
        }
    }

    fn threads(&self) -> Threads {
        Threads::new(self.ranks).bind(self.bind).stuck_after(self.stuck_after)
    }

    /// This binary again, as all ranks.
    fn start_processes(&self) -> Result<ExitCode, LaunchError> {
        let program = std::env::current_exe()
            .map_err(|error| FabricError::System { call: &"current_exe", errno: error.raw_os_error().unwrap_or(0) })?;
        let launcher = Launcher::new(self.ranks).bind(self.bind).stuck_after(self.stuck_after);
        let launcher = launcher.command(program, std::env::args_os().skip(1));
        let code = observing::start(self, launcher)?;
        Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
    }

    fn try_run(&self, program: &AnyProgram<'_>) -> Result<ExitCode, LaunchError> {
        if let Some(endpoint) = tofu2_sim::shm::from_env()? {
            return observing::run_rank(endpoint, program).map(|()| ExitCode::SUCCESS);
        }
        if self.provider == Provider::Shm {
            return self.start_processes();
        }
        observing::run_here(self, program)?;
        Ok(ExitCode::SUCCESS)
    }

    /// All ranks in this process.
    pub(crate) fn run_here<P: Program>(&self, program: &P) -> Result<(), LaunchError> {
        if self.provider == Provider::Threads {
            return ended::of_threads(self.threads().run_through(program)?);
        }
        let drawing = Drawing::open(self)?;
        let mut job = Job::new(&self.platform, self.ranks)
            .ranks_per_node(self.ranks_per_node)
            .seed(self.seed)
            .jitter(self.jitter)
            .shuffle_ties(self.seed != 0);
        if let Some(faults) = &self.faults {
            job = job.faults(faults.clone());
        }
        let (run, failure) = drawing.of(job).run_through(program)?;
        if let Some(report) = &run.faults {
            for (fault, struck) in report.faults.as_slice().iter().zip(&report.struck) {
                say(format_args!("fault: {fault} ({})", if *struck { "struck" } else { "met nothing" }));
            }
        }
        let told = drawing.write(&run);
        let stats = run.stats;
        let jitter = if self.jitter.is_zero() { String::new() } else { format!(", jitter {:?}", self.jitter) };
        say(format_args!(
            "virtual time {}, {} events, trace {:016x}, seed {}{jitter}",
            stats.end, stats.events, stats.trace_hash, self.seed
        ));
        observing::both(ended::of_simulated((run, failure)), told)
    }
}

/// What is said instead of counters where ranks have the bare fabric.
pub(crate) const UNOBSERVED: &str =
    "not observed: the ranks have their fabric from `launch_shared`; only those of `launch` can be";

fn report(error: &impl Display) -> ExitCode {
    say(format_args!("error: {error}"));
    ExitCode::FAILURE
}
