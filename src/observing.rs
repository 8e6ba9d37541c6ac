//! Observed jobs, and the message when a job can't be observed. `unobserved.rs` replaces this file
//! without the feature `observe`.

use crate::{
    Backend, Launch,
    report::{LaunchError, UNOBSERVED, emit},
    settings::{EMPTY, option, setting},
};
use observe::{Detail, Gathering, Observation, ObserveError, Output, RECORDS_VARIABLE, RecordDirectory, RecordWriter};
use rdma_fabric::{Fabric, FabricError, Program, Rank, Time};
use std::{
    ffi::{OsStr, OsString},
    path::PathBuf,
};
use tofu2_sim::{
    shm::{self, Launcher},
    virt::{Job, Run, Timeline},
};

/// Reads the options for observation.
pub(crate) fn from_args(launch: &mut Launch, args: &mut pico_args::Arguments) -> Result<(), FabricError> {
    launch.observe.stats = args.contains("--stats") || flag_variable("ONESIDED_STATS")?;
    launch.observe.trace = option::<PathBuf>(args, "--trace", Some("ONESIDED_TRACE"))?;
    launch.timeline = option::<PathBuf>(args, "--timeline", None)?;
    if launch.timeline.is_some() && launch.backend != Backend::Virt {
        return Err(setting("--timeline", "only `--fabric virt` has one; `--trace` shows operations".into()));
    }
    Ok(())
}

/// Returns whether an environment variable is set to anything but `0`. An empty value is an error.
fn flag_variable(name: &'static str) -> Result<bool, FabricError> {
    match std::env::var_os(name) {
        Some(value) if value.is_empty() => Err(setting(name, EMPTY.to_owned())),
        value => Ok(value.is_some_and(|value| value != "0")),
    }
}

/// Reports, once per job, that its ranks have the bare fabric, if their observation was requested.
pub(crate) fn leave_out(endpoint: &Fabric) {
    if endpoint.rank() == Rank::new(0) && RecordWriter::from_env().is_ok_and(|part| part.is_some()) {
        emit(UNOBSERVED);
    }
}

/// Reports that ranks that are threads have the bare fabric, if their observation was requested.
pub(crate) fn leave_out_threads(launch: &Launch) {
    if launch.observe.detail().is_some() {
        emit(UNOBSERVED);
    }
}

/// Runs this process as a rank of its job, observed if its launcher requests that.
pub(crate) fn run_rank<P: Program>(endpoint: Fabric, program: &P) -> Result<(), LaunchError> {
    let Some(part) = RecordWriter::from_env()? else { return Ok(shm::run_rank(endpoint, program).map(drop)?) };
    let gathering = Gathering::new(part.detail, 1);
    let ended = shm::run_rank(endpoint, &gathering.watch(program)).map(drop);
    // A rank that failed also reports the work that it did before.
    both(ended, part.write(&gathering.records()))
}

/// Returns whether counters were requested.
#[cfg(feature = "ofi")]
pub(crate) fn wants_counters(launch: &Launch) -> bool {
    launch.observe.stats
}

/// Runs this process as a rank of a job of several nodes.
#[cfg(target_os = "linux")]
pub(crate) fn run_over<P: Program>(part: &shm::part::Part, fabric: Fabric, program: &P) -> Result<(), LaunchError> {
    let Some(record) = RecordWriter::from_env()? else { return Ok(part.run(fabric, program).map(drop)?) };
    let gathering = Gathering::new(record.detail, 1);
    let ended = part.run(fabric, &gathering.watch(program)).map(drop);
    both(ended, record.write(&gathering.records()))
}

/// Starts processes.
pub(crate) fn start(launch: &Launch, launcher: Launcher) -> Result<i32, LaunchError> {
    start_with(launch, |variable| match variable {
        Some((name, value)) => Ok(launcher.env(name, value).run()?),
        None => Ok(launcher.run()?),
    })
}

