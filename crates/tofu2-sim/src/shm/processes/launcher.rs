//! Jobs whose ranks are processes, as users see them.

use super::placement::Bind;
use crate::{
    JobError, QueueMachine,
    shm::{
        endpoint::Endpoint, queues::config::QueueOptions, threads::DEFAULT_SEGMENT_BYTES,
        waiting::watchdog::DEFAULT_STUCK_AFTER,
    },
};
use core::time::Duration;
use rdma_fabric::{Fabric, FabricError};
use std::ffi::OsString;

/// The environment variable that tells a process which rank of which job it is.
pub const JOB_VARIABLE: &str = "ONESIDED_JOB";

/// Runs one command as all ranks of a job, each in a process of its own. Linux only.
///
/// Standard input goes to rank 0; standard output is inherited unless [`Launcher::discard_stdout`] is asked for; standard
/// error is passed on line by line, with the rank in front. If nobody reads the launcher's standard error, the ranks
/// wait when they write to theirs, and what is left at the job's end is given up after a second.
#[derive(Clone, Debug)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
pub struct Launcher {
    pub(crate) ranks: usize,
    pub(crate) segment_bytes: usize,
    pub(crate) ranks_per_node: Option<usize>,
    pub(crate) grace: Duration,
    pub(crate) discard_stdout: bool,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) command: Option<(OsString, Vec<OsString>)>,
    pub(crate) bind: Bind,
    pub(crate) queues: QueueOptions,
    pub(crate) stuck_after: Option<Duration>,
}

impl Launcher {
    /// `ranks` ranks with [`DEFAULT_SEGMENT_BYTES`] each, all on node 0, and 10 s of grace.
    pub fn new(ranks: usize) -> Self {
        Launcher {
            ranks,
            segment_bytes: DEFAULT_SEGMENT_BYTES,
            ranks_per_node: None,
            grace: Duration::from_secs(10),
            discard_stdout: false,
            environment: Vec::new(),
            command: None,
            bind: Bind::None,
            queues: QueueOptions::default(),
            stuck_after: Some(DEFAULT_STUCK_AFTER),
        }
    }

    /// Bytes that each rank can register. Only what is registered takes memory.
    #[must_use]
    pub fn segment_bytes(mut self, bytes: usize) -> Self {
        self.segment_bytes = bytes;
        self
    }

    /// Ranks that call themselves one node, in rank order.
    #[must_use]
    pub fn ranks_per_node(mut self, ranks: usize) -> Self {
        self.ranks_per_node = Some(ranks);
        self
    }

    /// How long the other ranks may take to end after one has failed, before they are killed.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// How long all ranks may be parked while nobody can wake them, before the job ends with [`JobError::Deadlock`]; `None` is for ever.
    /// [`DEFAULT_STUCK_AFTER`] unless told otherwise. That a rank sleeps, computes, or runs under another executor than
    /// [`block_on`](crate::shm::block_on) is no deadlock, however long.
    #[must_use]
    pub fn stuck_after(mut self, bound: Option<Duration>) -> Self {
        self.stuck_after = bound;
        self
    }

    /// Whether the ranks' standard output goes nowhere.
    #[must_use]
    pub fn discard_stdout(mut self, discard: bool) -> Self {
        self.discard_stdout = discard;
        self
    }

    /// An environment variable for the ranks, besides those of the calling process.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// What to run.
    #[must_use]
    pub fn command(
        mut self,
        program: impl Into<OsString>,
        args: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Self {
        self.command = Some((program.into(), args.into_iter().map(Into::into).collect()));
        self
    }

    /// Which CPUs each rank may use, of those that the calling thread may. Its threads and children inherit them.
    #[must_use]
    pub fn bind(mut self, bind: Bind) -> Self {
        self.bind = bind;
        self
    }

    /// Which machine's control queues each node has, [`QueueMachine::TOFU2`] unless told otherwise.
    #[must_use]
    pub fn queue_machine(mut self, machine: QueueMachine) -> Self {
        self.queues.machine = machine;
        self
    }

    /// Whether an address on one control queue means the same on the rank's other queues, which no Tofu2 can do: their steering
    /// tags are one table.
    #[must_use]
    pub fn shared_address_space(mut self, shared: bool) -> Self {
        self.queues.shared_address_space = shared;
        self
    }

    /// Whether each rank has a thread that executes what others have begun and left to it, while the rank itself computes
    /// without a call. It sleeps otherwise.
    #[must_use]
    pub fn progress_thread(mut self, progress: bool) -> Self {
        self.queues.progress_thread = progress;
        self
    }

    /// Run the job to its end; its exit code: 0 if all ranks ended with 0, else that of the rank that failed first, 128 +
    /// signal if a signal ended it. How each rank ended is said on standard error then.
    ///
    /// A rank that ends abnormally is lost to the others: by a signal, with another code than 0, or in the midst of its
    /// program, which makes the job's code 1 if its own is 0. So is one that ends without having attached, but only to
    /// ranks that do attach; a command that knows nothing of ranks may be run.
    ///
    /// A command may be a script that starts the rank's program, once, and waits for it: the rank is lost when its command has
    /// ended, be it that the program goes on.
    ///
    /// Each rank takes two descriptors of the calling process, and two more if it registers memory that existed before. A
    /// rank itself has two of the job's, and one for each rank whose such memory it reaches.
    ///
    /// SIGINT and SIGTERM to the calling process end all ranks within half a second, and the exit code is 130 or 143
    /// then. If the calling *thread* ends, all ranks are killed.
    /// If the calling process ignored SIGCHLD, it does so no more afterwards.
    ///
    /// # Errors
    /// [`JobError::Deadlock`] if no rank had failed before and none could go on: their waits ended with [`FabricError::Deadlock`], and
    /// they were killed after the grace. [`JobError::Fabric`] if the job could not be started: [`FabricError::Setting`] for what was asked for,
    /// [`FabricError::System`] for what the operating system refuses, [`FabricError::Unsupported`] where there is no
    /// Linux, or for [`Bind::Numa`] where the system tells no nodes. No process is left then.
    pub fn run(&self) -> Result<i32, JobError> {
        #[cfg(target_os = "linux")]
        return super::start::run(self);
        #[cfg(not(target_os = "linux"))]
        Err(FabricError::Unsupported { feature: &"ranks as processes" }.into())
    }
}

/// The rank that this process is, if a [`Launcher`] started it; `None` if [`JOB_VARIABLE`] is not set.
///
/// A rank is one process, once: the first that calls this is the rank for good, even when it has ended or executed another
/// program, and every other one is refused, whether a script started it or the rank itself did. What was refused
/// disturbs nobody. The job's file, which the process has inherited, stays open under its number.
///
/// # Errors
/// [`FabricError::RankTaken`] if another process, or this one, is the rank already. [`FabricError::Setting`] if the
/// variable is malformed, or names a file that is not the job's: a damaged job never turns into many jobs of one
/// rank. [`FabricError::Corrupt`], [`FabricError::System`].
pub fn from_env() -> Result<Option<Fabric>, FabricError> {
    #[cfg(target_os = "linux")]
    return super::attach::from_env().map(|rank| rank.map(Endpoint::fabric));
    #[cfg(not(target_os = "linux"))]
    match std::env::var_os(JOB_VARIABLE) {
        None => Ok(None),
        Some(_) => Err(FabricError::Unsupported { feature: &"ranks as processes" }),
    }
}
