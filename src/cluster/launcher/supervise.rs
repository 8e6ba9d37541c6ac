//! Waiting for the end of a job's ranks, on any host.

use super::{end::RankEnd, error::HostsError, ranks::RankProcesses, remote::RemoteRanks};
use crate::report::{LaunchError, emit};
use bootstrap::{Abort, Coordinator, End};
use rustix::process::Signal;
use std::{
    thread,
    time::{Duration, Instant},
};
use tofu2_sim::shm::part::{OomKills, SignalName, Signals};

/// Time limit for the other ranks to end after one has failed.
const GRACE: Duration = Duration::from_secs(10);
/// Time limit for ranks to end after a signal to the launcher.
const INTERRUPT_GRACE: Duration = Duration::from_millis(500);
/// Time limit for ranks to end after one has aborted the job; they end by themselves sooner.
const ABORT_GRACE: Duration = Duration::from_millis(1500);
/// Time limit for hosts to answer after their ranks were killed.
const LAST_MOMENT: Duration = Duration::from_millis(300);
/// Interval between polls of the ranks.
const LOOK: Duration = Duration::from_millis(2);

/// The location of a job's ranks.
pub(super) enum Workers {
    /// On this machine.
    Here(RankProcesses),
    /// On hosts reached by ssh.
    There(RemoteRanks),
}

impl Workers {
    fn look(&mut self) -> Result<Vec<(u32, RankEnd)>, HostsError> {
        match self {
            Workers::Here(ranks) => Ok(ranks.look()),
            Workers::There(ranks) => ranks.look(),
        }
    }

    /// Returns the host of a rank that is not on this machine.
    fn host_of(&self, rank: u32) -> Option<&str> {
        match self {
            Workers::Here(_) => None,
            Workers::There(ranks) => ranks.host_of(rank),
        }
    }

    fn send(&mut self, signal: Signal) {
        match self {
            Workers::Here(ranks) => ranks.send(signal),
            Workers::There(ranks) => ranks.send(signal),
        }
    }

    fn abandon(&mut self) {
        match self {
            Workers::Here(_) => {}
            Workers::There(ranks) => ranks.abandon(),
        }
    }

    fn finish(&mut self) {
        match self {
            Workers::Here(ranks) => ranks.finish(),
            Workers::There(ranks) => ranks.finish(),
        }
    }
}

pub(super) struct Supervisor<'a> {
    workers: Workers,
    coordinator: &'a Coordinator,
    signals: Signals,
    /// Those of this machine.
    oom_kills: OomKills,
    ends: Vec<Option<RankEnd>>,
    /// The first rank whose failure was observed.
    failed: Option<u32>,
    /// The exit code to return after a signal to the launcher.
    interrupted: Option<i32>,
    /// When to kill the ranks that still run.
    deadline: Option<Instant>,
    /// When to give up the hosts that have not answered to that.
    last_moment: Option<Instant>,
}

impl<'a> Supervisor<'a> {
    pub(super) fn new(workers: Workers, coordinator: &'a Coordinator, signals: Signals, ranks: usize) -> Self {
        Supervisor {
            workers,
            coordinator,
            signals,
            oom_kills: OomKills::now(),
            ends: vec![None; ranks],
            failed: None,
            interrupted: None,
            deadline: None,
            last_moment: None,
        }
    }

    /// Waits until all ranks have ended and returns the job's exit code: 0 if all succeeded, that
    /// of the rank that was lost first or failed first, or the one that a rank aborted with.
    pub(super) fn run(mut self) -> Result<i32, LaunchError> {
        let mut aborted = false;
        while self.ends.iter().any(Option::is_none) {
            for (rank, end) in self.workers.look()? {
                self.ended(rank, end);
            }
            if let Some(signal) = self.signals.take() {
                self.interrupt(signal);
            }
            if !aborted && self.abort().is_some() {
                aborted = true;
                self.end_by(ABORT_GRACE);
            }
            self.keep_time();
            thread::sleep(LOOK);
        }
        self.workers.finish();
        if let Some(code) = self.interrupted {
            return Ok(code);
        }
        // The coordinator has the reports of the ranks, or detects their loss, soon after their
        // processes have ended.
        self.coordinator.wait(Duration::from_secs(1));
        if let Some(Abort { rank, code, text }) = self.abort() {
            match rank {
                Some(rank) => emit(format_args!("error: rank {rank} ended the job: {text}")),
                None => emit(format_args!("error: the job was ended: {text}")),
            }
            return Ok(if (1..=255).contains(&code) { code } else { 1 });
        }
        Ok(self.report())
    }

    fn abort(&self) -> Option<Abort> {
        self.coordinator.wait(Duration::ZERO)?.abort
    }

    fn ended(&mut self, rank: u32, end: RankEnd) {
        let Some(place) = self.ends.get_mut(rank as usize).filter(|place| place.is_none()) else { return };
        let how = match self.workers.host_of(rank) {
            Some(host) => format!("{end} on host {host}"),
            None => end.to_string(),
        };
        self.coordinator.gone(rank, &how);
        let good = end.is_good();
        *place = Some(end);
        if !good && self.failed.is_none() {
            self.failed = Some(rank);
            self.end_by(GRACE);
        }
    }

    fn interrupt(&mut self, signal: i32) {
        let again = self.interrupted.replace(128 + signal).is_some();
        if !again {
            emit(format_args!("the launcher received {}, so it ended the job", SignalName(signal)));
        }
        self.workers.send(if again { Signal::KILL } else { Signal::TERM });
        self.end_by(INTERRUPT_GRACE);
    }

    /// Limits the remaining time of the ranks to `grace`.
    fn end_by(&mut self, grace: Duration) {
        let deadline = Instant::now() + grace;
        self.deadline = Some(self.deadline.map_or(deadline, |sooner| sooner.min(deadline)));
    }

    fn keep_time(&mut self) {
        let now = Instant::now();
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            self.workers.send(Signal::KILL);
            self.deadline = None;
            self.last_moment.get_or_insert(now + LAST_MOMENT);
        }
        if self.last_moment.is_some_and(|moment| now >= moment) {
            self.workers.abandon();
        }
    }

    /// Prints how each rank ended, unless all succeeded, and returns the job's exit code.
    fn report(&self) -> i32 {
        let ends = self.coordinator.ends();
        let is_lost = |rank: u32| matches!(ends.get(rank as usize), Some(Some(End::Lost(_))));
        let of = |rank: u32| self.ends.get(rank as usize).and_then(Option::as_ref);
        let failure = |rank: u32| match of(rank)?.code() {
            0 => is_lost(rank).then_some(1),
            code => Some(code),
        };
        let first = self.coordinator.first_lost().filter(|rank| failure(*rank).is_some()).or(self.failed);
        let Some(first) = first else { return 0 };
        if self.ends.contains(&Some(RankEnd::Killed(Signal::KILL.as_raw()))) {
            self.oom_kills.since().iter().for_each(emit);
        }
        for rank in 0..self.ends.len() as u32 {
            let way = match of(rank) {
                Some(RankEnd::Exited(0)) if is_lost(rank) => "exited with 0 before its end".to_owned(),
                end => end.map(RankEnd::to_string).unwrap_or_default(),
            };
            emit(format_args!("rank {rank}: {way}{}", if rank == first { " (the first)" } else { "" }));
        }
        failure(first).unwrap_or(1)
    }
}
