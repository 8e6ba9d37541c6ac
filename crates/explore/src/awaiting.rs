//! A program's waits for anything other than its own operations, its flushes, and its queries about
//! ranks that may die.
//!
//! A rank rests only after it has checked all of its wait conditions at one moment. If one future
//! found its condition unsatisfied and another one then acted in the same poll, the first checks
//! again, because its condition may have become true. Ranks that can't die are never queried.

use crate::{
    act::{Act, Answer, HandleId, Op},
    cell::Agent,
    fabric::{OVER, RankHandle},
    loss::{Ranks, bit, first},
    operation::{Pieces, bytes_of},
    session::Session,
};
use rdma_fabric::{
    Deps, FabricError, Rank, Result,
    provider::{Ended, Place, Sink, WaitFor, WaitState},
};
use std::{collections::BTreeMap, task::Poll};

impl RankHandle {
    /// Reads a word that the program waits for.
    pub(crate) fn watch(&self, from: &Place, into: &mut [u8]) -> Result<()> {
        self.look_after_a_loss()?;
        let part = self.word(Agent::Cpu(self.me()), from);
        let Some(Answer::Value(bits)) = self.session.request(Act::Watch(part)) else { return Err(OVER) };
        bytes_of(part, bits, into);
        Ok(())
    }

    /// Returns whether the wait is over. The wait state holds the [`Waiter`].
    pub(crate) fn awaits(&self, wait_state: &mut WaitState, wait_for: WaitFor<'_>) -> Poll<Result<()>> {
        match wait_for {
            WaitFor::Word(_, deps) | WaitFor::Notice(deps) => {
                let waiter = self.waiter(wait_state);
                self.session.has_to_wait(waiter);
                self.hopeful(&deps, waiter).map_or_else(|lost| Poll::Ready(Err(lost)), |()| Poll::Pending)
            }
            WaitFor::Until(at) => {
                let waiter = self.waiter(wait_state);
                if self.session.request(Act::Sleep(at.as_picos())) == Some(Answer::Done) {
                    self.session.continued();
                    return Poll::Ready(Ok(()));
                }
                self.session.has_to_wait(waiter);
                Poll::Pending
            }
            WaitFor::Flush(target) => self.flush(wait_state, target),
            WaitFor::Room(target) => Poll::Ready(target.map_or(Ok(()), |target| self.alive(target))),
            WaitFor::Busy(_) | WaitFor::Charge(..) => Poll::Ready(Ok(())),
        }
    }

    pub(crate) fn ends_wait(&self, wait_state: &mut WaitState, wait_for: WaitFor<'_>, ended: Ended) {
        let waiter: Waiter = std::mem::take(&mut wait_state.0[0]);
        match wait_for {
            WaitFor::Flush(_) => return self.drop_handle(waiter),
            WaitFor::Word(..) if ended == Ended::Reached => self.session.continued(),
            _ => {}
        }
        self.session.polls.borrow_mut().end(waiter);
    }

    fn waiter(&self, wait_state: &mut WaitState) -> Waiter {
        if wait_state.is_empty() {
            wait_state.0[0] = self.session.polls.borrow_mut().next();
        }
        wait_state.0[0]
    }

    /// Polls a flush, which is an operation posted at the first poll.
    fn flush(&self, wait_state: &mut WaitState, target: Option<Rank>) -> Poll<Result<()>> {
        if wait_state.is_empty() {
            if let Some(target) = target {
                let there = self.exists(target).and_then(|()| self.alive(target));
                if there.is_err() {
                    return Poll::Ready(there);
                }
            }
            let number = self.session.take_slot(Pieces::new());
            self.session.report(Act::Post(Op::Flush { slot: number, target }));
            wait_state.0[0] = waiter_for(number);
        }
        let stands = self.take(wait_state.0[0], Sink::none());
        if stands.is_ready() {
            *wait_state = WaitState::default();
        }
        stands.map_ok(drop)
    }
}

