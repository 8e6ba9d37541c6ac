//! Supervises the ranks until the last has ended.

use super::{
    super::job::Job,
    broker::Broker,
    memory_file::refused,
    rank_process::{self, End},
    signals::Signals,
    stderr::{Forwarding, Relay},
};
use crate::{JobError, ends_in_words, job::State, processes::oom_kills::OomKills, waiting::watchdog::Watchdog};
use rdma_fabric::{FabricError, Rank};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, Signal, kill_process, pidfd_send_signal},
};
use std::{
    os::fd::OwnedFd,
    process::Child,
    sync::Arc,
    time::{Duration, Instant},
};

/// The time that ranks may take to end after a signal to the launcher, or after one has aborted the
/// job.
const INTERRUPT_GRACE: Duration = Duration::from_millis(500);

/// One rank's process.
#[derive(Debug)]
pub(crate) struct RankProcess {
    rank: usize,
    child: Child,
    /// Readable when the process has ended.
    pidfd: OwnedFd,
    /// Its standard error, until the forwarding thread takes it.
    relay: Option<Relay>,
    /// Its outcome, once it has ended and was reaped.
    end: Option<End>,
    /// The last signal sent to it.
    sent: Option<i32>,
}

impl RankProcess {
    pub(crate) fn new(rank: usize, child: Child, pidfd: OwnedFd, relay: Option<Relay>) -> Self {
        RankProcess { rank, child, pidfd, relay, end: None, sent: None }
    }

    /// Returns whether `process` is this one, with only one thread. The rank may instead be a
    /// process that this one started.
    fn is_alone(&self, process: u64) -> bool {
        if u64::from(self.child.id()) != process {
            return false;
        }
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id()));
        tasks.is_ok_and(|tasks| tasks.count() == 1)
    }

    fn send(&mut self, signal: Signal) {
        if self.end.is_some() {
            return;
        }
        let sent = pidfd_send_signal(&self.pidfd, signal).or_else(|errno| match errno {
            Errno::SRCH => Err(errno),
            // A container's filter refuses the call. Until the process ends, its number is its own.
            _ if self.has_ended() => Err(Errno::SRCH),
            _ => kill_process(Pid::from_child(&self.child), signal),
        });
        if sent.is_ok() {
            self.sent = Some(signal.as_raw());
        }
    }

    /// Returns whether the process has ended, reaped or not.
    fn has_ended(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
    }
}

impl Drop for RankProcess {
    /// Kills the process if it still runs, so that none is left behind after any failure.
    fn drop(&mut self) {
        if self.end.is_none() {
            self.send(Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

/// All processes of a job.
#[derive(Debug)]
pub(crate) struct Supervisor {
    job: Arc<Job>,
    /// The broker through which ranks hand files to each other.
    broker: Broker,
    signals: Signals,
    oom_kills: OomKills,
    grace: Duration,
    processes: Vec<RankProcess>,
    /// Ranks whose command has ended but that are still connected to the broker: the command
    /// started their process, which is still running.
    lingering: Vec<Rank>,
    /// The first rank that was seen to fail.
    failed: Option<usize>,
    /// The signal to the launcher that ends the job.
    interrupted: Option<i32>,
    /// The time at which the ranks that are still running are killed.
    deadline: Option<Instant>,
    /// Detects whether the ranks can make progress; removed once they can't.
    watchdog: Option<Watchdog>,
    /// The error if the ranks are deadlocked, or one has aborted the job.
    given_up: Option<JobError>,
}

impl Supervisor {
    pub(crate) fn new(
        job: Arc<Job>,
        broker: Broker,
        signals: Signals,
        grace: Duration,
        stuck_after: Option<Duration>,
    ) -> Self {
        Supervisor {
            job,
            broker,
            signals,
            oom_kills: OomKills::now(),
            grace,
            processes: Vec::new(),
            lingering: Vec::new(),
            failed: None,
            interrupted: None,
            deadline: None,
            watchdog: Watchdog::new(stuck_after),
            given_up: None,
        }
    }

    pub(crate) fn add(&mut self, process: RankProcess) {
        self.processes.push(process);
    }

    /// Supervises until all have ended, and returns the job's exit code.
    ///
    /// # Errors
    /// [`JobError::Deadlock`], [`JobError::Aborted`]; [`JobError::Fabric`] for errors of the system.
    pub(crate) fn run(mut self) -> Result<i32, JobError> {
        let relays = self.processes.iter_mut().filter_map(|process| process.relay.take()).collect();
        let forwarding = Forwarding::start(relays)?;
        let mut running: Vec<usize> = (0..self.processes.len()).collect();
        while !running.is_empty() {
            let ended = self.wait(&running)?;
            if let Some(signal) = self.signals.take() {
                self.interrupt(signal);
            }
            for index in ended {
                self.reap(index)?;
            }
            running.retain(|&index| self.processes[index].end.is_none());
            self.look();
            if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                self.processes.iter_mut().for_each(|process| process.send(Signal::KILL));
                self.deadline = None;
            }
        }
        let victim = self.victim();
        let failure = victim.and_then(|rank| self.failure(rank));
        let code = self.interrupted.map(|signal| 128 + signal).or(failure).unwrap_or(0);
        let interrupted = self
            .interrupted
            .map(|signal| format!("the launcher received {}, so it ended the job", rank_process::SignalName(signal)));
        let ends = if code == 0 { Vec::new() } else { ends_in_words(&self.ends(), victim) };
        let exhausted = if self.is_any_killed() { self.oom_kills.since() } else { None };
        forwarding.finish(interrupted.into_iter().chain(exhausted).chain(ends).collect());
        match self.job.aborted().or(self.given_up.take()) {
            Some(error) if self.interrupted.is_none() => Err(error),
            _ => Ok(code),
        }
    }

    /// Sets a deadline for the ranks if one has aborted the job, or if they are deadlocked. The
    /// consequences of a failure need no deadline.
    fn look(&mut self) {
        if !matches!(self.given_up, Some(JobError::Aborted { .. }))
            && let Some(aborted) = self.job.aborted()
        {
            self.watchdog = None;
            self.given_up = Some(aborted);
            self.end_by(INTERRUPT_GRACE);
        }
        if self.failed.is_some() || self.interrupted.is_some() {
            self.watchdog = None;
        }
        let Some(watchdog) = &mut self.watchdog else { return };
        self.given_up = watchdog
            .look(&self.job, |rank, number| self.processes.get(rank).is_some_and(|process| process.is_alone(number)));
        if self.given_up.is_some() {
            self.watchdog = None;
            self.end_by(self.grace);
        }
    }

    /// Lets the ranks continue for `grace` at most.
    fn end_by(&mut self, grace: Duration) {
        let deadline = Instant::now() + grace;
        self.deadline = Some(self.deadline.map_or(deadline, |sooner| sooner.min(deadline)));
    }

    /// Blocks until something happens or the deadline passes. Returns the ranks of `running` that
    /// may have ended.
    fn wait(&mut self, running: &[usize]) -> Result<Vec<usize>, FabricError> {
        let mut sources = vec![PollFd::new(&self.signals, PollFlags::IN)];
        sources.extend(running.iter().map(|&index| PollFd::new(&self.processes[index].pidfd, PollFlags::IN)));
        sources.extend(self.broker.files().map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN)));
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let left = left.into_iter().chain(self.watchdog.as_ref().map(Watchdog::pause)).min();
        let timeout = left.map(|left| Timespec {
            tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        });
        match poll(&mut sources, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Vec::new()),
            Err(errno) => return Err(refused(&"poll")(errno)),
        }
        let ready: Vec<bool> = sources.iter().map(|source| !source.revents().is_empty()).collect();
        drop(sources);
        let (processes, broker) = ready[1..].split_at(running.len());
        if broker.contains(&true) {
            self.broker.serve(broker.iter().copied());
            self.lingering.retain(|&rank| {
                let stays = self.broker.is_connected(rank);
                if !stays {
                    self.job.gone(rank);
                }
                stays
            });
        }
        Ok(running.iter().zip(processes).filter(|(_, ended)| **ended).map(|(&index, _)| index).collect())
    }

