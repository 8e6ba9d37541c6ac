//! Readers, and turning interest into activity: R1–R7, U1–U4.

use super::{At, Then};
use crate::{
    mistake::Mistake,
    model::Violation,
    state::{Goal, Pc, Slot},
    turn::{StepResult, Turn},
    words::{READER, READERS_WAIT},
};

impl Turn<'_> {
    fn to(&mut self, at: At) -> StepResult {
        self.go(Pc::Counted(at))
    }

    pub(super) fn reads(&mut self, at: At, found: u64) -> StepResult {
        let model = self.model;
        match at {
            At::R1 if found & model.keeps_out() == 0 => self.enter(),
            At::R1 if model.waits_counted() => self.take_node(Goal::R3),
            At::R1 => self.to(At::Uncount),
            At::Uncount if model.is_last(found) => self.activate(found - READER, Then::Wait),
            At::Uncount => self.take_node(Goal::R3),
            At::R3 => {
                self.rank().link = self.decode("readers", found)?;
                self.to(if found == 0 { At::R4 } else { At::R3Store })
            }
            At::R3Store => self.to(if model.waits_counted() { At::R4 } else { At::R6 }),
            At::R4 if found & model.keeps_out() != 0 => self.to(At::R6),
            At::R4 => self.to(if model.waits_counted() { At::R5 } else { At::R5Forget }),
            At::R5Forget => self.to(At::R5),
            At::R5 => {
                let top = self.decode("readers", found)?;
                self.rank().other = top;
                if model.does(Mistake::ToldTooLate) { self.to(At::R5ForgetLate) } else { self.swept_by_reader() }
            }
            At::R5ForgetLate => self.swept_by_reader(),
            At::R5Wake => {
                self.rank().other = 0;
                self.to(At::R6)
            }
            At::R6 => self.to(At::R6Retire),
            At::R6Retire => {
                self.node_is(Slot::Worn);
                if self.rank().link == 0 { self.waited() } else { self.to(At::R7) }
            }
            At::R7 => {
                self.rank().link = 0;
                self.waited()
            }
            At::U1 if model.is_last(found) => self.activate(found - READER, Then::End),
            _ => self.end_round(),
        }
    }

    fn swept_by_reader(&mut self) -> StepResult {
        let at = if self.rank().other == 0 { At::R6 } else { At::R5Wake };
        self.to(at)
    }

    fn waited(&mut self) -> StepResult {
        if self.model.waits_counted() { self.enter() } else { self.to(At::R1) }
    }

    /// U2, W5, X7, provided that the count word is `word`.
    pub(super) fn activate(&mut self, word: u64, ctx: Then) -> StepResult {
        let rank = self.rank();
        (rank.word, rank.ctx) = (word, ctx);
        self.to(At::Activate)
    }

    pub(super) fn activated(&mut self, found: u64) -> StepResult {
        let (model, rank) = (self.model, *self.rank());
        if found != rank.word {
            if !model.waits_counted() && found ^ rank.word == READERS_WAIT && !model.does(Mistake::OneComparison) {
                self.rank().word = found;
                return Ok(());
            }
            self.rank().word = 0;
            return match rank.ctx {
                Then::End => self.end_round(),
                Then::Wait => self.take_node(Goal::R3),
                Then::Enter => self.to(At::W7),
            };
        }
        self.rank().word = 0;
        if rank.ctx == Then::Enter {
            return self.enter();
        }
        if model.does(Mistake::RememberedNext) && rank.link != 0 {
            return self.wake_writer(rank.link);
        }
        if model.head_apart() {
            return self.to(At::Head);
        }
        match self.decode("count", rank.word >> super::HIGH)? {
            0 => Err(Violation::Corrupt { what: "count", bits: rank.word }),
            writer => self.wake_writer(writer),
        }
    }

    pub(super) fn wake_writer(&mut self, writer: u64) -> StepResult {
        let rank = self.rank();
        (rank.link, rank.other) = (0, writer);
        self.to(At::Wake)
    }

    pub(super) fn woke_writer(&mut self) -> StepResult {
        self.rank().other = 0;
        match self.rank().ctx {
            Then::Wait => self.take_node(Goal::R3),
            _ => self.end_round(),
        }
    }
}