impl RankHandle {
    /// Checks that this rank does not know `rank` to be lost.
    ///
    /// # Errors
    /// [`FabricError::PeerLost`] if this rank knows that `rank` is lost.
    pub(crate) fn alive(&self, rank: Rank) -> Result<()> {
        if !self.session.others_that_may_die().any(|mortal| mortal == rank) {
            return Ok(());
        }
        let answer = self.session.request(Act::IsLost(rank));
        self.session.continued();
        if answer == Some(Answer::Value(1)) { Err(FabricError::PeerLost { rank }) } else { Ok(()) }
    }

    /// Checks whether an unsatisfied wait can still be satisfied. Call this at the moment of the
    /// wait's check. After an error, a further check would have the same result, so it only
    /// [reports the error](RankHandle::look_after_a_loss).
    ///
    /// # Errors
    /// [`FabricError::PeerLost`] if this rank knows that one of `deps` is lost.
    pub(crate) fn hopeful(&self, deps: &Deps<'_>, waiter: Waiter) -> Result<()> {
        let me = self.session.rank;
        let mortal = self.session.others_that_may_die().filter(|rank| deps.contains(*rank, me));
        let mortal = mortal.fold(0, |ranks, rank| ranks | bit(rank));
        if mortal == 0 {
            return Ok(());
        }
        let Some(Answer::Value(lost)) = self.session.request(Act::LostAmong(mortal)) else { return Ok(()) };
        match first(lost as Ranks) {
            Some(rank) => {
                self.session.continued();
                self.session.hopeless.set(Some(rank));
                Err(FabricError::PeerLost { rank })
            }
            None => {
                self.session.has_to_wait(waiter);
                Ok(())
            }
        }
    }

    /// Checks, after the end of a wait, whether a loss ended it.
    ///
    /// # Errors
    /// [`FabricError::PeerLost`] if a loss ended the wait.
    pub(crate) fn look_after_a_loss(&self) -> Result<()> {
        self.session.hopeless.take().map_or(Ok(()), |rank| Err(FabricError::PeerLost { rank }))
    }
}

/// The non-zero name of a waiting future: it encodes the operation that it waits for, or is a fresh
/// number above [`OTHERS`] if it waits for anything else.
pub(crate) type Waiter = u64;

/// The bound below which waiters wait for an operation.
const OTHERS: Waiter = 1 << HandleId::BITS;

/// Returns the waiter for an operation.
pub(crate) fn waiter_for(slot: HandleId) -> Waiter {
    Waiter::from(slot) + 1
}

/// Returns the operation that `waiter` waits for.
pub(crate) fn waits_for(waiter: Waiter) -> HandleId {
    (waiter - 1) as HandleId
}

/// The futures left waiting in this poll, and whether the rank has acted since each of them
/// checked.
#[derive(Debug, Default)]
pub(crate) struct Polls {
    made: u64,
    stale: BTreeMap<Waiter, bool>,
}

impl Polls {
    /// Returns a new waiter that waits for no operation.
    pub(crate) fn next(&mut self) -> Waiter {
        self.made += 1;
        OTHERS + self.made
    }

    /// Begins a new poll.
    pub(crate) fn clear(&mut self) {
        self.stale.clear();
    }

    /// Records that the rank acted, so that all waiting futures have to check again.
    pub(crate) fn age(&mut self) {
        self.stale.values_mut().for_each(|stale| *stale = true);
    }

    /// Returns whether any future has to check again.
    pub(crate) fn are_stale(&self) -> bool {
        self.stale.values().any(|stale| *stale)
    }

    /// Records that `waiter` no longer waits.
    pub(crate) fn end(&mut self, waiter: Waiter) {
        self.stale.remove(&waiter);
    }
}

impl Session {
    /// Records that the last answer did not satisfy `waiter`.
    pub(crate) fn has_to_wait(&self, waiter: Waiter) {
        self.not_ready();
        self.polls.borrow_mut().stale.insert(waiter, false);
    }
}
