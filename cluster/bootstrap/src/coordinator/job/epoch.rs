//! Reporting losses: epochs of three steps.
//!
//! A lost rank may have operations in flight, and other ranks may wait for it. So all present ranks
//! first *drain* their operations in flight, then *reopen* their endpoints, and only then *resume*,
//! with the contacts of all ranks and the loss. A loss during an epoch begins a higher epoch.

use super::{Job, Order, Phase, cut::CUT};
use crate::{End, wire::Down};
use std::time::Instant;

/// An epoch in progress.
#[derive(Debug)]
pub(super) struct Epoch {
    number: u64,
    step: Step,
    /// The answer of each rank to the current step.
    answers: Vec<Option<Vec<u8>>>,
    /// When the ranks that have not answered become lost too.
    pub(super) until: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Drain,
    Reopen,
}

impl Job {
    /// Marks ranks as lost: for each its index, the reason, and whether it may continue elsewhere.
    pub(super) fn lose(&mut self, now: Instant, ranks: &[(usize, String, bool)]) {
        let mut news = false;
        for (index, text, away) in ranks {
            let member = &mut self.members[*index];
            if let Some(token) = member.line.take() {
                // Otherwise the rank would take the end of its connection for the end of this
                // coordinator.
                self.orders.push_back(Order::Send(token, Down::Dismissed { text: text.clone() }.frame()));
                self.orders.push_back(Order::Close(token));
            }
            if member.end.is_none() {
                member.end = Some(End::Lost(text.clone()));
                member.away = *away;
                news = true;
            }
        }
        if news {
            self.changed = true;
            self.begin_epoch(now);
        }
        self.check_epoch(now);
    }

    /// Marks the ranks as lost that were silent for the lease.
    pub(super) fn lose_silent(&mut self, now: Instant) {
        let lease = self.plan.lease;
        let text = format!("no message from it for {lease:?}");
        let silent = self.members.iter().enumerate();
        let silent = silent.filter(|(_, member)| member.line.is_some() && now.duration_since(member.heard) >= lease);
        let silent: Vec<_> = silent.map(|(index, _)| (index, text.clone(), true)).collect();
        if !silent.is_empty() {
            self.lose(now, &silent);
        }
    }

    /// Marks the ranks as lost that have not answered in time.
    pub(super) fn lose_late(&mut self, now: Instant) {
        let Some(epoch) = self.epoch.as_ref().filter(|epoch| now >= epoch.until) else { return };
        let step = match epoch.step {
            Step::Drain => "drain",
            Step::Reopen => "reopen",
        };
        let text = format!("it did not {step} within {:?}", self.plan.lease);
        let late = self.members.iter().zip(&epoch.answers).enumerate();
        let late = late.filter(|(_, (member, answer))| member.is_here() && answer.is_none());
        let late: Vec<_> = late.map(|(index, _)| (index, text.clone(), true)).collect();
        self.lose(now, &late);
    }

    pub(super) fn begin_epoch(&mut self, now: Instant) {
        if let Some(text) = self.smaller_side() {
            self.abort(None, CUT, text);
            return;
        }
        self.last_epoch += 1;
        let (number, answers) = (self.last_epoch, vec![None; self.members.len()]);
        self.epoch = Some(Epoch { number, step: Step::Drain, answers, until: now + self.plan.lease });
        let lost = self.untold().map(|(rank, _)| rank).collect();
        self.send_to_connected(&Down::Drain { epoch: number, lost });
        self.disturb();
    }

    /// Returns the ranks whose loss has not been reported, with the reasons.
    fn untold(&self) -> impl Iterator<Item = (u32, String)> {
        self.members.iter().enumerate().filter_map(|(index, member)| match &member.end {
            Some(End::Lost(text)) if !member.told => Some((index as u32, text.clone())),
            _ => None,
        })
    }

    pub(super) fn drained(&mut self, now: Instant, index: usize, epoch: u64) {
        self.answer(now, index, epoch, Step::Drain, Vec::new());
    }

    pub(super) fn reopened(&mut self, now: Instant, index: usize, epoch: u64, contact: Vec<u8>) {
        self.answer(now, index, epoch, Step::Reopen, contact);
    }

    /// Records an answer. An answer to an earlier epoch is ignored.
    fn answer(&mut self, now: Instant, index: usize, number: u64, step: Step, contact: Vec<u8>) {
        if let Some(epoch) = &mut self.epoch
            && epoch.number == number
            && epoch.step == step
        {
            epoch.answers[index].get_or_insert(contact);
            self.check_epoch(now);
        }
    }

    /// Starts the next step if all present ranks have answered.
    pub(super) fn check_epoch(&mut self, now: Instant) {
        while self.phase == Phase::Running
            && let Some(epoch) = &mut self.epoch
        {
            let mut both = self.members.iter().zip(&epoch.answers);
            if !both.all(|(member, answer)| !member.is_here() || answer.is_some()) {
                return;
            }
            let number = epoch.number;
            match epoch.step {
                Step::Drain => {
                    epoch.step = Step::Reopen;
                    epoch.until = now + self.plan.lease;
                    epoch.answers.fill(None);
                    self.send_to_connected(&Down::Reopen { epoch: number });
                }
                Step::Reopen => {
                    let both = self.members.iter().zip(&mut epoch.answers);
                    let contacts = both.map(|(member, contact)| contact.take().filter(|_| member.is_here())).collect();
                    let lost = self.untold().collect();
                    self.send_to_connected(&Down::Resume { epoch: number, contacts, lost });
                    self.epoch = None;
                    for member in &mut self.members {
                        member.told |= matches!(member.end, Some(End::Lost(_)));
                    }
                    self.check_rounds();
                    self.check_all_ended();
                    self.check_deadlock();
                }
            }
        }
    }
}
