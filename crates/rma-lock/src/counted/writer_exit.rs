//! Writers that leave: X2–X7, for themselves and for those that gave up.

use super::{
    Core, CountedLock, Scheme,
    duties::{Departing, Duties, Found},
    guard::WriteGuard,
    scheme::{HandOver, READERS_WAIT},
    writer::Writing,
};
use crate::{
    Result,
    detach::DetachOnDrop,
    error::Stopped,
    in_place::{Attempt, FastPath, Never, Posting},
    queue::{NodeId, NodeWord, Transition, Waking},
};
use core::{mem, task::Context};
use rdma_fabric::{Amo, FabricError};
use std::sync::Arc;

/// The state of a release that is not complete yet.
#[derive(Debug)]
pub enum WriteExit {
    /// The successor is known. The compare-and-swap that hands over to it was posted, if one is
    /// needed.
    HandOver(Option<Posting>, u64),
    /// The successor's wake was posted.
    Woken(u64, Posting),
    /// The writer is out of the queue, and its node is not ready for the next turn.
    Gone,
    /// X2 was posted.
    Active(Posting),
    /// X3 is done.
    Queue,
    /// X4's compare-and-swap was posted.
    Tail(Posting),
}

/// A release whose X2 was posted; `None` if nothing has happened yet.
pub(crate) type NotOut = Option<Box<WriteExit>>;

#[cold]
#[inline(never)]
pub(super) fn not_out(exit: WriteExit) -> NotOut {
    Some(Box::new(exit))
}

/// X2–X4, whose guard is still armed if X2 was not posted.
pub(crate) struct ReleaseWrite<'a, S: Scheme>(pub(crate) WriteGuard<'a, S>);

impl<'a, S: Scheme> FastPath for ReleaseWrite<'a, S> {
    type Out = Result<()>;
    type Posted = Never<Self>;
    type Stage = (WriteGuard<'a, S>, NotOut);

    #[inline(always)]
    fn now(self, _: &mut Context<'_>) -> Attempt<Self> {
        match self.0.lock().core.leave(self.0.held()) {
            Ok(()) => {
                mem::forget(self.0);
                Attempt::Done(Ok(()))
            }
            Err(exit) => Attempt::NotDone((self.0, exit)),
        }
    }
}

impl<S: Scheme> CountedLock<S> {
    /// X2–X7 from `exit` on. If it is dropped before X2 is posted, the guard does it all in the
    /// background.
    pub(crate) async fn leave_later(guard: WriteGuard<'_, S>, exit: NotOut) -> Result<()> {
        let (lock, mut flushed) = (guard.lock(), Ok(()));
        let core = &lock.core;
        let exit = match exit {
            Some(exit) => *exit,
            None => {
                flushed = core.flush_data().await;
                core.post_leave(guard.held()).await?
            }
        };
        let held = guard.disarm();
        DetachOnDrop::new(core, |core, _| async move { core.broken.answer(core.leave_from(held, exit).await) }).await?;
        flushed
    }

    /// Releases an exclusive hold that nobody else will release: as far as possible at once, and
    /// the rest in the background.
    pub(crate) fn release_write_unawaited(&self, held: Writing) {
        if let Err(exit) = self.core.leave(held) {
            S::release_write_unawaited(&self.core, held, exit);
        }
    }
}

impl<S: Scheme> Core<S> {
    pub(super) fn detach_write_release(self: &Arc<Self>, held: Writing, exit: NotOut) {
        let core = self.clone();
        self.fabric.detach(async move {
            let released = match exit {
                Some(exit) => core.leave_from(held, *exit).await,
                None => {
                    let _ = core.flush_data().await;
                    core.release_writer(held).await
                }
            };
            let _ = core.broken.answer(released);
        });
    }

    /// X2.
    #[inline(always)]
    fn deactivate(&self, node: NodeId) -> Amo<u64> {
        Amo::Add(S::active(node.bits()).wrapping_neg())
    }

