//! Exchanges: every rank contributes an item and receives the items of all ranks.

use super::{Job, Member};
use crate::{
    End,
    coordinator::connection::Broken,
    wire::{Down, Frame},
};
use std::time::{Duration, Instant};

/// The exchanges in progress, with their numbers, in ascending order.
#[derive(Debug, Default)]
pub(super) struct Rounds(Vec<(u64, Round)>);

#[derive(Debug)]
struct Round {
    until: Instant,
    items: Vec<Option<Vec<u8>>>,
    came: usize,
    /// All ranks that joined the exchange have received its result.
    over: bool,
    /// The message for ranks that join the exchange after it has failed.
    failed: Option<Frame>,
}

/// The maximum time limit of an exchange.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

impl Rounds {
    pub(super) fn next_time(&self) -> Option<Instant> {
        self.0.iter().filter(|(_, round)| !round.over).map(|(_, round)| round.until).min()
    }
}

impl Job {
    /// Handles a rank's item.
    pub(super) fn item(
        &mut self,
        now: Instant,
        index: usize,
        number: u64,
        within: Duration,
        bytes: Vec<u8>,
    ) -> Result<(), Broken> {
        let count = self.members.len();
        let member = &mut self.members[index];
        if self.ballot.is_some() && number.checked_add(1) == Some(member.round) {
            // The rank already sent this item when it found this coordinator.
            return Ok(());
        }
        if number != member.round {
            return Err(Broken::misused("its exchanges are out of order"));
        }
        member.round += 1;
        let until = now + within.min(LONGEST);
        let new = || Round { until, items: vec![None; count], came: 0, over: false, failed: None };
        let rounds = &mut self.rounds.0;
        let at = rounds.binary_search_by_key(&number, |(number, _)| *number).unwrap_or_else(|at| {
            rounds.insert(at, (number, new()));
            at
        });
        let round = &mut rounds[at].1;
        if let Some(failed) = &round.failed {
            let failed = Frame::clone(failed);
            self.send(index, failed);
            self.drop_rounds();
            return Ok(());
        }
        round.until = round.until.min(until);
        round.items[index] = Some(bytes);
        round.came += 1;
        // Only the last item, or an item after the end of a rank, can change the state of an
        // exchange.
        let passed = |member: &Member| member.round > number + 1;
        if round.came == count || self.members.iter().any(|member| member.end.is_some() || passed(member)) {
            self.check_rounds();
        }
        Ok(())
    }

    /// Ends the exchanges that are complete, or that can't complete because a missing rank has
    /// ended and the other ranks have been notified of that.
    pub(super) fn check_rounds(&mut self) {
        let mut rounds = std::mem::take(&mut self.rounds);
        for (number, round) in rounds.0.iter_mut().filter(|(_, round)| !round.over) {
            if round.came == self.members.len() {
                let items = round.items.iter_mut().filter_map(Option::take).collect();
                self.send_to_connected(&Down::Gathered { round: *number, items });
                round.over = true;
                continue;
            }
            let missing = self.members.iter().enumerate().filter(|(index, _)| round.items[*index].is_none());
            let (mut ended, mut absent) = (Vec::new(), Vec::new());
            for (index, member) in missing {
                ended.extend(known_end(index, member));
                // The rank joined this exchange under another coordinator, and does not send its
                // item again.
                absent.extend((member.end.is_none() && member.round > *number).then_some(index as u32));
            }
            if !ended.is_empty() || !absent.is_empty() {
                self.fail(*number, round, absent, ended);
            }
        }
        self.rounds = rounds;
        self.drop_rounds();
    }

    /// Fails the exchanges whose time limit has expired.
    pub(super) fn expire_rounds(&mut self, now: Instant) {
        let mut rounds = std::mem::take(&mut self.rounds);
        for (number, round) in rounds.0.iter_mut().filter(|(_, round)| !round.over && now >= round.until) {
            let absent = (0..).zip(&round.items).filter(|(_, item)| item.is_none()).map(|(rank, _)| rank);
            let absent = absent.collect();
            self.fail(*number, round, absent, Vec::new());
        }
        self.rounds = rounds;
        self.drop_rounds();
    }

    fn fail(&mut self, number: u64, round: &mut Round, absent: Vec<u32>, ended: Vec<(u32, String)>) {
        let frame = Down::Incomplete { round: number, absent, ended }.frame();
        for (index, item) in round.items.iter_mut().enumerate() {
            if item.take().is_some() {
                self.send(index, Frame::clone(&frame));
            }
        }
        round.over = true;
        round.failed = Some(frame);
    }

    /// Drops the exchanges that no rank can still join.
    fn drop_rounds(&mut self) {
        let first = self.members.iter().filter(|member| member.end.is_none()).map(|member| member.round).min();
        self.rounds.0.retain(|(number, round)| !round.over || first.is_some_and(|first| first <= *number));
    }
}

/// Returns how a rank has ended, if the other ranks have been notified.
fn known_end(index: usize, member: &Member) -> Option<(u32, String)> {
    match &member.end {
        Some(End::Left) => Some((index as u32, "it left".into())),
        Some(End::Lost(text)) if member.told => Some((index as u32, text.clone())),
        _ => None,
    }
}
