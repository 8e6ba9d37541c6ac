//! Looking after the ranks until the last has ended.

use super::super::{control::State, job::Job, stall::Watcher};
use super::{end::End, forward::Forwarding, memory_file::refused, relay::Relay, signals::Signals};
use crate::{JobError, ends_in_words};
use rdma_fabric::{FabricError, Rank};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Signal, pidfd_send_signal},
};
use std::{
    os::fd::OwnedFd,
    process::Child,
    sync::Arc,
    time::{Duration, Instant},
};

/// How long ranks may take to end after the launcher was told to.
const INTERRUPT_GRACE: Duration = Duration::from_millis(500);

/// One rank's process.
#[derive(Debug)]
pub(super) struct RankProcess {
    rank: usize,
    child: Child,
    /// Readable when the process has ended.
    pidfd: OwnedFd,
    /// Its standard error, until it is passed on.
    relay: Option<Relay>,
    /// How it ended, when it has and was reaped.
    end: Option<End>,
    /// The last signal that it was sent.
    sent: Option<i32>,
}

impl RankProcess {
    pub(super) fn new(rank: usize, child: Child, pidfd: OwnedFd, relay: Option<Relay>) -> Self {
        RankProcess { rank, child, pidfd, relay, end: None, sent: None }
    }

    /// Whether it is this process, and has one thread. What it has started may be the rank.
    fn is_alone(&self, process: u64) -> bool {
        if u64::from(self.child.id()) != process {
            return false;
        }
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id()));
        tasks.is_ok_and(|tasks| tasks.count() == 1)
    }

    fn send(&mut self, signal: Signal) {
        // Fails only if it has just ended.
        if self.end.is_none() && pidfd_send_signal(&self.pidfd, signal).is_ok() {
            self.sent = Some(signal.as_raw());
        }
    }
}