    /// X2–X4 as far as they need no wait.
    #[inline(always)]
    pub(crate) fn leave(&self, held: Writing) -> Result<(), NotOut> {
        let (node, lane) = (held.node(), self.published.lane());
        if !self.is_fast() {
            return Err(None);
        }
        if S::HAND_OVER != HandOver::Never && self.is_followed(node) {
            return if S::RECOVERABLE { Err(None) } else { self.hand_over(held, lane) };
        }
        match self.announced_now(lane, Transition::writer_goes_on(node), &self.count, self.deactivate(node)) {
            Ok(count) if !S::must_sweep(count) => {}
            Ok(count) => return Err(not_out(WriteExit::Active(Posting::Over(Ok(count))))),
            Err(None) => return Err(None),
            Err(Some(posting)) => return Err(not_out(WriteExit::Active(*posting))),
        }
        if !self.is_last(node) {
            return Err(not_out(WriteExit::Queue));
        }
        let Ok(writers) = self.writers() else { return Err(not_out(WriteExit::Queue)) };
        match self.atomic_now(&writers.tail, Amo::CompareSwap { expected: node.bits(), new: 0 }) {
            Ok(tail) if tail == node.bits() && held.woken() => return self.tidy(node, lane),
            Ok(tail) if tail == node.bits() && self.publish_in(lane, Transition::writer_goes_back(node, 3)).is_ok() => {
            }
            Ok(tail) => return Err(not_out(WriteExit::Tail(Posting::Over(Ok(tail))))),
            Err(None) => return Err(not_out(WriteExit::Queue)),
            Err(Some(posting)) => return Err(not_out(WriteExit::Tail(*posting))),
        }
        self.adopt(node).give_back_fresh();
        Ok(())
    }

    /// Returns whether nobody has linked itself behind this rank's node.
    #[inline(always)]
    pub(super) fn is_last(&self, node: NodeId) -> bool {
        self.own(node.slot(), NodeWord::Next).is_ok_and(|next| matches!(self.fabric.load(next), Ok(0)))
    }

    /// Posts X2, or the hand-over to a known successor in its place.
    async fn post_leave(&self, held: Writing) -> Result<WriteExit, FabricError> {
        let (node, step) = (held.node(), Transition::writer_goes_on(held.node()));
        if S::HAND_OVER != HandOver::Never {
            let next = self.fabric.load(self.own(node.slot(), NodeWord::Next)?)?;
            if next != 0 {
                let posted = match pass_on_to::<S>(node, next) {
                    Some(amo) => Some(Posting::InFlight(self.post(step, &self.count, amo).await?)),
                    None => self.publish(step).map(|()| None)?,
                };
                return Ok(WriteExit::HandOver(posted, next));
            }
        }
        let posted = self.post(step, &self.count, self.deactivate(node)).await?;
        Ok(WriteExit::Active(Posting::InFlight(posted)))
    }

    /// X2–X7.
    pub(super) async fn release_writer(&self, held: Writing) -> Result<(), Stopped> {
        let exit = self.post_leave(held).await?;
        self.leave_from(held, exit).await
    }

    async fn leave_from(&self, held: Writing, exit: WriteExit) -> Result<(), Stopped> {
        let node = held.node();
        let own = self.adopt(node);
        let mut duties = Duties::default();
        match exit {
            WriteExit::HandOver(posted, next) => {
                let old = match posted {
                    Some(posted) => Some(posted.result().await?),
                    None => None,
                };
                self.pass_to_next(node, next, old, &mut duties).await?;
            }
            WriteExit::Woken(next, posting) => {
                self.retire(node).await?;
                let next = NodeId::of_bits(next as u32);
                if !Waking(next).found_it(posting.result().await?) {
                    self.writer_leaves(next, &mut duties).await?;
                }
            }
            WriteExit::Gone => self.retire(node).await?,
            WriteExit::Active(posting) => {
                let count = posting.result().await?;
                duties.reader = self.sweep(count).await?;
                duties.departing = Some(Departing { node, queue: Found::Nothing });
            }
            WriteExit::Queue => duties.departing = Some(Departing { node, queue: Found::Nothing }),
            WriteExit::Tail(posting) => {
                duties.departing = Some(Departing { node, queue: Found::Tail(posting.result().await?) });
            }
        }
        self.do_duties(duties).await?;
        self.publish(Transition::writer_goes_back(node, 3))?;
        drop(own);
        Ok(())
    }

