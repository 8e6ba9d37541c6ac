//! How it is found that all ranks wait for each other.
//!
//! A rank whose program has waited for others for some time, and which has nothing under way, says so
//! with a *stamp*: a number that changes whenever the rank has gone on, or anything has come to it. When
//! all ranks that run have said so, each is asked again; news of other ranks that are on their way to
//! it come before the question, and change its stamp. If all stamps are what they were, there was a
//! moment, after the last rank had said that it waits and before the first was asked again, at which
//! all ranks waited and nothing was under way: nobody will ever wake any of them.

use super::{Job, Phase};
use crate::wire::Down;

/// What is known of it.
#[derive(Debug, Default)]
pub(super) struct Standstill {
    /// By rank, its stamp, if it has said that it waits.
    stamps: Vec<Option<u64>>,
    /// By rank, whether it has said so again in this wave.
    confirmed: Vec<bool>,
    wave: u64,
    /// Whether this wave is under way.
    asked: bool,
}

impl Standstill {
    pub(super) fn new(ranks: usize) -> Self {
        Self { stamps: vec![None; ranks], confirmed: vec![false; ranks], ..Self::default() }
    }
}

impl Job {
    /// Handles that a rank waits, or waits no more.
    pub(super) fn waits(&mut self, index: usize, stamp: Option<u64>) {
        self.standstill.stamps[index] = stamp;
        self.check_standstill();
    }

    /// Handles what a rank says when it is asked again.
    pub(super) fn still(&mut self, index: usize, wave: u64, stamp: Option<u64>) {
        let standstill = &mut self.standstill;
        if !standstill.asked || wave != standstill.wave {
            return;
        }
        if stamp.is_none() || stamp != standstill.stamps[index] {
            // It will say so when it waits again.
            (standstill.asked, standstill.stamps[index]) = (false, None);
            return;
        }
        standstill.confirmed[index] = true;
        let running: Vec<usize> = self.running().collect();
        if running.iter().all(|index| self.standstill.confirmed[*index]) {
            self.standstill = Standstill { wave, ..Standstill::new(self.members.len()) };
            self.tell_here(&Down::Deadlock { waiting: running.len() });
        }
    }

    /// Begins to ask again, if all that run have said that they wait. Any wave under way is void.
    pub(super) fn check_standstill(&mut self) {
        self.standstill.asked = false;
        let may_be = self.phase == Phase::Running && self.epoch.is_none();
        let all_wait = |mut running: std::iter::Peekable<_>| {
            running.peek().is_some() && running.all(|index: usize| self.standstill.stamps[index].is_some())
        };
        if !may_be || !all_wait(self.running().peekable()) {
            return;
        }
        self.standstill.wave += 1;
        self.standstill.asked = true;
        self.standstill.confirmed.fill(false);
        let wave = self.standstill.wave;
        self.tell_where(&Down::Confirm { wave }, |_, member| member.end.is_none());
    }

    /// Makes any wave under way void: a rank has ended.
    pub(super) fn disturb(&mut self) {
        self.standstill.asked = false;
    }

    fn running(&self) -> impl Iterator<Item = usize> + '_ {
        self.members.iter().enumerate().filter(|(_, member)| member.end.is_none()).map(|(index, _)| index)
    }
}
