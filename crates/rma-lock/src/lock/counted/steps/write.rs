//! Writers: W2–W7, X2, X3.

use super::{At, CountedTable, HandOver, Steps, Then, bits};
use crate::{
    LockError, Result,
    lock::{
        counted::scheme::WRITER_INTERESTED,
        queue::{NodeId, Transition, Wait},
    },
    steps::{End, Reason},
};

impl CountedTable {
    pub(super) fn writes(&self, s: &mut Steps, found: u64) -> Result<Option<Transition>> {
        let rules = self.rules;
        let (me, node) = (bits(s.me), bits(s.node));
        match s.at {
            At::W2 if found == 0 => self.contend(s),
            At::W2 if s.tries => {
                (s.at, s.clean) = (At::End(End::NotNow), true);
                return Ok(s.me.map(|me| Transition::writer_returns(me, 1)));
            }
            At::W2 => (s.at, s.link, s.skipped) = (At::W6, self.decode("tail", found)?, false),
            // The predecessor has left, so this writer is the first.
            At::W6 if found == NodeId::PASSED => self.contend(s),
            At::W6 => s.at = At::W7,
            At::Free if found == 0 => return Ok(self.inside(s)),
            At::Free if s.tries => return Ok(self.back(s)),
            At::Free => s.at = At::W4,
            At::W3 => s.at = self.flushed(At::W3Flush, At::W4),
            At::W3Flush => s.at = At::W4,
            At::W4 if rules.is_free(found) => {
                (s.at, s.word, s.mine) = (At::Activate, found + (rules.interest(me) | self.registered()), true);
            }
            At::W4 => self.not_free(s),
            // Fails if a reader has already admitted this writer.
            At::Retract if found & WRITER_INTERESTED != 0 => return Ok(self.back(s)),
            At::Retract => s.at = At::W7,
            At::W7 if found == 0 => s.at = At::GiveUp,
            At::W7 if rules.barges && found == Wait::Offered as u64 => s.at = At::W8Block,
            At::W7 if found != Wait::Granted as u64 => return Err(LockError::corrupt("wake", found)),
            At::W7 => {
                s.woken = true;
                return Ok(self.inside(s));
            }
            At::Known => {
                s.next = self.decode("next", found)?;
                s.at = match (s.next, rules.hand_over) {
                    (None, _) if rules.barges => At::XQ,
                    (None, _) => At::X2,
                    (_, HandOver::Always) => {
                        let said = (!s.quiet).then_some(s.node).flatten().map(Transition::writer_continues);
                        self.handed_over(s);
                        return Ok(said);
                    }
                    _ => At::HandOver,
                };
            }
            At::HandOver if found == rules.active(node) => {
                (s.left, s.offers) = (self.handed_on(s.next), rules.barges && self.passing);
                self.handed_over(s);
            }
            At::HandOver if rules.barges => s.at = At::Downgrade,
            At::HandOver => (s.at, s.quiet) = (At::X2, true),
            At::X2 if !rules.must_sweep(found) => return Ok(self.depart(s)),
            // This precedes taking the stack: a reader that finds the stack empty announces itself
            // again.
            At::X2 => s.at = if rules.waits_counted { At::X3 } else { At::X3Forget },
            At::X3Forget => s.at = At::X3,
            // This precedes the registration of the next writer: a later sweep could release
            // readers that queued behind that writer.
            _ => {
                s.reader = self.decode("readers", found)?;
                return Ok(self.depart(s));
            }
        }
        Ok(None)
    }

    /// W3: this rank is the first in the queue.
    fn contend(&self, s: &mut Steps) {
        s.link = None;
        s.at = match (self.rules.head_apart, self.rules.barges && !s.skipped) {
            (true, _) => At::W3,
            (_, true) => At::W4,
            _ => At::Free,
        };
    }

    /// W5 has found a reader, or failed because one has arrived; that reader will admit this
    /// writer.
    pub(super) fn not_free(&self, s: &mut Steps) {
        s.at = if s.tries { At::Retract } else { At::W7 };
    }

    /// The writer is inside.
    pub(super) fn inside(&self, s: &mut Steps) -> Option<Transition> {
        s.at = At::End(End::Inside);
        if self.rules.barges {
            s.word = self.rules.active(bits(s.me));
        }
        if s.dropped {
            s.ends = End::GaveUp(Reason::Dropped);
            self.begin_leave(s);
        }
        s.me.map(Transition::writer_continues)
    }

    /// A try leaves the queue.
    fn back(&self, s: &mut Steps) -> Option<Transition> {
        (s.node, s.next, s.then, s.ends) = (s.me, None, Then::Back, End::NotNow);
        self.depart(s)
    }

    /// The writer inside begins to leave.
    pub(crate) fn begin_leave(&self, s: &mut Steps) {
        if self.rules.barges {
            return self.begin_to_leave(s);
        }
        (s.node, s.next, s.quiet, s.then) = (s.me, None, false, Then::Left);
        s.at = self.first_of_release();
    }

    pub(super) fn first_of_release(&self) -> At {
        if self.rules.hand_over == HandOver::Never { At::X2 } else { At::Known }
    }

    /// `node` has handed over to `next`, which is woken before `node` is retired.
    fn handed_over(&self, s: &mut Steps) {
        (s.writer, s.done) = (s.next.take(), s.node.take());
        s.at = At::Wake;
    }

    /// X4, after the readers that X3 found have been woken.
    pub(super) fn depart(&self, s: &mut Steps) -> Option<Transition> {
        s.departing = true;
        self.help(s)
    }
}