    fn interrupt(&mut self, signal: i32) {
        let again = self.interrupted.replace(signal).is_some();
        let signal = if again { Signal::KILL } else { Signal::TERM };
        self.processes.iter_mut().for_each(|process| process.send(signal));
        self.end_by(INTERRUPT_GRACE);
    }

    fn reap(&mut self, index: usize) -> Result<(), FabricError> {
        let process = &mut self.processes[index];
        let end = match process.child.try_wait() {
            Ok(None) => return Ok(()),
            Ok(Some(status)) => End::of(status),
            // The process has been reaped by other code: by the system if SIGCHLD is ignored again.
            Err(error) if error.raw_os_error() == Some(Errno::CHILD.raw_os_error()) => End::Unknown,
            Err(error) => {
                return Err(FabricError::System { call: &"waitid", errno: error.raw_os_error().unwrap_or(0) });
            }
        };
        process.end = Some(end);
        self.ended(index);
        Ok(())
    }

    /// Publishes that a process was reaped, and sets a deadline for the other ranks if its rank has
    /// failed.
    fn ended(&mut self, index: usize) {
        let RankProcess { rank, end, .. } = self.processes[index];
        let rank = Rank::new(rank as u32);
        let lingers = self.broker.is_connected(rank);
        self.job.ended(rank, end == Some(End::Exited(0)), !lingers);
        if lingers {
            self.lingering.push(rank);
        }
        if self.failed.is_none() && self.failure(index).is_some() {
            self.failed = Some(index);
            self.end_by(self.grace);
        }
    }

    fn is_lost(&self, rank: usize) -> bool {
        self.job.control.state(rank) == State::Lost
    }

    /// Returns the exit code of a rank that failed: its own, or 1 if that is 0 and the rank was
    /// lost.
    fn failure(&self, rank: usize) -> Option<i32> {
        match self.processes.get(rank)?.end?.code() {
            0 => self.is_lost(rank).then_some(End::Unknown.code()),
            code => Some(code),
        }
    }

    /// Returns the rank whose exit code is the job's, unless a signal to the launcher determines
    /// it: the rank that was lost first, whose peers may have ended before it, or else the first
    /// that was seen to fail. (A rank that ended before it attached may have been declared lost
    /// later.)
    fn victim(&self) -> Option<usize> {
        self.job.control.first_lost().filter(|&rank| self.failure(rank).is_some()).or(self.failed)
    }

    /// Returns whether a rank ended by SIGKILL that this launcher did not send.
    fn is_any_killed(&self) -> bool {
        let kill = Signal::KILL.as_raw();
        self.processes.iter().any(|process| process.end == Some(End::Killed(kill)) && process.sent != Some(kill))
    }

    /// Returns the outcome of each rank.
    fn ends(&self) -> Vec<String> {
        let end = |process: &RankProcess| {
            process.end.map(|end| end.in_words(self.is_lost(process.rank), process.sent)).unwrap_or_default()
        };
        self.processes.iter().map(end).collect()
    }
}