/// Starts processes by `run`, which receives the variable that specifies the records to write, if
/// any.
pub(crate) fn start_with(
    launch: &Launch,
    run: impl FnOnce(Option<(&'static str, OsString)>) -> Result<i32, LaunchError>,
) -> Result<i32, LaunchError> {
    let (ended, told) = launch.observe.of_processes(launch.ranks, run)?;
    both(ended, told)
}

/// Returns the kind of records in the variable's value, for [`Records::create`].
#[cfg(target_os = "linux")]
pub(crate) fn what_to_record(value: &OsStr) -> String {
    value.to_string_lossy().split(':').next().unwrap_or_default().to_owned()
}

/// Stores the record of a rank of another host, as if the rank had written it to the place in the
/// variable.
#[cfg(target_os = "linux")]
pub(crate) fn bring_home(value: &OsStr, rank: u32, record: &[u8]) -> Result<(), ObserveError> {
    RecordWriter::from_value(value)?.write_bytes(rank, record)
}

/// Records of ranks of this host, whose launcher is on another one.
#[cfg(target_os = "linux")]
pub(crate) struct Records(RecordDirectory);

#[cfg(target_os = "linux")]
impl Records {
    pub(crate) fn create(what: &str) -> Result<Self, ObserveError> {
        let detail = if what == "trace" { Detail::Trace } else { Detail::Stats };
        RecordDirectory::create(detail).map(Records)
    }

    /// Returns the variable for the ranks.
    pub(crate) fn variable(&self) -> (&'static str, OsString) {
        (RECORDS_VARIABLE, self.0.variable())
    }

    /// Returns the record of a rank, if it has written one.
    pub(crate) fn of(&self, rank: u32) -> Option<Vec<u8>> {
        self.0.bytes(rank)
    }
}

/// Runs all ranks in this process.
pub(crate) fn run_here<P: Program>(launch: &Launch, program: &P) -> Result<(), LaunchError> {
    let Some(detail) = launch.observe.detail() else { return launch.run_here(program) };
    let (prepared, gathering) = (launch.observe.prepare()?, Gathering::new(detail, launch.ranks));
    let ended = launch.run_here(&gathering.watch(program));
    both(ended, prepared.report(&Observation::new(launch.ranks, gathering.records())))
}

/// The file for the timeline of a simulated run.
pub(crate) struct TimelineFile(Option<Output>);

impl TimelineFile {
    pub(crate) fn open(launch: &Launch) -> Result<Self, LaunchError> {
        Ok(TimelineFile(launch.timeline.as_deref().map(Output::open).transpose()?))
    }

    /// Returns `job`, which records a timeline if there is a file for it.
    pub(crate) fn of<'a>(&self, job: Job<'a>) -> Job<'a> {
        if self.0.is_some() { job.timeline(Timeline::ENTRIES, Time::ZERO) } else { job }
    }

    pub(crate) fn write<T>(self, run: &Run<T>) -> Result<(), ObserveError> {
        let (Some(out), Some(timeline)) = (self.0, &run.timeline) else { return Ok(()) };
        let path = out.path().to_owned();
        out.write(|file| timeline.write(file))?;
        let (kept, dropped) = (timeline.len(), timeline.dropped());
        emit(format_args!("timeline: {}, {kept} entries, {dropped} later ones left out", path.display()));
        Ok(())
    }
}

/// Returns the result of the job, or the error of its report. If both failed, the second error goes
/// to standard error.
pub(crate) fn both<T, E: Into<LaunchError>>(
    ended: Result<T, E>,
    told: Result<(), ObserveError>,
) -> Result<T, LaunchError> {
    match (ended, told) {
        (Ok(value), told) => told.map(|()| value).map_err(Into::into),
        (Err(error), told) => {
            if let Err(untold) = told {
                emit(format_args!("error: {untold}"));
            }
            Err(error.into())
        }
    }
}
