//! Readers: R1–R7, U1–U4.

use super::{At, CountedTable, Steps, Then};
use crate::{
    LockError, Result,
    lock::{
        counted::scheme::READER,
        queue::{Transition, Wait},
    },
    steps::{End, Reason},
};

impl CountedTable {
    pub(super) fn reads(&self, s: &mut Steps, found: u64) -> Result<Option<Transition>> {
        let rules = self.rules;
        match s.at {
            At::R1 | At::R1Again => return Ok(self.counted(s, found)),
            At::Uncount => {
                s.then = Then::Take;
                return self.uncounted(s, found);
            }
            At::Withdraw => {
                self.uncounted(s, found)?;
                return Ok(Some(Transition::READER_GIVES_UP));
            }
            At::U1 => {
                self.uncounted(s, found)?;
                return Ok(Some(Transition::READER_IS_GONE));
            }
            At::R3 => {
                s.link = self.decode("readers", found)?;
                s.at = if s.link.is_some() { At::R3Store } else { At::R4 };
            }
            // The reader that pushed itself first onto an empty stack of uncounted readers checks
            // for all of them.
            At::R3Store => s.at = if rules.waits_counted { At::R4 } else { At::R6 },
            // The writer may have left between R1 and R3 without observing this reader.
            At::R4 if found & rules.holds_up != 0 => s.at = At::R6,
            At::R4 => s.at = if rules.waits_counted { At::R5 } else { At::R5Forget },
            At::R5Forget => s.at = At::R5,
            At::R5 => {
                // The readers on the stack may enter, perhaps this reader among them.
                (s.reader, s.then) = (self.decode("readers", found)?, Then::Wait);
                return Ok(self.help(s));
            }
            At::R6 if found == 0 => s.at = At::GiveUp,
            At::R6 if found != Wait::Granted as u64 => return Err(LockError::corrupt("wake", found)),
            At::R6 => {
                s.at = At::R6Retire;
                return Ok(rules.waits_counted.then_some(Transition::READER_ENTERS));
            }
            At::R6Retire => {
                s.me = None;
                s.reader = s.link.take(); // R7
                s.then = if rules.waits_counted { Then::Entered } else { Then::Again };
                return Ok(self.help(s));
            }
            _ => self.entered(s, found & rules.shut != 0),
        }
        Ok(None)
    }

    /// Continues after R1 has returned `old`.
    fn counted(&self, s: &mut Steps, old: u64) -> Option<Transition> {
        let rules = self.rules;
        let over_limit = old & rules.over_limit() != 0;
        let inside = old & rules.keeps_out == 0;
        s.at = match (over_limit, inside) {
            (true, _) => {
                // Another epoch may have room.
                let reason = if old & rules.shut != 0 { Reason::KeptOut } else { Reason::Refused };
                return withdraw(s, End::GaveUp(reason));
            }
            _ if s.dropped => return withdraw(s, End::GaveUp(Reason::Dropped)),
            (_, true) => At::End(End::Inside),
            _ if s.tries => return withdraw(s, End::NotNow),
            _ if rules.waits_counted => At::Take,
            _ => At::Uncount,
        };
        inside.then_some(Transition::READER_ENTERS)
    }

    /// Continues after U1 has returned `old`.
    pub(super) fn uncounted(&self, s: &mut Steps, old: u64) -> Result<Option<Transition>> {
        let rules = self.rules;
        // A head that is awake detects by itself that the readers have left.
        if !rules.is_last(old) || rules.barges && old & rules.ignored == 0 {
            return Ok(self.help(s));
        }
        (s.at, s.word, s.mine) = (At::Activate, old - READER, false);
        Ok(None)
    }

    /// The reader was admitted.
    pub(super) fn entered(&self, s: &mut Steps, kept_out: bool) {
        if !kept_out && !s.dropped {
            s.at = At::End(End::Inside);
            return;
        }
        s.ends = End::GaveUp(if kept_out { Reason::KeptOut } else { Reason::Dropped });
        (s.at, s.then) = (At::U1, Then::End);
    }
}

fn withdraw(s: &mut Steps, ends: End) -> Option<Transition> {
    (s.at, s.then, s.ends) = (At::Withdraw, Then::End, ends);
    None
}
