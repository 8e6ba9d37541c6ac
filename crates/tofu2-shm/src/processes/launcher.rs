//! The public interface to jobs whose ranks are processes.

use crate::{
    JobError,
    options::{JobOptions, job_options},
};
use core::time::Duration;
use rdma_fabric::{Fabric, FabricError};
use std::ffi::OsString;

/// The environment variable that identifies a process's job and rank.
pub const JOB_VARIABLE: &str = "ONESIDED_JOB";

/// The first word of that variable in a process that a simulator steps (`tofu2-stepped`).
pub const VIRTUAL_JOB: &str = "virtual";

/// Environment variables that, if set, keep libraries of libfabric (those of InfiniPath and Omni-Path) from
/// installing signal handlers on load, which would end a rank with code 1 where a signal ends it. Launchers
/// set them to 1 for their ranks, unless they are set.
pub const NO_HANDLERS: [&str; 2] = ["HFI_NO_BACKTRACE", "IPATH_NO_BACKTRACE"];

/// Runs one command as all ranks of a job, each in its own process. Linux only.
///
/// Standard input goes to rank 0. Standard output is inherited, unless [`Launcher::discard_stdout`]
/// is set. Standard error is forwarded line by line, prefixed with the rank. If the launcher's
/// standard error is not read, ranks block when they write to theirs; output that remains at the
/// end of the job is dropped after a second.
#[derive(Clone, Debug)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
pub struct Launcher {
    pub(crate) options: JobOptions,
    pub(crate) grace: Duration,
    pub(crate) discard_stdout: bool,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) command: Option<(OsString, Vec<OsString>)>,
}

job_options!(Launcher);

impl Launcher {
    /// Prepares a job of `ranks` ranks, all on node 0, with 10 s of grace.
    pub fn new(ranks: usize) -> Self {
        Launcher {
            options: JobOptions::new(ranks),
            grace: Duration::from_secs(10),
            discard_stdout: false,
            environment: Vec::new(),
            command: None,
        }
    }

    /// Sets the time that the other ranks may take to end after one has failed; then they are
    /// killed.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets whether the ranks' standard output is discarded.
    #[must_use]
    pub fn discard_stdout(mut self, discard: bool) -> Self {
        self.discard_stdout = discard;
        self
    }

    /// Adds an environment variable for the ranks to those of the calling process.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Sets the command to run as each rank.
    #[must_use]
    pub fn command(
        mut self,
        program: impl Into<OsString>,
        args: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Self {
        self.command = Some((program.into(), args.into_iter().map(Into::into).collect()));
        self
    }

    /// Runs the job to completion and returns its exit code: 0 if all ranks ended with 0, else that
    /// of the rank that failed first, or 128 + signal if a signal ended it. In the latter cases, a
    /// report on standard error lists how each rank ended.
    ///
    /// A rank that ends abnormally is lost to the others: by a signal, with a non-zero code, or in
    /// the middle of its program, which makes the job's code 1 if its own is 0; an *attached
    /// process* ([`attach_process`](crate::attach_process)) has left when it ends with 0. A
    /// rank that ends without having attached is lost too, but only to ranks that do attach, so a
    /// command that does not use this library may be run.
    ///
    /// A command may be a script that starts the rank's program, once, and waits for it: the rank
    /// is lost when its command has ended, even if the program continues; so is an attached
    /// process, unless the command ended with 0.
    ///
    /// Each rank takes two file descriptors in the calling process, and two more if it registers
    /// existing memory. A rank itself has two of the job's descriptors open, and one for each rank
    /// whose existing memory it accesses.
    ///
    /// A signal to the calling process that asks it to end sends SIGTERM to all ranks, and SIGKILL
    /// after half a second or at the next signal; the exit code is 128 + that signal. These are
    /// SIGINT, SIGTERM and SIGQUIT and, unless the process ignores or handles them itself, SIGHUP,
    /// SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM and SIGXCPU. If the calling *thread* ends, all ranks
    /// are killed. If the calling process ignored SIGCHLD, it no longer does so afterwards.
    ///
    /// # Errors
    /// [`JobError::Deadlock`] if no rank had failed and none could make progress: their waits ended
    /// with [`FabricError::Deadlock`], and they were killed after the grace period.
    /// [`JobError::Aborted`] if a rank aborted the job: all have ended within a second; those that
    /// still ran after half a second, by SIGKILL. (Processes that a rank's command has started are
    /// not ended.) [`JobError::TooManyRanks`] if this machine has no room for the ranks; nothing
    /// was started. [`JobError::Fabric`] if the job could not be started: [`FabricError::Setting`]
    /// for an invalid option, or a command that is not found, [`FabricError::System`] for a refusal
    /// of the operating system, [`FabricError::Unsupported`] on systems other than Linux, or for
    /// [`Bind::Numa`](crate::Bind::Numa) where the system reports no NUMA nodes. No process is
    /// left behind in this case.
    pub fn run(&self) -> Result<i32, JobError> {
        #[cfg(target_os = "linux")]
        return super::start::run(self);
        #[cfg(not(target_os = "linux"))]
        Err(FabricError::Unsupported { feature: &"ranks as processes" }.into())
    }
}

/// Returns the rank that this process is, if a [`Launcher`] started it; `None` if [`JOB_VARIABLE`]
/// is not set.
///
/// A rank is one process, once: the first process that calls this becomes the rank permanently,
/// even after it has ended or executed another program. Every other process is refused, whether a
/// script or the rank itself started it, without any effect on the job. The job's file, which the
/// process has inherited, stays open under its number.
///
/// # Errors
/// [`FabricError::RankTaken`] if another process, or this one, is the rank already.
/// [`FabricError::Setting`] if the variable is malformed or names a file that is not the job's, so
/// that a damaged job never turns into many one-rank jobs. [`FabricError::Corrupt`],
/// [`FabricError::System`].
pub fn from_env() -> Result<Option<Fabric>, FabricError> {
    #[cfg(target_os = "linux")]
    return super::attach::from_env(crate::job::holder::Holder::Somebody)
        .map(|rank| rank.map(crate::endpoint::Endpoint::fabric));
    #[cfg(not(target_os = "linux"))]
    match std::env::var_os(JOB_VARIABLE) {
        None => Ok(None),
        Some(_) => Err(FabricError::Unsupported { feature: &"ranks as processes" }),
    }
}
