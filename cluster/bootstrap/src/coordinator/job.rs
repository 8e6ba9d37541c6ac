//! The coordinator's state of its job, and its decisions.
//!
//! [`join`] gathers the ranks, [`receive`] handles their messages, and [`send`] sends
//! messages to them. [`epoch`] reports losses in three steps, [`rounds`] implements exchanges,
//! [`cut`] determines on which side of a partitioned job the coordinator is, and [`deadlock`]
//! detects that all ranks wait for each other. A standby begins with an [`election`], which is
//! decided by a [`ballot`].

mod ballot;
mod cut;
mod deadlock;
mod election;
mod epoch;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod join;
#[cfg(test)]
mod model;
mod mutant;
mod receive;
mod rounds;
mod send;

pub(crate) use election::Roster;

use super::{Abort, End, Outcome, Plan, event_loop::PROVE_WITHIN};
use crate::{
    Hello, Refusal,
    wire::{Down, Frame, UP_LIMIT, vote_limit},
};
use deadlock::DeadlockDetection;
use election::Election;
use epoch::Epoch;
use mutant::Mutant;
use rounds::Rounds;
use std::{
    collections::VecDeque,
    net::SocketAddr,
    time::{Duration, Instant},
};

/// A request from the job about a connection.
#[derive(Debug)]
pub(super) enum Order {
    Send(u64, Frame),
    /// Close it once everything has been sent and the other side has closed it.
    CloseGently(u64),
    Close(u64),
}

/// The state of one rank.
#[derive(Debug)]
struct Member {
    hello: Option<Hello>,
    /// The number of its node, once the job runs.
    node: u32,
    /// The token of its connection.
    line: Option<u64>,
    heard: Instant,
    end: Option<End>,
    /// The loss has been reported to the other ranks, if this rank is lost.
    told: bool,
    /// It was lost but may continue under another coordinator: it was silent, or it reported that
    /// it is changing coordinators.
    away: bool,
    /// The address at which it would listen as a standby.
    standby: Option<SocketAddr>,
    /// The number of its next exchange.
    round: u64,
}

impl Member {
    /// Returns whether it takes part in the job, or has left and may still be communicated with.
    fn is_here(&self) -> bool {
        self.line.is_some() && matches!(self.end, None | Some(End::Left))
    }
}

/// The phase of the job.
#[derive(Debug, PartialEq, Eq)]
enum Phase {
    Gathering,
    /// A standby that collects votes.
    Standby,
    Running,
    Refused(Refusal),
    Aborted(Abort),
}

/// The state of a job.
#[derive(Debug)]
pub(super) struct Job {
    plan: Plan,
    number: u64,
    begun: Instant,
    next_beat: Instant,
    members: Vec<Member>,
    phase: Phase,
    epoch: Option<Epoch>,
    last_epoch: u64,
    rounds: Rounds,
    deadlock: DeadlockDetection,
    /// The election, if this began as a standby.
    ballot: Option<Election>,
    mutant: Option<Mutant>,
    all_ended: bool,
    changed: bool,
    stopped: bool,
    orders: VecDeque<Order>,
}

impl Job {
    pub(super) fn new(plan: Plan, number: u64, now: Instant) -> Self {
        let member = |_| Member {
            hello: None,
            node: 0,
            line: None,
            heard: now,
            end: None,
            told: false,
            away: false,
            standby: None,
            round: 0,
        };
        Self {
            deadlock: DeadlockDetection::new(plan.ranks),
            members: (0..plan.ranks).map(member).collect(),
            plan,
            number,
            begun: now,
            next_beat: now,
            phase: Phase::Gathering,
            epoch: None,
            last_epoch: 0,
            rounds: Rounds::default(),
            ballot: None,
            mutant: None,
            all_ended: false,
            changed: false,
            stopped: false,
            orders: VecDeque::new(),
        }
    }

    pub(super) fn lease(&self) -> Duration {
        self.plan.lease
    }

