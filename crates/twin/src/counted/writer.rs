//! Writers: W2–W7, X2–X7.

use super::{At, HandOver, Then};
use crate::{
    mistake::Mistake,
    state::{Pc, Slot},
    turn::{StepResult, Turn},
    words::{PASSED, WRITER_ACTIVE},
};

impl Turn<'_> {
    fn on(&mut self, at: At) -> StepResult {
        self.go(Pc::Counted(at))
    }

    fn contend(&mut self) -> StepResult {
        self.rank().other = 0;
        self.on(if self.model.head_apart() { At::W3 } else { At::Free })
    }

    fn wait_for_turn(&mut self) -> StepResult {
        self.rank().other = 0;
        self.on(At::W7)
    }

    /// Continues after interest was shown for a node and the count word before was `found`.
    fn registered(&mut self, node: u64, found: u64, ctx: Then) -> StepResult {
        let model = self.model;
        // If merged, the same operation also clears the flag.
        let found = if ctx == Then::End && model.does(Mistake::LeaveMergedWithInterest) {
            found.wrapping_sub(WRITER_ACTIVE)
        } else {
            found
        };
        match (model.is_free(found), ctx) {
            (true, _) => self.activate(found.wrapping_add(model.interest(node)), ctx),
            (false, Then::Enter) => self.wait_for_turn(),
            (false, _) => self.end_round(),
        }
    }

    pub(super) fn writes(&mut self, at: At, found: u64) -> StepResult {
        let (model, me) = (self.model, self.me);
        let id = model.own_id(self.s, me);
        match at {
            At::W2 => {
                self.rank().other = self.decode("tail", found)?;
                if found == 0 { self.contend() } else { self.on(At::W6) }
            }
            At::W6 if found == PASSED => self.contend(),
            At::W6 => self.wait_for_turn(),
            At::Free if found == 0 => self.enter(),
            At::Free => self.on(At::W4),
            At::W3 => self.on(At::W4),
            At::W4 => self.registered(id, found, Then::Enter),
            At::W7 => self.enter(),
            At::Known if found == 0 => self.on(At::X2),
            At::Known => {
                self.rank().link = found;
                self.on(if model.hand_over() == HandOver::Always { At::HandOverRetire } else { At::HandOver })
            }
            At::HandOver if found == model.active(id) => self.on(At::HandOverRetire),
            At::HandOver => self.on(At::X2),
            At::HandOverRetire => {
                self.node_is(Slot::Worn);
                let next = self.decode("next", self.s.ranks[me].link)?;
                self.rank().ctx = Then::End;
                self.wake_writer(next)
            }
            At::X2 if !model.must_sweep(found) => self.leave_queue(),
            At::X2 if model.waits_counted() => self.on(At::X3),
            At::X2 => self.on(At::X3Forget),
            At::X3Forget => self.on(At::X3),
            At::X3 => {
                self.rank().other = self.decode("readers", found)?;
                if model.does(Mistake::ToldTooLate) { self.on(At::X3ForgetLate) } else { self.swept() }
            }
            At::X3ForgetLate => self.swept(),
            At::X3Wake => {
                self.rank().other = 0;
                self.leave_queue()
            }
            At::X4Load if found == 0 => self.on(At::X4),
            At::X4Load => self.followed_by(found),
            At::X4 if found == id => self.followed_by(0),
            At::X4 => self.on(At::X4Mark),
            At::X4Mark => self.followed_by(found),
            At::X4Retire => {
                self.node_is(Slot::Worn);
                match self.s.ranks[me].link {
                    0 => self.end_round(),
                    _ if model.head_apart() => self.on(At::X5),
                    _ => self.on(At::X6),
                }
            }
            At::X5 => self.on(At::X6),
            _ => {
                let next = self.s.ranks[me].link;
                if !model.does(Mistake::RememberedNext) {
                    self.rank().link = 0;
                }
                self.registered(next, found, Then::End)
            }
        }
    }

    fn swept(&mut self) -> StepResult {
        if self.rank().other == 0 { self.leave_queue() } else { self.on(At::X3Wake) }
    }

    /// Begins X4. The successor is known if the lock could not be handed to it.
    fn leave_queue(&mut self) -> StepResult {
        match self.rank().link {
            0 => self.on(At::X4Load),
            next => self.followed_by(next),
        }
    }

    /// Ends X4.
    fn followed_by(&mut self, next: u64) -> StepResult {
        self.rank().link = self.decode("next", next)?;
        self.on(At::X4Retire)
    }
}
