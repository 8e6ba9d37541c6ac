//! Drives a lock's table of steps over the fabric, as long as nothing must be awaited.
//!
//! A [`Walk`] is an acquisition or release in progress: its steps, and the current operation. As
//! long as each operation completes when it is started, a walk continues in place, without a
//! future. An operation that must be awaited turns it into a [`Call`].

use super::{
    Transition,
    drive::{Call, Drive},
    layout::NodeWord,
    operations::{Doing, publish, resolved, word_of},
    protocol::{Held, Protocol, StepsOf, Track},
};
use crate::{
    LockError, Result,
    error::Stopped,
    lock::{
        detach::Cancelled,
        holder_limit,
        posting::{Posting, Unfinished},
    },
    steps::{End, Node, Op, Pending, Reason, Table, Word},
};
use core::{hint::spin_loop, mem};
use rdma_fabric::{FabricError, Time};
use std::sync::Arc;

/// The number of pauses before each check of a word of the home, so that a holder that releases and
/// retakes the lock does not have a cache miss on the word each time.
const PAUSES: u32 = 8;

/// An acquisition or release in progress.
pub(crate) struct Walk<P: Protocol> {
    steps: StepsOf<P>,
    pub(super) doing: Doing,
    /// The time at which waits are abandoned.
    deadline: Time,
    /// The reason why a wait was given up.
    told: Option<LockError>,
    /// The result of a release's flush.
    flushed: Result<()>,
}

impl<P: Protocol> Walk<P> {
    /// Starts `steps`.
    #[inline(always)]
    pub(crate) fn new(steps: StepsOf<P>, deadline: Time) -> Self {
        Walk { steps, doing: Doing::Nothing, deadline, told: None, flushed: Ok(()) }
    }

    /// Continues from `steps`, whose operation is complete, or was posted, or was not posted.
    #[inline(always)]
    pub(crate) fn from(steps: StepsOf<P>, found: Result<u64, Unfinished>, deadline: Time) -> Self {
        let doing = match found {
            Ok(found) => Doing::Complete(Ok(found)),
            Err(None) => Doing::Nothing,
            Err(Some(posting)) => match *posting {
                Posting::InFlight(handle) => Doing::Atomic(handle),
                Posting::Complete(found) => Doing::Complete(found.map_err(Stopped::from)),
            },
        };
        Walk { doing, ..Walk::new(steps, deadline) }
    }

    /// Continues as far as possible without waiting; the rest is a call.
    #[inline(always)]
    pub(crate) fn run(mut self, core: &Arc<P>) -> Result<Result<Option<Held>>, Call<P>> {
        if let (true, Err(broken)) = (self.steps.is_outside(), core.queue().broken.check()) {
            return Ok(Err(broken));
        }
        match self.advance(core) {
            Some(out) => Ok(out),
            None => Err(Call::walk(Drive { core: core.clone(), walk: self })),
        }
    }

    /// Continues until an operation must be awaited, or to the end.
    #[inline(always)]
    pub(super) fn advance(&mut self, core: &Arc<P>) -> Option<Result<Option<Held>>> {
        loop {
            let Some(Pending { op, announced }) = core.table().pending(&self.steps) else {
                return Some(self.over(core));
            };
            let found = match &self.doing {
                Doing::Nothing => match self.fast(&**core, op, announced) {
                    Some(found) => Ok(found),
                    None => match self.begin(core, op, announced) {
                        Ok(Doing::Complete(found)) => found,
                        Ok(doing) => {
                            self.doing = doing;
                            return None;
                        }
                        Err(error) => Err(error.into()),
                    },
                },
                Doing::Complete(_) => match mem::replace(&mut self.doing, Doing::Nothing) {
                    Doing::Complete(found) => found,
                    _ => return None,
                },
                _ => return None,
            };
            if let Err(stopped) = self.resume(core, op, found) {
                if let Some((node, _)) = self.steps.node() {
                    drop(core.queue().adopt(node));
                }
                return Some(core.queue().broken.answer(Err(stopped)));
            }
        }
    }

    /// Executes an operation that completes immediately.
    #[inline(always)]
    fn fast(&self, core: &P, op: Op, announced: Option<Transition>) -> Option<u64> {
        let queue = core.queue();
        if announced.is_some() || !queue.is_fast() || self.steps.is_dropped() {
            return None;
        }
        match op {
            Op::Atomic(word, amo) => queue.fabric.direct().atomic(resolved(core, word)?, amo),
            Op::Get(Word::Next(node)) if node.rank() == queue.me => {
                queue.fabric.load(queue.own(node.slot(), NodeWord::Next).ok()?).ok()
            }
            Op::Get(word) => queue.fabric.direct().get_word(resolved(core, word)?),
            Op::Look(word) => {
                (0..PAUSES).for_each(|_| spin_loop());
                queue.fabric.direct().get_word(resolved(core, word)?)
            }
            Op::Put(word, bits) => queue.fabric.direct().put_word(resolved(core, word)?, bits).map(|()| 0),
            Op::Retire(node) if node.rank() == queue.me => {
                let wake = queue.own(node.slot(), NodeWord::Wake).ok()?;
                queue.fabric.store_unwaited(wake, node.ready()).ok().map(|()| 0)
            }
            Op::Take => queue.take_node_now().ok()?.map(|own| own.keep().bits()),
            Op::Wait(node) => queue.soon_woken(node).map(|how| how as u64),
            Op::FlushData => Some(0),
            _ => None,
        }
    }

