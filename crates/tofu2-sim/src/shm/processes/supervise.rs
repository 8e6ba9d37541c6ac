//! Looking after the ranks until the last has ended.

use super::super::{control::State, job::Job};
use super::{desk::Keeper, forward::Forwarding, memory_file::refused, relay::Relay, signals::Signals};
use rdma_fabric::{FabricError, Rank};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Signal, pidfd_send_signal},
};
use std::{
    os::{fd::OwnedFd, unix::process::ExitStatusExt},
    process::{Child, ExitStatus},
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
    /// Its exit code, or 128 + signal, when it has ended and was reaped.
    code: Option<i32>,
}

/// The exit code of a rank that can't be known, or that says nothing of the rank's failure.
const UNKNOWN: i32 = 1;

impl RankProcess {
    pub(super) fn new(rank: usize, child: Child, pidfd: OwnedFd, relay: Option<Relay>) -> Self {
        RankProcess { rank, child, pidfd, relay, code: None }
    }

    fn send(&self, signal: Signal) {
        if self.code.is_none() {
            // Fails only if it has just ended.
            let _ = pidfd_send_signal(&self.pidfd, signal);
        }
    }
}

impl Drop for RankProcess {
    /// Nobody is left behind, whatever went wrong.
    fn drop(&mut self) {
        if self.code.is_none() {
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
    /// Where ranks leave files for each other.
    keeper: Keeper,
    signals: Signals,
    grace: Duration,
    processes: Vec<RankProcess>,
    /// Ranks whose command has ended, and which still are at the desk: their process was started by it, and runs on.
    lingering: Vec<Rank>,
    /// The exit code of the rank that was first seen to fail.
    failed: Option<i32>,
    /// The exit code that a signal to the launcher demands.
    interrupted: Option<i32>,
    /// When those that still run are killed.
    deadline: Option<Instant>,
}

impl Supervisor {
    pub(super) fn new(job: Arc<Job>, keeper: Keeper, signals: Signals, grace: Duration) -> Self {
        Supervisor {
            job,
            keeper,
            signals,
            grace,
            processes: Vec::new(),
            lingering: Vec::new(),
            failed: None,
            interrupted: None,
            deadline: None,
        }
    }

    pub(super) fn add(&mut self, process: RankProcess) {
        self.processes.push(process);
    }

    /// Until all have ended; the job's exit code.
    pub(super) fn run(mut self) -> Result<i32, FabricError> {
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
            running.retain(|&index| self.processes[index].code.is_none());
            if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                self.processes.iter().for_each(|process| process.send(Signal::KILL));
                self.deadline = None;
            }
        }
        forwarding.finish();
        Ok(self.code())
    }

    /// Block until something happens or the deadline comes. Which of `running` may have ended.
    fn wait(&mut self, running: &[usize]) -> Result<Vec<usize>, FabricError> {
        let mut sources = vec![PollFd::new(&self.signals, PollFlags::IN)];
        sources.extend(running.iter().map(|&index| PollFd::new(&self.processes[index].pidfd, PollFlags::IN)));
        sources.extend(self.keeper.files().map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN)));
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let timeout = left.map(|left| Timespec {
            tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        });
        match poll(&mut sources, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Vec::new()),
            Err(errno) => return Err(refused("poll")(errno)),
        }
        let ready: Vec<bool> = sources.iter().map(|source| !source.revents().is_empty()).collect();
        drop(sources);
        let (processes, desk) = ready[1..].split_at(running.len());
        if desk.contains(&true) {
            self.keeper.serve(desk.iter().copied());
            self.lingering.retain(|&rank| {
                let stays = self.keeper.is_visited_by(rank);
                if !stays {
                    self.job.gone(rank);
                }
                stays
            });
        }
        Ok(running.iter().zip(processes).filter(|(_, ended)| **ended).map(|(&index, _)| index).collect())
    }

    fn interrupt(&mut self, signal: i32) {
        let again = self.interrupted.replace(128 + signal).is_some();
        let signal = if again { Signal::KILL } else { Signal::TERM };
        self.processes.iter().for_each(|process| process.send(signal));
        self.deadline.get_or_insert(Instant::now() + INTERRUPT_GRACE);
        self.deadline = self.deadline.min(Some(Instant::now() + INTERRUPT_GRACE));
    }

    fn reap(&mut self, index: usize) -> Result<(), FabricError> {
        let process = &mut self.processes[index];
        let code = match process.child.try_wait() {
            Ok(None) => return Ok(()),
            Ok(Some(status)) => code_of(status),
            // Gone, and reaped by somebody else: by the system if SIGCHLD is ignored again.
            Err(error) if error.raw_os_error() == Some(Errno::CHILD.raw_os_error()) => UNKNOWN,
            Err(error) => {
                return Err(FabricError::System { call: "waitid", errno: error.raw_os_error().unwrap_or(0) });
            }
        };
        process.code = Some(code);
        self.ended(index);
        Ok(())
    }

    /// Tell the others that a process was reaped, and give them a time to end if its rank has failed.
    fn ended(&mut self, index: usize) {
        let RankProcess { rank, code, .. } = self.processes[index];
        let rank = Rank::new(rank as u32);
        let lingers = self.keeper.is_visited_by(rank);
        self.job.ended(rank, code == Some(0), !lingers);
        if lingers {
            self.lingering.push(rank);
        }
        if let Some(code) = self.failure(&self.processes[index])
            && self.failed.is_none()
        {
            self.failed = Some(code);
            let deadline = Instant::now() + self.grace;
            self.deadline = Some(self.deadline.map_or(deadline, |sooner| sooner.min(deadline)));
        }
    }

    /// The exit code of a process that failed: its own, or 1 if that is 0 and its rank was lost.
    fn failure(&self, process: &RankProcess) -> Option<i32> {
        match process.code? {
            0 => (self.job.control.state(process.rank) == State::Lost).then_some(UNKNOWN),
            code => Some(code),
        }
    }

    /// A signal to the launcher decides; else the rank that was lost first, whose peers may have ended before it; else
    /// the first that was seen to fail. (A rank that ended before it attached may have been given up for lost later.)
    fn code(&self) -> i32 {
        let first = self.job.control.first_lost().and_then(|rank| self.failure(self.processes.get(rank)?));
        self.interrupted.or(first).or(self.failed).unwrap_or(0)
    }
}

/// As shells count: the exit code, or 128 + signal.
fn code_of(status: ExitStatus) -> i32 {
    status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(UNKNOWN)
}
