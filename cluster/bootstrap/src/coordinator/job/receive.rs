//! Handling of the messages of ranks and the ends of their connections.

use super::{Job, Order, Phase, mutant::Mutant};
use crate::{
    End,
    coordinator::connection::Broken,
    wire::{Down, Up},
};
use std::time::Instant;

impl Job {
    /// Handles the first message over the connection `token`, which identifies the rank. Returns
    /// the rank if it is part of the job now. Otherwise the reason has been sent over the
    /// connection.
    pub(in super::super) fn receive(&mut self, now: Instant, token: u64, up: Up) -> Result<Option<u32>, Broken> {
        match up {
            Up::Hello(hello, standby) if self.ballot.is_none() => {
                let rank = hello.rank;
                Ok(self.join(now, token, hello, standby).then_some(rank))
            }
            Up::Vote(vote) if self.ballot.is_some() => self.vote(now, token, vote),
            _ => Err(Broken::misused("it did not say who it is")),
        }
    }

    /// Handles a message of a rank.
    pub(in super::super) fn on_message(&mut self, now: Instant, rank: u32, up: Up) -> Result<(), Broken> {
        self.members[rank as usize].heard = now;
        if up == Up::Deserts {
            self.deserted(now, rank);
            return Ok(());
        }
        if self.phase != Phase::Running {
            return Ok(());
        }
        let index = rank as usize;
        let runs = self.members[index].end.is_none();
        match up {
            Up::Hello(..) | Up::Vote(_) => return Err(Broken::misused("it said twice who it is")),
            Up::Beat | Up::Deserts => {}
            Up::Item { round, within, bytes } if runs => self.item(now, index, round, within, bytes)?,
            Up::Drained { epoch } => self.drained(now, index, epoch),
            Up::Reopened { epoch, contact } => self.reopened(now, index, epoch, contact),
            Up::Left if runs => {
                self.end(index, End::Left);
                self.send_to_others(index, &Down::Left { rank });
                self.check_rounds();
                self.check_all_ended();
                self.check_deadlock();
            }
            Up::Lost { text } if runs => {
                self.end(index, End::Lost(text.clone()));
                self.members[index].told = true;
                self.send_to_others(index, &Down::Lost { rank, text });
                self.check_rounds();
                self.check_epoch(now);
                self.check_all_ended();
                self.check_deadlock();
            }
            Up::Abort { code, text } => self.abort(Some(rank), code, text),
            Up::Waits { stamp } if runs => self.waits(index, stamp),
            Up::Still { wave, stamp } if runs => self.still_waiting(index, wave, stamp),
            Up::Item { .. } | Up::Left | Up::Lost { .. } | Up::Waits { .. } | Up::Still { .. } => {}
        }
        Ok(())
    }

    /// Handles the end of a rank's connection.
    pub(in super::super) fn broke(&mut self, now: Instant, rank: u32, token: u64, broken: Broken) {
        let index = rank as usize;
        if self.members[index].line != Some(token) {
            return;
        }
        self.members[index].line = None;
        match self.phase {
            Phase::Gathering => self.refuse_died(index, broken.why),
            Phase::Standby => self.withdraw(rank),
            Phase::Running => self.lose(now, &[(index, broken.why, broken.may_live)]),
            Phase::Refused(_) | Phase::Aborted(_) => {}
        }
    }

    /// Handles the report by the coordinator's owner that a process has ended.
    pub(in super::super) fn gone(&mut self, now: Instant, rank: u32, text: String) {
        let Some(member) = self.members.get(rank as usize) else { return };
        match self.phase {
            Phase::Gathering => self.refuse_died(rank as usize, text),
            Phase::Running if member.end.is_none() => self.lose(now, &[(rank as usize, text, false)]),
            _ => {}
        }
    }

    /// Handles a rank's change to another coordinator or standby.
    fn deserted(&mut self, now: Instant, rank: u32) {
        let index = rank as usize;
        match self.phase {
            Phase::Standby => {
                self.orders.extend(self.members[index].line.take().map(Order::Close));
                self.withdraw(rank);
            }
            Phase::Running => {
                let away = self.mutant() != Some(Mutant::DesertersDead);
                self.lose(now, &[(index, "it has lost its connection to the coordinator".into(), away)]);
            }
            Phase::Gathering | Phase::Refused(_) | Phase::Aborted(_) => {}
        }
    }
}