    /// Starts an operation.
    #[cold]
    #[inline(never)]
    fn begin(&mut self, core: &Arc<P>, op: Op, announced: Option<Transition>) -> Result<Doing, FabricError> {
        let queue = core.queue();
        if let Some(step) = announced {
            publish(&**core, step)?;
        }
        Ok(match op {
            Op::Atomic(word, amo) => match queue.begin_atomic(&*word_of(&**core, word)?, amo) {
                Ok(begun) => begun,
                Err(refused) => {
                    if let Some(step) = announced {
                        publish(&**core, step.undone())?;
                    }
                    Doing::again(&queue.fabric, refused)
                }
            },
            Op::Get(Word::Next(node)) if node.rank() == queue.me => {
                Doing::over(queue.fabric.load(queue.own(node.slot(), NodeWord::Next)?))
            }
            Op::Get(word) | Op::Look(word) => queue.begin_get(&*word_of(&**core, word)?),
            Op::Put(word, bits) => queue.begin_put(&*word_of(&**core, word)?, bits),
            Op::Store(word, bits) => Doing::over(queue.store(word, bits).map(|()| 0)),
            Op::Retire(node) | Op::GiveBack(node) => queue.begin_retire(node)?,
            Op::FlushData => queue.begin_flush(),
            Op::FlushHome => {
                let (fabric, home) = (queue.fabric.clone(), queue.home);
                Doing::boxed(async move { Ok(fabric.flush(home).await.map(|()| 0)?) })
            }
            Op::Take if self.steps.is_dropped() => Doing::Complete(Err(Stopped::GaveUp(Cancelled::REASON))),
            Op::Wait(node) if self.steps.is_dropped() => {
                // It may have been woken since the last check.
                let woken = queue.woken_now(node).map(|how| how as u64);
                Doing::Complete(woken.ok_or(Stopped::GaveUp(Cancelled::REASON)))
            }
            Op::Take => match queue.take_clean_node() {
                Some(own) => Doing::Complete(Ok(own.keep().bits())),
                None => {
                    let (core, deadline) = (core.clone(), self.deadline);
                    Doing::boxed(async move {
                        let own = core.queue().take_node(deadline, &Cancelled::default()).await;
                        own.map(|own| own.keep().bits())
                    })
                }
            },
            Op::Wait(node) => {
                let (core, deadline) = (core.clone(), self.deadline);
                Doing::boxed(async move { core.queue().until_woken(node, deadline, None).await.map(|how| how as u64) })
            }
        })
    }

    /// Continues after the operation has completed.
    #[inline(always)]
    fn resume(&mut self, core: &P, op: Op, found: Result<u64, Stopped>) -> Result<(), Stopped> {
        let found = match found {
            Ok(found) => found,
            Err(Stopped::GaveUp(why)) => {
                self.told = Some(why);
                0
            }
            Err(Stopped::Broken(error)) if op == Op::FlushData => {
                self.flushed = Err(error);
                0
            }
            Err(Stopped::Broken(error)) => {
                let said = core.failed(&mut self.steps, error.clone()).map_err(Stopped::Broken)?;
                self.told = Some(error);
                return Ok(said.map_or(Ok(()), |said| publish(core, said))?);
            }
        };
        if let Op::GiveBack(node) = op {
            core.queue().give_back(node);
        }
        let said = core.table().resume(&mut self.steps, found).map_err(Stopped::Broken)?;
        Ok(said.map_or(Ok(()), |said| publish(core, said))?)
    }

    /// Ends.
    fn over(&mut self, core: &P) -> Result<Option<Held>> {
        let queue = core.queue();
        let node = self.steps.node();
        match node {
            Some((node, Node::Clean)) => queue.adopt(node).give_back_clean(),
            Some((node, Node::Dirty)) => queue.give_back(node),
            _ => {}
        }
        core.ended(&self.steps);
        match self.steps.end() {
            Some(End::Inside) => {
                let node = node.map(|(node, _)| node);
                Ok(Some(Held { node, woken: self.steps.woken(), word: self.steps.word() }))
            }
            Some(End::NotNow) => Ok(None),
            Some(End::GaveUp(Reason::Refused)) => Err(holder_limit::refusal()),
            Some(End::GaveUp(Reason::KeptOut)) => Err(LockError::KEPT_OUT),
            Some(End::GaveUp(Reason::Dropped)) => Err(Cancelled::REASON),
            Some(End::GaveUp(Reason::Told)) => Err(self.told.take().unwrap_or(Cancelled::REASON)),
            Some(End::Broken) => Err(queue.broken.by(self.told.take().unwrap_or(Cancelled::REASON))),
            Some(End::Out) | None => mem::replace(&mut self.flushed, Ok(())).map(|()| None),
        }
    }

    /// Stops waiting, because the future was dropped. Returns false if no work is left.
    pub(super) fn stop(&mut self, core: &P) -> bool {
        self.steps.set_dropped();
        if self.steps.is_outside() && !matches!(self.doing, Doing::Atomic(_) | Doing::Complete(_)) {
            if let Some((node, _)) = self.steps.node() {
                drop(core.queue().adopt(node));
            }
            return false;
        }
        let op = core.table().pending(&self.steps).map(|pending| pending.op);
        if let Some(Op::Take | Op::Wait(_)) = op {
            // If it is started again, it is abandoned.
            self.doing = Doing::Nothing;
        }
        true
    }
}