    /// X2, X3 for a writer that gave up, or the hand-over in their place.
    pub(super) async fn writer_leaves(&self, node: NodeId, duties: &mut Duties) -> Result<(), Stopped> {
        if S::HAND_OVER != HandOver::Never {
            let next = self.next_of(node).await?;
            if next != 0 {
                let old = match pass_on_to::<S>(node, next) {
                    Some(amo) => Some(self.fabric.atomic(&self.count, amo).await?),
                    None => None,
                };
                return self.pass_to_next(node, next, old, duties).await;
            }
        }
        self.deactivate_for(node, Found::Nothing, duties).await
    }

    /// Completes a hand-over to `next`. If the compare-and-swap that this needs has failed, leaves
    /// in the general way.
    async fn pass_to_next(
        &self,
        node: NodeId,
        next: u64,
        old: Option<u64>,
        duties: &mut Duties,
    ) -> Result<(), Stopped> {
        if old.is_some_and(|old| old != S::active(node.bits())) {
            return self.deactivate_for(node, Found::Link(next), duties).await;
        }
        duties.writer = self.decode("next", next)?;
        self.retire(node).await
    }

    /// X2, X3.
    async fn deactivate_for(&self, node: NodeId, queue: Found, duties: &mut Duties) -> Result<(), Stopped> {
        let count = self.fabric.atomic(&self.count, self.deactivate(node)).await?;
        duties.reader = self.sweep(count).await?;
        duties.departing = Some(Departing { node, queue });
        Ok(())
    }

    /// X3, if the count word was `count` before X2: takes the readers that waited for it, and
    /// returns the top of their stack.
    ///
    /// The stack is taken before the next writer can register (X6): a later sweep could release
    /// readers that queued behind that writer.
    pub(super) async fn sweep(&self, count: u64) -> Result<Option<NodeId>, Stopped> {
        if !S::must_sweep(count) {
            return Ok(None);
        }
        if !S::WAITS_COUNTED {
            // Before the stack is taken: a reader that finds the stack empty announces itself
            // again.
            self.fabric.fetch_and(&self.count, !READERS_WAIT).await?;
        }
        let top = self.fabric.swap(&self.readers()?, 0).await?;
        self.decode("readers", top)
    }

    /// X4–X7, for this rank or for a writer that gave up: leaves the queue and registers the
    /// successor. Returns the writer to wake, if there is one and no reader is in its way.
    pub(super) async fn pass_queue_on(&self, departing: Departing) -> Result<Option<NodeId>, Stopped> {
        let node = departing.node;
        let successor = self.successor(departing).await?;
        // The node is out of the queue; a successor that has yet to link itself finds the mark.
        self.retire(node).await?;
        let Some(successor) = successor else { return Ok(None) };
        let count = self.register(successor).await?; // X5, X6
        if !S::is_free(count) {
            return Ok(None);
        }
        self.let_writer_in(count + S::interest(successor.bits())).await // X7
    }

    /// X4: returns the writer after `node`; `None` if there is none, or if it will register itself.
    async fn successor(&self, Departing { node, queue }: Departing) -> Result<Option<NodeId>, Stopped> {
        let tail = match queue {
            Found::Tail(tail) => tail,
            Found::Link(linked) => return self.decode("next", linked),
            Found::Nothing => {
                let linked = self.next_of(node).await?;
                if linked != 0 {
                    return self.decode("next", linked);
                }
                self.fabric.compare_swap(&self.writers()?.tail, node.bits(), 0).await?
            }
        };
        if tail == node.bits() {
            return Ok(None);
        }
        let next = self.node(node, NodeWord::Next)?;
        let linked = self.fabric.compare_swap(&next, 0, NodeId::PASSED).await?;
        self.decode("next", linked)
    }
}

/// Returns the atomic that hands the lock on from `node` to `next`, if more is needed than a wake.
pub(super) fn pass_on_to<S: Scheme>(node: NodeId, next: u64) -> Option<Amo<u64>> {
    (S::HAND_OVER == HandOver::IfNoReaders)
        .then(|| Amo::CompareSwap { expected: S::active(node.bits()), new: S::active(next) })
}