impl Drop for RankProcess {
    /// Nobody is left behind, whatever went wrong.
    fn drop(&mut self) {
        if self.end.is_none() {
            // Not by its number, which may be another's if somebody else has reaped it.
            self.send(Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

/// All processes of a job.
#[derive(Debug)]
pub(super) struct Supervisor {
    job: Arc<Job>,
    signals: Signals,
    grace: Duration,
    processes: Vec<RankProcess>,
    /// The rank that was first seen to fail.
    failed: Option<usize>,
    /// The exit code that a signal to the launcher demands.
    interrupted: Option<i32>,
    /// When those that still run are killed.
    deadline: Option<Instant>,
    /// Who looks whether they can go on, until they can't.
    watcher: Option<Watcher>,
    /// That they could not.
    deadlock: Option<JobError>,
}

impl Supervisor {
    pub(super) fn new(job: Arc<Job>, signals: Signals, grace: Duration, stuck_after: Option<Duration>) -> Self {
        Supervisor {
            job,
            signals,
            grace,
            processes: Vec::new(),
            failed: None,
            interrupted: None,
            deadline: None,
            watcher: Watcher::new(stuck_after),
            deadlock: None,
        }
    }

    pub(super) fn add(&mut self, process: RankProcess) {
        self.processes.push(process);
    }

    /// Until all have ended; the job's exit code.
    ///
    /// # Errors
    /// [`JobError::Deadlock`]; [`JobError::Fabric`] of the system's.
    pub(super) fn run(mut self) -> Result<i32, JobError> {
        let relays = self.processes.iter_mut().filter_map(|process| process.relay.take()).collect();
        let forwarding = Forwarding::start(relays)?;
        while self.processes.iter().any(|process| process.end.is_none()) {
            self.wait()?;
            if let Some(signal) = self.signals.take() {
                self.interrupt(signal);
            }
            self.reap()?;
            self.look();
            if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                self.processes.iter_mut().for_each(|process| process.send(Signal::KILL));
                self.deadline = None;
            }
        }
        let victim = self.victim();
        let failure = victim.and_then(|rank| self.failure(rank));
        let code = self.interrupted.or(failure).unwrap_or(0);
        forwarding.finish(if code == 0 { Vec::new() } else { ends_in_words(&self.ends(), victim) });
        match self.deadlock.take() {
            Some(deadlock) if self.interrupted.is_none() => Err(deadlock),
            _ => Ok(code),
        }
    }

    /// Give the ranks a time to end if they can't go on. What comes of a failure ends without that.
    fn look(&mut self) {
        if self.failed.is_some() || self.interrupted.is_some() {
            self.watcher = None;
        }
        let Some(watcher) = &mut self.watcher else { return };
        self.deadlock = watcher
            .look(&self.job, |rank, number| self.processes.get(rank).is_some_and(|process| process.is_alone(number)));
        if self.deadlock.is_some() {
            self.watcher = None;
            self.deadline = Some(Instant::now() + self.grace);
        }
    }

    /// Block until something happens or the deadline comes.
    fn wait(&self) -> Result<(), FabricError> {
        let mut sources = vec![PollFd::new(&self.signals, PollFlags::IN)];
        for process in &self.processes {
            if process.end.is_none() {
                sources.push(PollFd::new(&process.pidfd, PollFlags::IN));
            }
        }
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let left = left.into_iter().chain(self.watcher.as_ref().map(Watcher::pause)).min();
        let timeout = left.map(|left| Timespec {
            tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        });
        match poll(&mut sources, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(refused("poll")(errno)),
        }
    }

    fn interrupt(&mut self, signal: i32) {
        let again = self.interrupted.replace(128 + signal).is_some();
        let signal = if again { Signal::KILL } else { Signal::TERM };
        self.processes.iter_mut().for_each(|process| process.send(signal));
        self.deadline.get_or_insert(Instant::now() + INTERRUPT_GRACE);
        self.deadline = self.deadline.min(Some(Instant::now() + INTERRUPT_GRACE));
    }

    fn reap(&mut self) -> Result<(), FabricError> {
        for index in 0..self.processes.len() {
            let process = &mut self.processes[index];
            if process.end.is_some() {
                continue;
            }
            let end = match process.child.try_wait() {
                Ok(None) => continue,
                Ok(Some(status)) => End::of(status),
                // Gone, and reaped by somebody else: by the system if SIGCHLD is ignored again.
                Err(error) if error.raw_os_error() == Some(Errno::CHILD.raw_os_error()) => End::Unknown,
                Err(error) => {
                    return Err(FabricError::System { call: "waitid", errno: error.raw_os_error().unwrap_or(0) });
                }
            };
            process.end = Some(end);
            self.ended(index);
        }
        Ok(())
    }

    /// Tell the others that a process was reaped, and give them a time to end if its rank has failed.
    fn ended(&mut self, index: usize) {
        let RankProcess { rank, end, .. } = self.processes[index];
        self.job.ended(Rank::new(rank as u32), end == Some(End::Exited(0)));
        if self.failed.is_none() && self.failure(index).is_some() {
            self.failed = Some(index);
            let deadline = Instant::now() + self.grace;
            self.deadline = Some(self.deadline.map_or(deadline, |sooner| sooner.min(deadline)));
        }
    }

    fn is_lost(&self, rank: usize) -> bool {
        self.job.control.state(rank) == State::Lost
    }

    /// The exit code of a rank that failed: its own, or 1 if that is 0 and the rank was lost.
    fn failure(&self, rank: usize) -> Option<i32> {
        match self.processes.get(rank)?.end?.code() {
            0 => self.is_lost(rank).then_some(End::Unknown.code()),
            code => Some(code),
        }
    }

    /// Whose exit code is the job's, unless a signal to the launcher decides: the rank that was lost first, whose peers may have ended
    /// before it; else the first that was seen to fail. (A rank that ended before it attached may have been given up for lost later.)
    fn victim(&self) -> Option<usize> {
        self.job.control.first_lost().filter(|&rank| self.failure(rank).is_some()).or(self.failed)
    }

    /// How each rank ended.
    fn ends(&self) -> Vec<String> {
        let end = |process: &RankProcess| {
            process.end.map(|end| end.in_words(self.is_lost(process.rank), process.sent)).unwrap_or_default()
        };
        self.processes.iter().map(end).collect()
    }
}
