//! The process of one rank.

use super::memory::Image;
use crate::{
    JOB_VARIABLE, VERSION,
    wire::{Channel, Received, Request},
};
use rdma_fabric::Rank;
use rustix::io::{FdFlags, fcntl_setfd};
use std::{
    ffi::{OsStr, OsString},
    fs, io,
    os::{fd::AsRawFd as _, unix::net::UnixStream, unix::process::ExitStatusExt as _},
    process::{Child, Command, ExitStatus},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tofu2_shm::VIRTUAL_JOB;

/// The time between two looks at a process that makes no request.
const LOOK: Duration = Duration::from_millis(200);

/// A rank's process. Dropping it kills the process.
#[derive(Debug)]
pub(super) struct Process {
    rank: Rank,
    child: Child,
    channel: Channel,
    image: Arc<Image>,
    stuck_after: Option<Duration>,
    /// Whether long computing was reported.
    reported: bool,
}

/// The end of a process that failed.
#[derive(Debug, thiserror::Error)]
#[error("its process ended with {0}")]
pub(super) struct Failed(ExitStatus);

impl Failed {
    /// The exit code, or 128 and the signal's number.
    pub(super) fn code(&self) -> i32 {
        self.0.code().unwrap_or_else(|| 128 + self.0.signal().unwrap_or(0))
    }
}

impl Process {
    pub(super) fn start(
        program: &OsStr,
        args: &[OsString],
        rank: Rank,
        ranks: usize,
        stuck_after: Option<Duration>,
    ) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        // Only this child inherits it: the threads that start processes here take turns.
        static STARTING: Mutex<()> = Mutex::new(());
        let starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        fcntl_setfd(&theirs, FdFlags::empty())?;
        let job = format!("{VIRTUAL_JOB} {VERSION} rank={} ranks={ranks} file={}", rank.number(), theirs.as_raw_fd());
        let child = Command::new(program).args(args).env(JOB_VARIABLE, job).spawn()?;
        drop((theirs, starting));
        ours.set_read_timeout(Some(LOOK))?;
        let image = Image::new(child.id());
        Ok(Process { rank, child, channel: Channel::new(ours), image, stuck_after, reported: false })
    }

    pub(super) fn memory(&self) -> Arc<Image> {
        self.image.clone()
    }

    /// Lets the process run until its next request. Returns `None` if it ended.
    ///
    /// # Errors
    /// Those of the socket; [`io::ErrorKind::TimedOut`] for a process that sleeps.
    pub(super) fn receive(&mut self) -> io::Result<Option<Request>> {
        let mut since = Instant::now();
        loop {
            match self.channel.receive()? {
                Received::Message(request) => return Ok(Some(request)),
                Received::Closed => return Ok(None),
                Received::Nothing => {}
            }
            let Some(bound) = self.stuck_after.filter(|bound| since.elapsed() >= *bound) else { continue };
            if self.is_asleep() {
                let text = "waits for something that the simulator does not know: it has slept without a call for";
                return Err(io::Error::new(io::ErrorKind::TimedOut, format!("{text} {bound:?}")));
            }
            if !std::mem::replace(&mut self.reported, true) {
                eprintln!(
                    "note: {} has made no call for {bound:?}. Virtual time passes in calls only: a loop that looks at \
                     memory must also poll",
                    self.rank
                );
            }
            since = Instant::now();
        }
    }

    /// Returns whether all threads of the process sleep.
    fn is_asleep(&self) -> bool {
        let Ok(threads) = fs::read_dir(format!("/proc/{}/task", self.child.id())) else { return false };
        threads.flatten().all(|thread| {
            let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            // The name of the thread, in parentheses, may contain anything.
            stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'))
        })
    }

    /// Replies to the last request. A process that has ended since is noticed by the next
    /// [`Process::receive`].
    pub(super) fn reply(&mut self, words: &[u64]) -> io::Result<()> {
        match self.channel.send_words(words) {
            Err(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => Ok(()),
            sent => sent,
        }
    }

    /// Returns whether the process has ended, or does so within [`LOOK`].
    pub(super) fn ends_soon(&mut self) -> bool {
        let begun = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(None) if begun.elapsed() < LOOK => std::thread::sleep(LOOK / 100),
                ended => return !matches!(ended, Ok(None)),
            }
        }
    }

    /// Waits for the end of the process, whose socket is closed.
    pub(super) fn ended(&mut self) -> Result<(), Failed> {
        match self.child.wait() {
            Ok(status) if !status.success() => Err(Failed(status)),
            _ => Ok(()),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Neither fails for a process that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
