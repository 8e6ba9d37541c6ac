//! What the coordinator knows of its job, and what it decides.
//!
//! [`joining`] gathers the ranks, [`epoch`] tells losses in three steps, [`rounds`] are exchanges,
//! [`cut`] tells on which side of a cut job the coordinator is, [`standstill`] finds that all wait for
//! each other.

mod cut;
mod epoch;
mod joining;
mod rounds;
mod standstill;

use super::{Abort, End, Outcome, Plan, connection::Broken};
use crate::{
    Hello, Refusal,
    wire::{Down, Frame, Up},
};
use epoch::Epoch;
use rounds::Rounds;
use standstill::Standstill;
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// What the job wants done with a connection.
#[derive(Debug)]
pub(super) enum Order {
    Send(u64, Frame),
    /// To be closed when it has been sent everything and the other side has closed it.
    CloseGently(u64),
    Close(u64),
}

/// A rank.
#[derive(Debug)]
struct Member {
    hello: Option<Hello>,
    /// Its node's number, once the job runs.
    node: u32,
    /// Its connection.
    line: Option<u64>,
    heard: Instant,
    end: Option<End>,
    /// Its loss has been told, if it is lost.
    told: bool,
    /// It was lost since nothing was heard from it.
    silent: bool,
    /// Its next exchange.
    round: u64,
}

impl Member {
    /// Whether it takes part in the job, or has left and may still be communicated with.
    fn is_here(&self) -> bool {
        self.line.is_some() && matches!(self.end, None | Some(End::Left))
    }
}

/// How far the job has come.
#[derive(Debug, PartialEq, Eq)]
enum Phase {
    Gathering,
    Running,
    Refused(Refusal),
    Aborted(Abort),
}

