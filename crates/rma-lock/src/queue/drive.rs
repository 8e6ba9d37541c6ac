//! Drives a lock's table of steps over the fabric.
//!
//! A [`Walk`] is an acquisition or release in progress: its steps, and the current operation. As
//! long as each operation completes when it is started, a walk continues in place, without a
//! future. An operation that must be awaited turns it into a [`Call`], which owns everything that
//! it needs.
//!
//! An operation that was posted takes effect even if its future was dropped, and a node in a queue
//! will be woken. So dropping a call undoes nothing: a call that waits stops waiting, and the rest
//! is [detached](Fabric::detach) until no other rank depends on it.

use super::{NodeId, Queue, Transition, layout::NodeWord};
use crate::{
    LockError, Result,
    detach::{Cancelled, HasFabric},
    error::Stopped,
    holder_limit,
    posting::{Posting, Unfinished},
    steps::{End, Node, Op, Pending, Reason, Table, Word},
};
use core::{
    future::{Future, poll_fn},
    hint::spin_loop,
    mem,
    pin::Pin,
    task::{Context, Poll},
};
use rdma_fabric::{Amo, Fabric, FabricError, Handle, Refused, RemoteWord, Time, provider::Boxed};
use std::{borrow::Cow, sync::Arc};

/// The number of pauses before each check of a word of the home, so that a holder that releases and
/// retakes the lock does not have a cache miss on the word each time.
const PAUSES: u32 = 8;

/// The driver's interface to a lock's steps.
pub(crate) trait Track: Copy {
    /// Returns the result of the steps; `None` before they have ended.
    fn end(&self) -> Option<End>;

    /// Returns whether the acquisition has not had any effect yet.
    fn is_outside(&self) -> bool;

    /// Notifies the steps that their future was dropped.
    fn set_dropped(&mut self);

    /// Returns this rank's node, if one is in use, and its state after the end.
    fn node(&self) -> Option<(NodeId, Node)>;

    /// Returns whether another rank woke this one.
    fn woken(&self) -> bool;

    /// Returns the word of the lock with which a holder entered, if it needs that later.
    fn word(&self) -> u64 {
        0
    }

    /// Returns whether the future was dropped.
    fn is_dropped(&self) -> bool;
}

/// The state of a holder: its queue node, if any, whether another rank woke it, and the word with
/// which it entered, if needed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) node: Option<NodeId>,
    pub(crate) woken: bool,
    pub(crate) word: u64,
}

/// The part at one rank of a lock with a table of steps.
///
/// Functions that only call a function of [`Drive`] are compiled in the crate that implements them;
/// otherwise each crate that uses the lock would compile them again.
pub(crate) trait Protocol: HasFabric + Send + Sync + Sized + 'static {
    type Table: Table<Steps: Track>;

    fn table(&self) -> &Self::Table;

    fn queue(&self) -> &Queue;

    /// Returns a word at the home, by its number, if it is already resolved.
    fn home_now(&self, number: u8) -> Option<&RemoteWord<u64>>;

    /// Returns a word at the home.
    fn home_word(&self, number: u8) -> Result<Cow<'_, RemoteWord<u64>>, FabricError> {
        if let Some(word) = self.home_now(number) {
            return Ok(Cow::Borrowed(word));
        }
        // Resolved each time: a rank that accesses this word has to wait anyway.
        let queue = self.queue();
        Ok(Cow::Owned(queue.fabric.remote_word(queue.at_home(8 * u64::from(number))?)?))
    }

    /// Reacts to the end of an acquisition or release.
    fn ended(&self, _steps: &StepsOf<Self>) {}

    /// Reacts to a change that this rank has published.
    fn continued(&self) {}

    /// Continues after an operation on another rank's node has failed, if the lock tolerates that;
    /// otherwise returns the error.
    fn failed(&self, _steps: &mut StepsOf<Self>, error: LockError) -> Result<Option<Transition>> {
        Err(error)
    }

    /// [`Drive::resume`].
    fn resume(drive: &mut Drive<Self>, cx: &mut Context<'_>) -> Poll<Result<Option<Held>>>;

    /// [`Drive::detach`].
    fn detach(drive: Box<Drive<Self>>);
}