    /// The time limit for a connection to identify itself as that of a rank.
    pub(super) fn patience(&self) -> Duration {
        if self.ballot.is_some() { PROVE_WITHIN.max(3 * self.plan.lease) } else { PROVE_WITHIN }
    }

    /// Returns the maximum size of a message in bytes, without its length field.
    pub(super) fn message_limit(&self) -> usize {
        if self.ballot.is_some() { vote_limit(self.plan.ranks) } else { UP_LIMIT }
    }

    fn mutant(&self) -> Option<Mutant> {
        self.mutant
    }

    pub(super) fn next_order(&mut self) -> Option<Order> {
        self.orders.pop_front()
    }

    /// Returns whether the ends of ranks have changed since the last call.
    pub(super) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    pub(super) fn ends(&self) -> Vec<Option<End>> {
        self.members.iter().map(|member| member.end.clone()).collect()
    }

    /// Returns how the job ended, if it has ended.
    pub(super) fn outcome(&self) -> Option<Outcome> {
        let (abort, refusal) = match &self.phase {
            Phase::Gathering | Phase::Standby => return None,
            Phase::Running if !self.all_ended => return None,
            Phase::Running => (None, None),
            Phase::Refused(refusal) => (None, Some(refusal.clone())),
            Phase::Aborted(abort) => (Some(abort.clone()), None),
        };
        let ends = self.ends().into_iter().collect::<Option<_>>()?;
        Some(Outcome { ends, abort, refusal })
    }

    /// Aborts the job, unless it has been aborted already or could not start.
    pub(super) fn abort(&mut self, rank: Option<u32>, code: i32, text: String) {
        match self.phase {
            Phase::Gathering => self.refuse(Refusal::Aborted { text: text.clone() }),
            Phase::Running if !self.all_ended => {}
            _ => return,
        }
        self.send_to_all(&Down::Aborted { rank, code, text: text.clone() });
        for member in &mut self.members {
            member.end.get_or_insert(End::Aborted);
        }
        self.epoch = None;
        self.changed = true;
        self.phase = Phase::Aborted(Abort { rank, code, text });
    }

    /// Ends everything; the event loop closes the connections.
    pub(super) fn stop(&mut self) {
        self.stopped = true;
        for member in &mut self.members {
            member.line = None;
        }
    }

    /// Returns when [`Self::tick`] has to be called next.
    pub(super) fn next_time(&self) -> Instant {
        let far = self.next_beat + Duration::from_secs(3600);
        match self.phase {
            _ if self.stopped => far,
            Phase::Gathering => self.begun + self.plan.join_within,
            Phase::Standby => self.decides_at().unwrap_or(far),
            Phase::Refused(_) | Phase::Aborted(_) => far,
            Phase::Running => {
                let heard = self.members.iter().filter(|member| member.line.is_some()).map(|member| member.heard);
                let lease = heard.min().map(|heard| heard + self.plan.lease);
                let epoch = self.epoch.as_ref().map(|epoch| epoch.until);
                let rounds = self.rounds.next_time();
                [lease, epoch, rounds].into_iter().flatten().fold(self.next_beat, Instant::min)
            }
        }
    }

    /// Performs the actions that are due.
    pub(super) fn tick(&mut self, now: Instant) {
        match self.phase {
            _ if self.stopped => {}
            Phase::Gathering if now >= self.begun + self.plan.join_within => self.refuse_missing(),
            Phase::Standby => self.decide(now),
            Phase::Running => {
                self.lose_silent(now);
                self.lose_late(now);
                self.expire_rounds(now);
                if now >= self.next_beat {
                    self.next_beat = now + self.plan.lease / 4;
                    self.send_to_all(&Down::Beat);
                }
            }
            _ => {}
        }
    }

    /// Restarts all leases.
    pub(super) fn forgive(&mut self, now: Instant) {
        for member in &mut self.members {
            member.heard = now;
        }
        if let Some(epoch) = &mut self.epoch {
            epoch.until = now + self.plan.lease;
        }
    }
}
