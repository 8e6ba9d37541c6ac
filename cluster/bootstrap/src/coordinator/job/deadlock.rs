//! Deadlock detection: finds that all ranks wait for each other.
//!
//! A rank whose program has waited for other ranks for some time, and which has no operations in
//! flight, reports this with a *stamp*: a number that changes whenever the rank has made progress,
//! or anything has arrived at it. When all running ranks have reported that they wait, each is
//! asked again; messages about other ranks that are in transit to it arrive before the question and
//! change its stamp. If all stamps are unchanged, there was a moment, after the last rank had
//! reported that it waits and before the first was asked again, at which all ranks waited and no
//! operation was in flight, so none of them will ever be woken.

use super::{Job, Phase};
use crate::wire::Down;

/// The state of the detection.
#[derive(Debug, Default)]
pub(super) struct DeadlockDetection {
    /// The stamp of each rank that has reported that it waits.
    stamps: Vec<Option<u64>>,
    /// Whether each rank has confirmed in this wave that it waits.
    confirmed: Vec<bool>,
    wave: u64,
    /// Whether this wave is in progress.
    asked: bool,
}

impl DeadlockDetection {
    pub(super) fn new(ranks: usize) -> Self {
        Self { stamps: vec![None; ranks], confirmed: vec![false; ranks], ..Self::default() }
    }
}

impl Job {
    /// Handles a rank's report that it waits, or no longer waits.
    pub(super) fn waits(&mut self, index: usize, stamp: Option<u64>) {
        self.deadlock.stamps[index] = stamp;
        self.check_deadlock();
    }

    /// Handles the answer of a rank that was asked again.
    pub(super) fn still_waiting(&mut self, index: usize, wave: u64, stamp: Option<u64>) {
        let deadlock = &mut self.deadlock;
        if !deadlock.asked || wave != deadlock.wave {
            return;
        }
        if stamp.is_none() || stamp != deadlock.stamps[index] {
            // The rank reports again when it waits again.
            (deadlock.asked, deadlock.stamps[index]) = (false, None);
            return;
        }
        deadlock.confirmed[index] = true;
        let running: Vec<usize> = self.running().collect();
        if running.iter().all(|index| self.deadlock.confirmed[*index]) {
            self.deadlock = DeadlockDetection { wave, ..DeadlockDetection::new(self.members.len()) };
            self.send_to_connected(&Down::Deadlock { waiting: running.len() });
        }
    }

    /// Starts a wave if all running ranks have reported that they wait. A wave in progress is
    /// discarded.
    pub(super) fn check_deadlock(&mut self) {
        self.deadlock.asked = false;
        let may_be = self.phase == Phase::Running && self.epoch.is_none();
        let all_wait = |mut running: std::iter::Peekable<_>| {
            running.peek().is_some() && running.all(|index: usize| self.deadlock.stamps[index].is_some())
        };
        if !may_be || !all_wait(self.running().peekable()) {
            return;
        }
        self.deadlock.wave += 1;
        self.deadlock.asked = true;
        self.deadlock.confirmed.fill(false);
        let wave = self.deadlock.wave;
        self.send_where(&Down::Confirm { wave }, |_, member| member.end.is_none());
    }

    /// Cancels the wave in progress because a rank has ended.
    pub(super) fn disturb(&mut self) {
        self.deadlock.asked = false;
    }

    fn running(&self) -> impl Iterator<Item = usize> + '_ {
        self.members.iter().enumerate().filter(|(_, member)| member.end.is_none()).map(|(index, _)| index)
    }
}