pub(crate) type StepsOf<P> = <<P as Protocol>::Table as Table>::Steps;

/// The current operation.
enum Doing {
    Nothing,
    Complete(Result<u64, Stopped>),
    Atomic(Handle<u64>),
    Word(Handle<[u64; 1]>),
    /// Waiting for room, after which the operation is started again.
    Room(Boxed<'static, Result<(), FabricError>>),
    Later(Boxed<'static, Result<u64, Stopped>>),
}

/// An acquisition or release in progress.
pub(crate) struct Walk<P: Protocol> {
    steps: StepsOf<P>,
    doing: Doing,
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
            None => Err(Call(Some(Box::new(Drive { core: core.clone(), walk: self })))),
        }
    }

    /// Continues until an operation must be awaited, or to the end.
    #[inline(always)]
    fn advance(&mut self, core: &Arc<P>) -> Option<Result<Option<Held>>> {
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
    fn stop(&mut self, core: &P) -> bool {
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

/// A walk that must await an operation.
pub(crate) struct Drive<P: Protocol> {
    core: Arc<P>,
    walk: Walk<P>,
}

impl<P: Protocol> Drive<P> {
    #[inline(always)]
    pub(crate) fn resume(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Held>>> {
        loop {
            if let Some(out) = self.walk.advance(&self.core) {
                return Poll::Ready(out);
            }
            let polled = match &mut self.walk.doing {
                Doing::Atomic(handle) => Pin::new(handle).poll(cx).map_err(Stopped::from),
                Doing::Word(handle) => Pin::new(handle).poll(cx).map_ok(|[word]| word).map_err(Stopped::from),
                Doing::Later(later) => later.as_mut().poll(cx),
                Doing::Room(room) => match room.as_mut().poll(cx) {
                    Poll::Ready(Ok(())) => {
                        self.walk.doing = Doing::Nothing;
                        continue;
                    }
                    polled => polled.map_ok(|()| 0).map_err(Stopped::from),
                },
                Doing::Nothing | Doing::Complete(_) => continue,
            };
            let Poll::Ready(found) = polled else { return Poll::Pending };
            self.walk.doing = Doing::Complete(found);
        }
    }

    /// Leaves the rest to the fabric.
    #[inline(always)]
    pub(crate) fn detach(mut self: Box<Self>) {
        if !self.walk.stop(&self.core) {
            return;
        }
        let fabric = self.core.queue().fabric.clone();
        fabric.detach(async move { drop(poll_fn(|cx| P::resume(&mut self, cx)).await) });
    }
}

/// The future of a walk. Dropping it detaches the work that others depend on.
pub(crate) struct Call<P: Protocol>(Option<Box<Drive<P>>>);

impl<P: Protocol> Future for Call<P> {
    type Output = Result<Option<Held>>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = P::resume(self.0.as_mut().expect("polled after the end"), cx);
        if polled.is_ready() {
            self.0 = None;
        }
        polled
    }
}

impl<P: Protocol> Drop for Call<P> {
    #[inline]
    fn drop(&mut self) {
        if let Some(drive) = self.0.take() {
            P::detach(drive);
        }
    }
}

impl Doing {
    fn over(found: Result<u64, FabricError>) -> Self {
        Doing::Complete(found.map_err(Stopped::from))
    }

    fn boxed(future: impl Future<Output = Result<u64, Stopped>> + Send + 'static) -> Self {
        Doing::Later(Box::pin(future))
    }

    /// Starts an operation again when there is room.
    fn again<T>(fabric: &Fabric, refused: Refused<T>) -> Self {
        match refused {
            Refused::Failed(error, _) => Doing::over(Err(error)),
            Refused::Full(_) => {
                let fabric = fabric.clone();
                Doing::Room(Box::pin(async move { fabric.room(None).await }))
            }
        }
    }
}

/// Publishes a change, and notifies the lock.
fn publish(core: &impl Protocol, step: Transition) -> Result<(), FabricError> {
    core.queue().publish(step)?;
    core.continued();
    Ok(())
}

/// Returns a word that is resolved.
#[inline(always)]
fn resolved<P: Protocol>(core: &P, word: Word) -> Option<&RemoteWord<u64>> {
    match word {
        Word::Home(number) => core.home_now(number),
        Word::Wake(node) => core.queue().peer_cache(node, NodeWord::Wake).ok(),
        Word::Next(node) => core.queue().peer_cache(node, NodeWord::Next).ok(),
    }
}

fn word_of<P: Protocol>(core: &P, word: Word) -> Result<Cow<'_, RemoteWord<u64>>, FabricError> {
    match word {
        Word::Home(number) => core.home_word(number),
        Word::Wake(node) => core.queue().any_node(node, NodeWord::Wake),
        Word::Next(node) => core.queue().any_node(node, NodeWord::Next),
    }
}

/// The operations of a walk.
impl Queue {
    /// Returns a word of any rank's node; from the cache where caching is worthwhile.
    fn any_node(&self, node: NodeId, part: NodeWord) -> Result<Cow<'_, RemoteWord<u64>>, FabricError> {
        if self.is_fast() {
            self.peer_cache(node, part).map(Cow::Borrowed)
        } else {
            self.node(node, part).map(Cow::Owned)
        }
    }

    fn begin_atomic(&self, word: &RemoteWord<u64>, amo: Amo<u64>) -> Result<Doing, Refused<()>> {
        Ok(Doing::Atomic(self.fabric.try_atomic(word, amo)?))
    }

    fn begin_get(&self, word: &RemoteWord<u64>) -> Doing {
        self.begun(self.fabric.try_get(&word.as_span(), [0]))
    }

    fn begin_put(&self, word: &RemoteWord<u64>, bits: u64) -> Doing {
        self.begun(self.fabric.try_put(&word.as_span(), [bits], None))
    }

    fn begun(&self, handle: Result<Handle<[u64; 1]>, Refused<[u64; 1]>>) -> Doing {
        match handle {
            Ok(handle) => Doing::Word(handle),
            Err(refused) => Doing::again(&self.fabric, refused),
        }
    }

    fn begin_retire(&self, node: NodeId) -> Result<Doing, FabricError> {
        let ready = node.ready();
        Ok(if node.rank() == self.me {
            Doing::over(self.fabric.store_unwaited(self.own(node.slot(), NodeWord::Wake)?, ready).map(|()| 0))
        } else if self.recoverable {
            // An atomic is used because the next flush would report a failed put.
            match self.begin_atomic(&*self.any_node(node, NodeWord::Wake)?, Amo::Swap(ready)) {
                Ok(begun) => begun,
                Err(refused) => Doing::again(&self.fabric, refused),
            }
        } else {
            self.begin_put(&*self.any_node(node, NodeWord::Wake)?, ready)
        })
    }

    /// Flushes the holder's puts, unless the fabric orders them.
    fn begin_flush(&self) -> Doing {
        if self.ordered_everywhere {
            return Doing::Complete(Ok(0));
        }
        let fabric = self.fabric.clone();
        Doing::boxed(async move { Ok(fabric.flush_all().await.map(|()| 0)?) })
    }

    /// Stores into a word of this rank's node.
    fn store(&self, word: Word, bits: u64) -> Result<(), FabricError> {
        let (node, part) = match word {
            Word::Wake(node) => (node, NodeWord::Wake),
            Word::Next(node) => (node, NodeWord::Next),
            Word::Home(_) => return Ok(()),
        };
        self.fabric.store_unwaited(self.own(node.slot(), part)?, bits)
    }
}
