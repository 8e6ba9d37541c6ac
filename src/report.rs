//! Messages for users: plain text, the ends of ranks that are not processes, and the errors of
//! launches.

use rdma_fabric::FabricError;
use std::{
    borrow::Cow,
    env,
    fmt::Display,
    io::{self, Write as _},
    process::ExitCode,
};
use tofu2_sim::{JobError, ends_in_words, shm::EachRank, virt::PartialRun};

/// The error of a launch.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LaunchError {
    #[error("{0}")]
    Job(#[from] JobError),
    /// A job of several processes could not be formed, or its network failed.
    #[error("{0}")]
    Cluster(String),
    /// Its ranks could not be started on the hosts that a file lists.
    #[cfg(target_os = "linux")]
    #[error("{0}")]
    Hosts(#[from] crate::cluster::HostsError),
    #[cfg(feature = "observe")]
    #[error("{0}")]
    Observe(#[from] observe::ObserveError),
}

impl From<FabricError> for LaunchError {
    fn from(error: FabricError) -> Self {
        LaunchError::Job(error.into())
    }
}

/// The message that replaces counters if ranks have the bare fabric.
pub(crate) const UNOBSERVED: &str =
    "not observed: the ranks have their fabric from `launch_shared`; only those of `launch` can be";

/// Writes to standard output. A reader that closes its end early is not an error.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Writes a line to standard error. A failure could not be reported, and nothing else depends on
/// it.
pub(crate) fn emit(text: impl Display) {
    // A single write keeps lines of several processes whole. `eprintln!` would panic.
    let _ = io::stderr().lock().write_all(format!("{text}\n").as_bytes());
}

/// Prints the error in a command line, and how to list the options. Returns the exit code 2, as the
/// `onesided` command does.
pub(crate) fn usage_error(error: &impl Display) -> ExitCode {
    let program = env::args_os().next().map_or_else(|| "PROGRAM".into(), |own| own.to_string_lossy().into_owned());
    emit(format_args!(
        "error: {error}\nusage: {program} [--ranks N] [--fabric NAME] [options]; --help lists all options"
    ));
    ExitCode::from(2)
}

/// Prints why a program did not run, and returns its exit code.
pub(crate) fn report(error: &impl Display) -> ExitCode {
    emit(format_args!("error: {error}"));
    ExitCode::FAILURE
}

/// Prints why a job failed, and returns its exit code. The error of a rank of an aborted job is
/// left to the process that started the job.
pub(crate) fn failed(error: &LaunchError) -> ExitCode {
    if let LaunchError::Job(JobError::RankFailed { error, .. }) = error
        && let Some(FabricError::Aborted { .. }) = error.downcast_ref()
    {
        return ExitCode::FAILURE;
    }
    emit(format_args!("error: {error}"));
    match error {
        LaunchError::Job(error) => ExitCode::from(error.exit_code()),
        LaunchError::Cluster(_) => ExitCode::FAILURE,
        #[cfg(target_os = "linux")]
        LaunchError::Hosts(_) => ExitCode::FAILURE,
        #[cfg(feature = "observe")]
        LaunchError::Observe(_) => ExitCode::FAILURE,
    }
}

fn in_words(error: &JobError) -> Cow<'static, str> {
    let words = match error {
        JobError::RankFailed { error, .. } => format!("failed: {error}"),
        JobError::RankPanicked { message, .. } => format!("panicked: {message}"),
        other => other.to_string(),
    };
    words.into()
}

fn tell(ways: &[Cow<'_, str>], first: Option<usize>) {
    ends_in_words(ways, first).iter().for_each(emit);
}

/// Prints how each rank of a job of threads ended. Returns the first failure, which is the job's.
pub(crate) fn threads_end<T>((mut ranks, first): EachRank<T>) -> Result<(), LaunchError> {
    let Some(first) = first else { return Ok(()) };
    let way = |ended: &Result<T, JobError>| ended.as_ref().err().map_or(WELL.into(), in_words);
    tell(&ranks.iter().map(way).collect::<Vec<_>>(), Some(first));
    ranks.swap_remove(first).map(drop).map_err(Into::into)
}

/// Prints how each rank of a simulated job ended. Returns the first failure, the only one that such
/// a job records.
pub(crate) fn simulated_end<T>((run, failure): PartialRun<T>) -> Result<(), LaunchError> {
    let Some(failure) = failure else { return Ok(()) };
    let first = match &failure {
        JobError::RankFailed { rank, .. } | JobError::RankPanicked { rank, .. } => Some(rank.index()),
        _ => None,
    };
    let way = |(rank, out): (usize, &Option<T>)| match out {
        Some(_) => WELL.into(),
        None if first == Some(rank) => in_words(&failure),
        None => "failed later".into(),
    };
    tell(&run.outs.iter().enumerate().map(way).collect::<Vec<_>>(), first);
    Err(failure.into())
}

const WELL: &str = "ended well";
