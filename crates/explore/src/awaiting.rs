//! What a rank waits for, other than its own operations, and flushes.

use crate::{
    act::{Act, Answer, Op},
    cell::Agent,
    fabric::{OVER, Seat},
    look::{Waiter, waiter_for},
    slots::Parts,
    transfer::bytes_of,
};
use rdma_fabric::{
    Rank, Result,
    provider::{Ended, Goal, Place, Sink, Slot},
};
use std::task::Poll;

impl Seat {
    /// A word that is waited for is looked at.
    pub(crate) fn watch(&self, from: &Place, into: &mut [u8]) -> Result<()> {
        self.look_after_a_loss()?;
        let part = self.word(Agent::Cpu(self.me()), from);
        let Some(Answer::Value(bits)) = self.session.ask(Act::Watch(part)) else { return Err(OVER) };
        bytes_of(part, bits, into);
        Ok(())
    }

    /// Whether `goal` is reached. The slot holds who waits.
    pub(crate) fn awaits(&self, slot: &mut Slot, goal: Goal<'_>) -> Poll<Result<()>> {
        match goal {
            Goal::Word(_, deps) | Goal::Notice(deps) => {
                let waiter = self.waiter(slot);
                self.session.has_to_wait(waiter);
                self.hopeful(&deps, waiter).map_or_else(|lost| Poll::Ready(Err(lost)), |()| Poll::Pending)
            }
            Goal::Until(at) => {
                let waiter = self.waiter(slot);
                if self.session.ask(Act::Sleep(at.as_picos())) == Some(Answer::Done) {
                    self.session.went_on();
                    return Poll::Ready(Ok(()));
                }
                self.session.has_to_wait(waiter);
                Poll::Pending
            }
            Goal::Flush(target) => self.flush(slot, target),
            Goal::Room(target) => Poll::Ready(target.map_or(Ok(()), |target| self.alive(target))),
            Goal::Busy(_) | Goal::Charge(_) => Poll::Ready(Ok(())),
        }
    }

    pub(crate) fn ends_wait(&self, slot: &mut Slot, goal: Goal<'_>, ended: Ended) {
        let waiter: Waiter = std::mem::take(&mut slot.0[0]);
        match goal {
            Goal::Flush(_) => return self.drop_handle(waiter),
            Goal::Word(..) if ended == Ended::Reached => self.session.went_on(),
            _ => {}
        }
        self.session.looks.borrow_mut().end(waiter);
    }

    fn waiter(&self, slot: &mut Slot) -> Waiter {
        if slot.is_empty() {
            slot.0[0] = self.session.looks.borrow_mut().next();
        }
        slot.0[0]
    }

    /// An operation, posted at the first look.
    fn flush(&self, slot: &mut Slot, target: Option<Rank>) -> Poll<Result<()>> {
        if slot.is_empty() {
            if let Some(target) = target {
                let there = self.exists(target).and_then(|()| self.alive(target));
                if there.is_err() {
                    return Poll::Ready(there);
                }
            }
            let number = self.session.take_slot(Parts::new());
            self.session.tell(Act::Post(Op::Flush { slot: number, target }));
            slot.0[0] = waiter_for(number);
        }
        let stands = self.take(slot.0[0], Sink::none());
        if stands.is_ready() {
            *slot = Slot::default();
        }
        stands.map_ok(drop)
    }
}