/// The job.
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
    standstill: Standstill,
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
            silent: false,
            round: 0,
        };
        Self {
            standstill: Standstill::new(plan.ranks),
            members: (0..plan.ranks).map(member).collect(),
            plan,
            number,
            begun: now,
            next_beat: now,
            phase: Phase::Gathering,
            epoch: None,
            last_epoch: 0,
            rounds: Rounds::default(),
            all_ended: false,
            changed: false,
            stopped: false,
            orders: VecDeque::new(),
        }
    }

    pub(super) fn next_order(&mut self) -> Option<Order> {
        self.orders.pop_front()
    }

    /// Tells whether how ranks ended has changed since this was last asked.
    pub(super) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    pub(super) fn ends(&self) -> Vec<Option<End>> {
        self.members.iter().map(|member| member.end.clone()).collect()
    }

    /// Returns how the job ended, if it has.
    pub(super) fn outcome(&self) -> Option<Outcome> {
        let (abort, refusal) = match &self.phase {
            Phase::Gathering => return None,
            Phase::Running if !self.all_ended => return None,
            Phase::Running => (None, None),
            Phase::Refused(refusal) => (None, Some(refusal.clone())),
            Phase::Aborted(abort) => (Some(abort.clone()), None),
        };
        let ends = self.ends().into_iter().collect::<Option<_>>()?;
        Some(Outcome { ends, abort, refusal })
    }

    /// Handles what a rank says.
    pub(super) fn hear(&mut self, now: Instant, rank: u32, up: Up) -> Result<(), Broken> {
        self.members[rank as usize].heard = now;
        if self.phase != Phase::Running {
            return Ok(());
        }
        let index = rank as usize;
        let runs = self.members[index].end.is_none();
        match up {
            Up::Hello(_) => return Err(Broken("it said twice who it is".into())),
            Up::Beat => {}
            Up::Item { round, within, bytes } if runs => self.item(now, index, round, within, bytes)?,
            Up::Drained { epoch } => self.drained(now, index, epoch),
            Up::Reopened { epoch, card } => self.reopened(now, index, epoch, card),
            Up::Left if runs => {
                self.end(index, End::Left);
                self.tell_others(index, &Down::Left { rank });
                self.check_rounds();
                self.check_all_ended();
                self.check_standstill();
            }
            Up::Lost { text } if runs => {
                self.end(index, End::Lost(text.clone()));
                self.members[index].told = true;
                self.tell_others(index, &Down::Lost { rank, text });
                self.check_rounds();
                self.check_epoch(now);
                self.check_all_ended();
                self.check_standstill();
            }
            Up::Abort { code, text } => self.abort(Some(rank), code, text),
            Up::Waits { stamp } if runs => self.waits(index, stamp),
            Up::Still { wave, stamp } if runs => self.still(index, wave, stamp),
            Up::Item { .. } | Up::Left | Up::Lost { .. } | Up::Waits { .. } | Up::Still { .. } => {}
        }
        Ok(())
    }

    /// Handles the end of a rank's connection.
    pub(super) fn broke(&mut self, now: Instant, rank: u32, token: u64, text: String) {
        let index = rank as usize;
        if self.members[index].line != Some(token) {
            return;
        }
        self.members[index].line = None;
        match self.phase {
            Phase::Gathering => self.refuse_died(index, text),
            Phase::Running => self.lose(now, &[(index, text, false)]),
            Phase::Refused(_) | Phase::Aborted(_) => {}
        }
    }

    /// Handles that the owner knows of a process's end.
    pub(super) fn gone(&mut self, now: Instant, rank: u32, text: String) {
        let Some(member) = self.members.get(rank as usize) else { return };
        match self.phase {
            Phase::Gathering => self.refuse_died(rank as usize, text),
            Phase::Running if member.end.is_none() => self.lose(now, &[(rank as usize, text, false)]),
            _ => {}
        }
    }

    /// Aborts the job, unless that was done or it could not start.
    pub(super) fn abort(&mut self, rank: Option<u32>, code: i32, text: String) {
        match self.phase {
            Phase::Gathering => self.refuse(Refusal::Aborted { text: text.clone() }),
            Phase::Running if !self.all_ended => {}
            _ => return,
        }
        self.tell_all(&Down::Aborted { rank, code, text: text.clone() });
        for member in &mut self.members {
            member.end.get_or_insert(End::Aborted);
        }
        self.epoch = None;
        self.changed = true;
        self.phase = Phase::Aborted(Abort { rank, code, text });
    }

    /// Ends everything: connections are closed by the hall.
    pub(super) fn stop(&mut self) {
        self.stopped = true;
        for member in &mut self.members {
            member.line = None;
        }
    }

    /// Returns when [`Self::tick`] has something to do.
    pub(super) fn next_time(&self) -> Instant {
        let far = self.next_beat + Duration::from_secs(3600);
        match self.phase {
            _ if self.stopped => far,
            Phase::Gathering => self.begun + self.plan.join_within,
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

    /// Does what is due.
    pub(super) fn tick(&mut self, now: Instant) {
        match self.phase {
            _ if self.stopped => {}
            Phase::Gathering if now >= self.begun + self.plan.join_within => self.refuse_missing(),
            Phase::Running => {
                self.lose_silent(now);
                self.lose_late(now);
                self.expire_rounds(now);
                if now >= self.next_beat {
                    self.next_beat = now + self.plan.lease / 4;
                    self.tell_all(&Down::Beat);
                }
            }
            _ => {}
        }
    }

    /// Begins all leases anew.
    pub(super) fn forgive(&mut self, now: Instant) {
        for member in &mut self.members {
            member.heard = now;
        }
        if let Some(epoch) = &mut self.epoch {
            epoch.until = now + self.plan.lease;
        }
    }

    fn end(&mut self, index: usize, end: End) {
        self.members[index].end = Some(end);
        self.changed = true;
        self.disturb();
    }

    fn check_all_ended(&mut self) {
        let ended = self.members.iter().all(|member| member.end.is_some());
        if self.phase == Phase::Running && ended && self.epoch.is_none() && !self.all_ended {
            self.all_ended = true;
            self.changed = true;
            self.tell_all(&Down::AllEnded);
        }
    }

    fn send(&mut self, index: usize, frame: Frame) {
        let line = self.members[index].line;
        self.orders.extend(line.map(|token| Order::Send(token, frame)));
    }

    fn tell_all(&mut self, down: &Down) {
        self.tell_where(down, |_, _| true);
    }

    fn tell_here(&mut self, down: &Down) {
        self.tell_where(down, |_, member| member.is_here());
    }

    /// Tells the ranks that are here, apart from `index`.
    fn tell_others(&mut self, index: usize, down: &Down) {
        self.tell_where(down, |other, member| other != index && member.is_here());
    }

    fn tell_where(&mut self, down: &Down, wanted: impl Fn(usize, &Member) -> bool) {
        let frame = down.frame();
        for (index, member) in self.members.iter().enumerate() {
            if let Some(token) = member.line
                && wanted(index, member)
            {
                self.orders.push_back(Order::Send(token, Frame::clone(&frame)));
            }
        }
    }
}
