//! A standby: how it becomes the coordinator of a job that has lost its own.
//!
//! Ranks that have lost their coordinator connect to a standby and send it their knowledge of the
//! job: their *votes*. A rank votes for one standby at a time. When all ranks that may run have
//! voted, or the time limit has expired and the voters are the larger part by the
//! [ballot](super::ballot), the standby considers all other ranks lost and begins an epoch. If the
//! voters are not the larger part, it rejects them.

use super::{
    super::Plan,
    Job, Order, Phase,
    ballot::{Ballot, Tally},
};
use crate::{
    End,
    coordinator::connection::Broken,
    wire::{Down, Frame, Vote},
};
use std::{sync::Arc, time::Instant};

/// A standby's knowledge of its job before any rank has voted.
#[derive(Debug, Clone)]
pub(crate) struct Roster {
    /// The standby's own rank.
    pub(crate) rank: u32,
    /// The job's number.
    pub(crate) number: u64,
    /// The node of each rank.
    pub(crate) nodes: Arc<[u32]>,
}

/// The state of an election.
#[derive(Debug)]
pub(super) struct Election {
    roster: Roster,
    ballot: Ballot,
    /// When votes of the larger part suffice, even if some ranks have not voted.
    from: Instant,
    /// When the next decision is due, if any rank has voted: at `from` or at `end`.
    until: Instant,
    /// When the voters are rejected if they are too few.
    end: Instant,
}

impl Job {
    /// Creates a standby, which decides a lease from now, or half a lease later if too few ranks
    /// have voted.
    pub(in super::super) fn standby(plan: Plan, roster: &Roster, now: Instant) -> Self {
        let mut this = Self::new(plan, roster.number, now);
        for (member, node) in this.members.iter_mut().zip(&*roster.nodes) {
            member.node = *node;
        }
        let (from, end) = (now + this.plan.lease, now + this.plan.lease * 3 / 2);
        let (roster, ballot) = (roster.clone(), Ballot::default());
        this.ballot = Some(Election { roster, ballot, from, until: from, end });
        this.phase = Phase::Standby;
        this
    }

    #[cfg(test)]
    pub(super) fn with_mutant(mut self, mutant: Option<super::mutant::Mutant>) -> Self {
        self.mutant = mutant;
        if let Some(election) = &mut self.ballot {
            election.ballot.mutant = mutant;
        }
        self
    }

    /// Handles the vote of a rank over the connection `token`; returns the rank if the vote counts.
    pub(super) fn vote(&mut self, now: Instant, token: u64, vote: Vote) -> Result<Option<u32>, Broken> {
        let rank = vote.rank;
        let lease = self.plan.lease;
        if !vote.fits(self.members.len()) {
            return Err(Broken::misused("its vote names ranks or numbers that the job does not have"));
        }
        let Some(member) = self.members.get_mut(rank as usize).filter(|member| member.line.is_none()) else {
            return Err(Broken::misused("it has the number of another rank, or of none"));
        };
        match (&self.phase, &mut self.ballot) {
            (Phase::Standby, Some(election)) => {
                (member.line, member.heard) = (Some(token), now);
                if election.ballot.votes.is_empty() {
                    // The first vote may be late: it is not rejected before equally late ranks have
                    // had time to vote.
                    election.end = election.end.max(now + lease / 4);
                    election.until = if now < election.from { election.from } else { election.end };
                }
                election.ballot.add(vote);
                self.decide(now);
                Ok(Some(rank))
            }
            _ => {
                let text = "it came too late to the coordinator that the others have found";
                self.orders.push_back(Order::Send(token, Down::Dismissed { text: text.into() }.frame()));
                self.orders.push_back(Order::CloseGently(token));
                Ok(None)
            }
        }
    }

    /// Discards the vote of a rank that changes to another standby, or whose process has ended.
    pub(super) fn withdraw(&mut self, rank: u32) {
        if let Some(election) = &mut self.ballot {
            election.ballot.votes.retain(|vote| vote.rank != rank);
        }
    }

    /// Returns when the election is decided.
    pub(super) fn decides_at(&self) -> Option<Instant> {
        self.ballot.as_ref().filter(|election| !election.ballot.votes.is_empty()).map(|election| election.until)
    }

    /// Decides the election, if that is due.
    pub(super) fn decide(&mut self, now: Instant) {
        let Some(election) = self.ballot.as_mut().filter(|election| !election.ballot.votes.is_empty()) else { return };
        let tally = election.ballot.tally(&election.roster.nodes);
        if !tally.complete && (now < election.from || (!tally.larger && now < election.end)) {
            if now >= election.from {
                election.until = election.end;
            }
            return;
        }
        let (ballot, me) = (std::mem::take(&mut election.ballot), election.roster.rank);
        if tally.larger {
            self.take_over(now, ballot, me);
        } else {
            self.let_go(&tally);
        }
    }

    fn let_go(&mut self, tally: &Tally) {
        let text = format!("{} of {} hosts have found each other, which must not go on alone", tally.here, tally.of);
        self.send_to_all(&Down::NotElected { text });
        for member in &mut self.members {
            self.orders.extend(member.line.take().map(Order::CloseGently));
        }
    }

    /// Becomes the coordinator.
    fn take_over(&mut self, now: Instant, ballot: Ballot, me: u32) {
        self.phase = Phase::Running;
        self.next_beat = now + self.plan.lease / 4;
        self.last_epoch = ballot.last_epoch();
        self.changed = true;
        self.send_to_all(&Down::Elected);
        let mut ended = ballot.ended();
        let dead = ballot.dead();
        let mut dismissed = Vec::new();
        for (rank, member) in (0..).zip(&mut self.members) {
            member.heard = now;
            member.round = ballot.vote(rank).map_or(0, |vote| vote.round);
            let lost = |text: &str| Some(End::Lost(format!("{text} when rank {me} became the coordinator")));
            match ended.get(&rank) {
                Some(None) => member.end = Some(End::Left),
                Some(Some(text)) => {
                    (member.end, member.told) = (Some(End::Lost(text.clone())), true);
                    dismissed.extend(member.line.take().map(|token| (token, text.clone())));
                }
                None if dead.contains(&rank) => member.end = lost("its process had ended"),
                None if member.line.is_none() => (member.end, member.away) = (lost("it was not heard of"), true),
                None => {}
            }
        }
        for (token, text) in dismissed {
            self.orders.push_back(Order::Send(token, Down::Dismissed { text }.frame()));
            self.orders.push_back(Order::CloseGently(token));
        }
        self.send_known_votes(&ballot);
        for rank in 0..self.members.len() as u32 {
            match ended.remove(&rank) {
                None => {}
                Some(None) => self.send_to_connected(&Down::Left { rank }),
                Some(Some(text)) => self.send_to_connected(&Down::Lost { rank, text }),
            }
        }
        self.begin_epoch(now);
        self.check_epoch(now);
    }

    /// Sends the result of the last epoch to the ranks that have missed it.
    fn send_known_votes(&mut self, ballot: &Ballot) {
        let epoch = ballot.epoch();
        let Some(vote) = ballot.votes.iter().find(|vote| vote.epoch == epoch) else { return };
        let length = (vote.resume.len() as u32).to_le_bytes();
        let frame: Frame = [&length[..], &vote.resume].concat().into();
        for missed in &ballot.votes {
            if missed.epoch < epoch && self.members[missed.rank as usize].is_here() {
                self.send(missed.rank as usize, Frame::clone(&frame));
            }
        }
    }
}
