//! Writers: a queue, whose first waits for the readers.

use super::{
    Core, CountedLock, Scheme, Writers,
    scheme::{HandOver, READERS_WAIT, WRITER_INTERESTED},
    settle::{Departing, Duties, Found},
};
use crate::{
    Result, WriteGuard,
    error::Trouble,
    owed::{Owed, Quit},
    posting::Posting,
    queue::{NodeId, Own, Part, Step},
    shortcut::{Never, Now, Try, shortcut},
};
use core::{fmt, future::Future, mem, task::Context};
use rdma_fabric::{Amo, FabricError, Time};
use std::sync::Arc;

/// What a writer inside must remember: its queue node, and whether somebody woke it. One word, to be cheap to move.
#[derive(Clone, Copy)]
pub struct Writing(u64);

impl Writing {
    /// Above the node's bits.
    const WOKEN: u64 = 1 << 32;

    #[inline(always)]
    fn new(node: NodeId, woken: bool) -> Self {
        Writing(node.bits() | if woken { Writing::WOKEN } else { 0 })
    }

    #[inline(always)]
    fn node(self) -> NodeId {
        NodeId::of_bits(self.0 as u32)
    }

    #[inline(always)]
    fn woken(self) -> bool {
        self.0 & Writing::WOKEN != 0
    }
}

impl fmt::Debug for Writing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}{}", self.node(), if self.woken() { ", woken" } else { "" })
    }
}

/// Where an acquisition stands that is not over yet.
#[derive(Debug)]
pub enum Entry {
    /// W2, or the comparison of a try in its place, was posted.
    Tail(Posting),
    /// The queue was empty.
    First,
    /// W4 was posted.
    Interest(Posting),
    /// W4 found nobody inside.
    Alone,
    /// W5, or the comparison with 0 in its place, was posted.
    Enter(Posting),
}

/// An acquisition whose node is taken and whose W2 was posted; `None` if nothing has happened yet.
pub(super) type NotInside = Option<Box<(NodeId, Entry)>>;

#[cold]
#[inline(never)]
fn not_inside(node: NodeId, entry: Entry) -> NotInside {
    Some(Box::new((node, entry)))
}

/// Where a release stands that is not over yet.
#[derive(Debug)]
pub enum Exit {
    /// The successor is known. The comparison that hands over to it was posted, if one is needed.
    HandOver(Option<Posting>, u64),
    /// X2 was posted.
    Active(Posting),
    /// X3 is done.
    Queue,
    /// X4's comparison was posted.
    Tail(Posting),
}

/// A release whose X2 was posted; `None` if nothing has happened yet.
pub(crate) type NotOut = Option<Box<Exit>>;

#[cold]
#[inline(never)]
fn not_out(exit: Exit) -> NotOut {
    Some(Box::new(exit))
}

struct Enter<'a, S: Scheme>(&'a CountedLock<S>);

impl<'a, S: Scheme> Try for Enter<'a, S> {
    type Out = Result<WriteGuard<'a, S>>;
    type Posted = Never<Self>;
    type Stage = NotInside;

    #[inline(always)]
    fn now(self, _: &mut Context<'_>) -> Now<Self> {
        match self.0.core.start(queue_up) {
            Ok(held) => Now::Over(Ok(WriteGuard::new(self.0, held))),
            Err(entry) => Now::Stuck(entry),
        }
    }
}

struct TryEnter<'a, S: Scheme>(&'a CountedLock<S>);

impl<'a, S: Scheme> Try for TryEnter<'a, S> {
    type Out = Result<Option<WriteGuard<'a, S>>>;
    type Posted = Never<Self>;
    type Stage = NotInside;

    #[inline(always)]
    fn now(self, _: &mut Context<'_>) -> Now<Self> {
        match self.0.core.start(only_first) {
            Ok(held) => Now::Over(Ok(Some(WriteGuard::new(self.0, held)))),
            Err(entry) => Now::Stuck(entry),
        }
    }
}

/// X2–X4, whose guard is still armed if X2 was not posted.
pub(crate) struct Leave<'a, S: Scheme>(pub(crate) WriteGuard<'a, S>);

impl<'a, S: Scheme> Try for Leave<'a, S> {
    type Out = Result<()>;
    type Posted = Never<Self>;
    type Stage = (WriteGuard<'a, S>, NotOut);

    #[inline(always)]
    fn now(self, _: &mut Context<'_>) -> Now<Self> {
        match self.0.lock().core.leave(self.0.held()) {
            Ok(()) => {
                mem::forget(self.0);
                Now::Over(Ok(()))
            }
            Err(exit) => Now::Stuck((self.0, exit)),
        }
    }
}

impl<S: Scheme> CountedLock<S> {
    /// Take the lock exclusively.
    ///
    /// Everything that earlier holders put is visible to gets posted afterwards. On an idle lock this is 3 remote
    /// atomics and a put, one after the other.
    ///
    /// Dropping the future takes back what it has done: a writer that waits is passed over by whoever would have woken it, at the cost of
    /// 1 atomic on own memory now; one that is let in releases the lock in the background.
    ///
    /// # Errors
    /// As [`CountedLock::read`].
    #[inline]
    pub fn write(&self) -> impl Future<Output = Result<WriteGuard<'_, S>>> {
        self.write_before(Time::MAX)
    }

    /// Take the lock exclusively, or give up at `deadline`. Giving up costs 1 atomic on own memory; whoever would
    /// have woken this rank hands the lock on. Dropping the future does the same.
    ///
    /// # Errors
    /// As [`CountedLock::write`], and [`crate::LockError::TimedOut`].
    #[inline]
    pub fn write_before(&self, deadline: Time) -> impl Future<Output = Result<WriteGuard<'_, S>>> {
        shortcut(Enter(self), move |entry| S::write_later(self, entry, deadline))
    }

    /// Take the lock exclusively if nobody is inside or waits to write. Dropping the future takes back what it has done.
    ///
    /// # Errors
    /// As [`CountedLock::write`].
    #[inline]
    pub fn try_write(&self) -> impl Future<Output = Result<Option<WriteGuard<'_, S>>>> {
        shortcut(TryEnter(self), move |entry| S::try_write_later(self, entry))
    }

    /// [`CountedLock::write_before`] from `entry` on.
    pub(super) async fn wait_to_write(&self, entry: NotInside, deadline: Time) -> Result<WriteGuard<'_, S>> {
        let core = &self.core;
        let (node, entry) = core.started(entry, deadline, queue_up).await?;
        let held = Owed::new(core, |core, quit| acquire(core, node, entry, deadline, quit)).await?;
        Ok(WriteGuard::new(self, held))
    }

    /// [`CountedLock::try_write`] from `entry` on.
    pub(super) async fn write_or_withdraw(&self, entry: NotInside) -> Result<Option<WriteGuard<'_, S>>> {
        let core = &self.core;
        let (node, entry) = core.started(entry, Time::MAX, only_first).await?;
        let held = Owed::new(core, |core, quit| try_acquire(core, node, entry, quit)).await?;
        Ok(held.map(|held| WriteGuard::new(self, held)))
    }

    /// X2–X7 from `exit` on. Dropped before X2 is posted, the guard does it all in the background.
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
        Owed::new(core, |core, _| async move { core.answer(core.leave_from(held, exit).await) }).await?;
        flushed
    }

    /// Release an exclusive hold that nobody will, in the same way.
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
            let _ = core.answer(released);
        });
    }
}

/// W2–W7 from `entry` on.
async fn acquire<S: Scheme>(
    core: Arc<Core<S>>,
    node: NodeId,
    entry: Entry,
    deadline: Time,
    quit: Quit,
) -> Result<Writing> {
    core.answer(core.enter_from(node, entry, deadline, &quit).await)
}

/// The same for a try.
async fn try_acquire<S: Scheme>(core: Arc<Core<S>>, node: NodeId, entry: Entry, quit: Quit) -> Result<Option<Writing>> {
    core.answer(core.try_enter_from(node, entry, &quit).await)
}

/// W2.
fn queue_up(node: NodeId) -> Amo<u64> {
    Amo::Swap(node.bits())
}

/// In its place: queue up only if that is empty.
fn only_first(node: NodeId) -> Amo<u64> {
    Amo::CompareSwap { expected: 0, new: node.bits() }
}

impl<S: Scheme> Core<S> {
    /// W1–W5 as far as nothing has to be waited for: inside.
    #[inline(always)]
    fn start(&self, first: impl Fn(NodeId) -> Amo<u64>) -> Result<Writing, NotInside> {
        if !self.is_fast() || !self.is_whole() {
            return Err(None);
        }
        let Ok(writers) = self.writers() else { return Err(None) };
        let lane = self.published.lane();
        let Some(own) = self.take_fresh_node(lane) else { return Err(None) };
        let node = own.id;
        let step = Step::writer_goes_on(node);
        // W2
        match self.announced_now(lane, step, &writers.tail, first(node)) {
            Ok(0) => {}
            Ok(before) => return Err(not_inside(own.keep(), Entry::Tail(Posting::Over(Ok(before))))),
            Err(None) => {
                own.give_back_fresh();
                return Err(None);
            }
            Err(Some(posting)) => return Err(not_inside(own.keep(), Entry::Tail(*posting))),
        }
        if !S::HEAD_APART {
            match self.atomic_now(&self.count, self.enter_free(node)) {
                Ok(0) if self.publish_in(lane, step).is_ok() => return Ok(Writing::new(own.keep(), false)),
                Ok(count) => return Err(not_inside(own.keep(), Entry::Enter(Posting::Over(Ok(count))))),
                Err(None) => return Err(not_inside(own.keep(), Entry::First)),
                Err(Some(posting)) => return Err(not_inside(own.keep(), Entry::Enter(*posting))),
            }
        }
        // W3: W4 comes after it by the provider's order.
        if self.put_head_now(writers, node).is_none() {
            return Err(not_inside(own.keep(), Entry::First));
        }
        let interest = S::interest(node.bits());
        match self.atomic_now(&self.count, Amo::Add(interest)) {
            Ok(0) => {}
            Ok(count) => return Err(not_inside(own.keep(), Entry::Interest(Posting::Over(Ok(count))))),
            Err(None) => return Err(not_inside(own.keep(), Entry::First)),
            Err(Some(posting)) => return Err(not_inside(own.keep(), Entry::Interest(*posting))),
        }
        match self.atomic_now(&self.count, Amo::CompareSwap { expected: interest, new: S::granted(interest) }) {
            Ok(count) if count == interest && self.publish_in(lane, step).is_ok() => {}
            Ok(count) => return Err(not_inside(own.keep(), Entry::Enter(Posting::Over(Ok(count))))),
            Err(None) => return Err(not_inside(own.keep(), Entry::Alone)),
            Err(Some(posting)) => return Err(not_inside(own.keep(), Entry::Enter(*posting))),
        }
        Ok(Writing::new(own.keep(), false))
    }

    /// W3.
    #[inline(always)]
    fn put_head_now(&self, writers: &Writers, node: NodeId) -> Option<()> {
        match self.fabric.put_word_now(&writers.head, node.bits()) {
            Some(()) => Some(()),
            None => self.fabric.try_put(&writers.head.as_span(), [node.bits()], None).ok().map(drop),
        }
    }

    /// A node whose W2, `first`, was posted, now if that has not happened. Until then dropping this owes nothing, and then it
    /// is over.
    async fn started(
        &self,
        entry: NotInside,
        deadline: Time,
        first: impl Fn(NodeId) -> Amo<u64>,
    ) -> Result<(NodeId, Entry)> {
        if let Some(started) = entry {
            return Ok(*started);
        }
        self.check()?;
        let own = match self.take_fresh_node(self.published.lane()) {
            Some(own) => own,
            None => self.answer(Box::pin(self.take_node(deadline, &Quit::default())).await)?,
        };
        let posted = self.post(Step::writer_goes_on(own.id), &self.writers()?.tail, first(own.id)).await?;
        Ok((own.keep(), Entry::Tail(Posting::InFlight(posted))))
    }

    async fn enter_from(&self, node: NodeId, entry: Entry, deadline: Time, quit: &Quit) -> Result<Writing, Trouble> {
        let own = self.adopt(node);
        let inside = match entry {
            Entry::Tail(posting) => match posting.result().await? {
                0 => self.contend(node, Entry::First).await?,
                before => match self.link(node, before).await {
                    Ok(first) => first && self.contend(node, Entry::First).await?,
                    Err(trouble) => {
                        // The node stays in a queue out of which nobody will take it.
                        own.keep();
                        return Err(trouble);
                    }
                },
            },
            entry => self.contend(node, entry).await?,
        };
        if !inside {
            self.await_turn(&own, deadline, quit).await?;
        }
        self.now_inside(own, !inside, quit).await
    }

    async fn try_enter_from(&self, node: NodeId, entry: Entry, quit: &Quit) -> Result<Option<Writing>, Trouble> {
        let own = self.adopt(node);
        let inside = match entry {
            Entry::Tail(posting) => {
                if posting.result().await? != 0 {
                    self.publish(Step::writer_goes_back(node, 1))?;
                    own.give_back_fresh();
                    return Ok(None);
                }
                self.try_contend(node, Entry::First).await?
            }
            entry => self.try_contend(node, entry).await?,
        };
        if !inside {
            // Readers are inside. Withdraw my interest, unless one of them has already let me in.
            if !S::HEAD_APART || self.fabric.fetch_and(&self.count, !WRITER_INTERESTED).await? & WRITER_INTERESTED != 0
            {
                let departing = Some(Departing { node, queue: Found::Nothing });
                self.settle(Duties { departing, ..Duties::default() }).await?;
                self.publish(Step::writer_goes_back(node, 1))?;
                return Ok(None);
            }
            self.await_turn(&own, Time::MAX, quit).await?;
        }
        self.now_inside(own, !inside, quit).await.map(Some)
    }

    /// W7. Given up, the node stays in the queue; its waker will make it ready again.
    async fn await_turn(&self, own: &Own<'_>, deadline: Time, quit: &Quit) -> Result<(), Trouble> {
        let woken = self.wait_to_be_woken(own, deadline, quit).await;
        if let Err(Trouble::GaveUp(_)) = woken {
            self.publish(Step::writer_goes_back(own.id, 1))?;
        }
        woken
    }

    async fn now_inside(&self, own: Own<'_>, woken: bool, quit: &Quit) -> Result<Writing, Trouble> {
        self.publish(Step::writer_goes_on(own.id))?;
        let held = Writing::new(own.keep(), woken);
        if quit.is_set() {
            self.release_writer(held).await?;
            return Err(Trouble::GaveUp(Quit::REASON));
        }
        Ok(held)
    }

    /// W6: behind a writer that may be gone already; true if so, and `node` is first.
    async fn link(&self, node: NodeId, before: u64) -> Result<bool, Trouble> {
        let Some(before) = self.decode("tail", before)? else { return Ok(true) };
        let linked = async { self.fabric.swap(&self.node(before, Part::Next)?, node.bits()).await };
        match linked.await.map_err(Trouble::from) {
            Ok(old) => Ok(old == NodeId::PASSED),
            Err(Trouble::Broken(lost)) if self.is_gone(&lost) => {
                self.publish(Step::writer_goes_back(node, 1))?;
                Err(Trouble::GaveUp(lost))
            }
            Err(trouble) => Err(trouble),
        }
    }

    /// W3–W5 from `entry` on: first in the queue, `node` registers and enters if no reader is there.
    async fn contend(&self, node: NodeId, entry: Entry) -> Result<bool, Trouble> {
        let interest = S::interest(node.bits());
        let count = match entry {
            _ if !S::HEAD_APART => {
                if self.found_free(node, entry).await? {
                    return Ok(true);
                }
                self.register(node).await?
            }
            Entry::Tail(_) | Entry::First => self.register(node).await?,
            Entry::Interest(posting) => posting.result().await?,
            Entry::Alone => 0,
            Entry::Enter(posting) => return Ok(posting.result().await? == interest),
        };
        Ok(S::is_free(count) && self.activate(count + interest).await?)
    }

    /// The same for one that wants to enter now. Where one comparison does it, it fails without having registered.
    async fn try_contend(&self, node: NodeId, entry: Entry) -> Result<bool, Trouble> {
        if S::HEAD_APART { self.contend(node, entry).await } else { self.found_free(node, entry).await }
    }

    /// W3–W5 in one, from `entry` on.
    async fn found_free(&self, node: NodeId, entry: Entry) -> Result<bool, Trouble> {
        let count = match entry {
            Entry::Enter(posting) => posting.result().await?,
            _ => self.fabric.atomic(&self.count, self.enter_free(node)).await?,
        };
        Ok(count == 0)
    }

    /// W3–W5 in one, if nobody is about.
    #[inline(always)]
    fn enter_free(&self, node: NodeId) -> Amo<u64> {
        Amo::CompareSwap { expected: 0, new: S::active(node.bits()) }
    }

    /// W3, W4; X5, X6: make `node` the head, visibly, and then show interest. Yields the count word before.
    ///
    /// Interest is known not to be shown: only the first of the queue shows it, and it is first no more when it has become active or
    /// withdrawn.
    async fn register(&self, node: NodeId) -> Result<u64, Trouble> {
        if S::HEAD_APART {
            self.fabric.put_word(&self.writers()?.head, node.bits()).await?;
            if !self.ordered_here {
                self.fabric.flush(self.home).await?;
            }
        }
        Ok(self.fabric.atomic(&self.count, Amo::Add(S::interest(node.bits()))).await?)
    }

    /// X2.
    #[inline(always)]
    fn deactivate(&self, node: NodeId) -> Amo<u64> {
        Amo::Add(S::active(node.bits()).wrapping_neg())
    }

    /// X2–X4 as far as nothing has to be waited for.
    #[inline(always)]
    pub(crate) fn leave(&self, held: Writing) -> Result<(), NotOut> {
        let (node, lane) = (held.node(), self.published.lane());
        if !self.is_fast() || S::HAND_OVER != HandOver::Never && !self.is_last(node) {
            return Err(None);
        }
        match self.announced_now(lane, Step::writer_goes_on(node), &self.count, self.deactivate(node)) {
            Ok(count) if !S::must_sweep(count) => {}
            Ok(count) => return Err(not_out(Exit::Active(Posting::Over(Ok(count))))),
            Err(None) => return Err(None),
            Err(Some(posting)) => return Err(not_out(Exit::Active(*posting))),
        }
        if !self.is_last(node) {
            return Err(not_out(Exit::Queue));
        }
        let Ok(writers) = self.writers() else { return Err(not_out(Exit::Queue)) };
        match self.atomic_now(&writers.tail, Amo::CompareSwap { expected: node.bits(), new: 0 }) {
            Ok(tail)
                if tail == node.bits()
                    && !held.woken()
                    && self.publish_in(lane, Step::writer_goes_back(node, 3)).is_ok() => {}
            Ok(tail) => return Err(not_out(Exit::Tail(Posting::Over(Ok(tail))))),
            Err(None) => return Err(not_out(Exit::Queue)),
            Err(Some(posting)) => return Err(not_out(Exit::Tail(*posting))),
        }
        self.adopt(node).give_back_fresh();
        Ok(())
    }

    /// Whether nobody has linked itself behind my node.
    #[inline(always)]
    fn is_last(&self, node: NodeId) -> bool {
        self.own(node.slot(), Part::Next).is_ok_and(|next| matches!(self.fabric.load(next), Ok(0)))
    }

    /// X2, or the hand-over to a known successor in its place, posted.
    async fn post_leave(&self, held: Writing) -> Result<Exit, FabricError> {
        let (node, step) = (held.node(), Step::writer_goes_on(held.node()));
        if S::HAND_OVER != HandOver::Never {
            let next = self.fabric.load(self.own(node.slot(), Part::Next)?)?;
            if next != 0 {
                let posted = match hand_over::<S>(node, next) {
                    Some(amo) => Some(Posting::InFlight(self.post(step, &self.count, amo).await?)),
                    None => self.publish(step).map(|()| None)?,
                };
                return Ok(Exit::HandOver(posted, next));
            }
        }
        let posted = self.post(step, &self.count, self.deactivate(node)).await?;
        Ok(Exit::Active(Posting::InFlight(posted)))
    }

    /// X2–X7.
    async fn release_writer(&self, held: Writing) -> Result<(), Trouble> {
        let exit = self.post_leave(held).await?;
        self.leave_from(held, exit).await
    }

    async fn leave_from(&self, held: Writing, exit: Exit) -> Result<(), Trouble> {
        let node = held.node();
        let own = self.adopt(node);
        let mut duties = Duties::default();
        match exit {
            Exit::HandOver(posted, next) => {
                let old = match posted {
                    Some(posted) => Some(posted.result().await?),
                    None => None,
                };
                self.handed_over(node, next, old, &mut duties).await?;
            }
            Exit::Active(posting) => {
                let count = posting.result().await?;
                duties.reader = self.sweep(count).await?;
                duties.departing = Some(Departing { node, queue: Found::Nothing });
            }
            Exit::Queue => duties.departing = Some(Departing { node, queue: Found::Nothing }),
            Exit::Tail(posting) => {
                duties.departing = Some(Departing { node, queue: Found::Tail(posting.result().await?) });
            }
        }
        self.settle(duties).await?;
        self.publish(Step::writer_goes_back(node, 3))?;
        drop(own);
        Ok(())
    }

    /// X2, X3 for one who gave up, or the hand-over in their place.
    pub(super) async fn writer_leaves(&self, node: NodeId, duties: &mut Duties) -> Result<(), Trouble> {
        if S::HAND_OVER != HandOver::Never {
            let next = self.linked(node).await?;
            if next != 0 {
                let old = match hand_over::<S>(node, next) {
                    Some(amo) => Some(self.fabric.atomic(&self.count, amo).await?),
                    None => None,
                };
                return self.handed_over(node, next, old, duties).await;
            }
        }
        self.deactivate_for(node, Found::Nothing, duties).await
    }

    /// The lock was handed on to `next`, if the comparison that needs found what it should.
    async fn handed_over(&self, node: NodeId, next: u64, old: Option<u64>, duties: &mut Duties) -> Result<(), Trouble> {
        if old.is_some_and(|old| old != S::active(node.bits())) {
            return self.deactivate_for(node, Found::Link(next), duties).await;
        }
        duties.writer = self.decode("next", next)?;
        self.retire(node).await
    }

    /// X2, X3.
    async fn deactivate_for(&self, node: NodeId, queue: Found, duties: &mut Duties) -> Result<(), Trouble> {
        let count = self.fabric.atomic(&self.count, self.deactivate(node)).await?;
        duties.reader = self.sweep(count).await?;
        duties.departing = Some(Departing { node, queue });
        Ok(())
    }

    /// X3, if the count word was `count` before X2: take the readers that waited for that. Yields their top.
    ///
    /// The stack is taken before the next writer can register (X6): a later sweep could release readers that queued behind
    /// that one.
    pub(super) async fn sweep(&self, count: u64) -> Result<Option<NodeId>, Trouble> {
        if !S::must_sweep(count) {
            return Ok(None);
        }
        if !S::WAITS_COUNTED {
            // Before the stack: who comes upon an empty one says so again.
            self.fabric.fetch_and(&self.count, !READERS_WAIT).await?;
        }
        let top = self.fabric.swap(&self.readers()?, 0).await?;
        self.decode("readers", top)
    }

    /// X4–X7, mine or for one who gave up: leave the queue, register the successor. Yields the writer to
    /// be woken, if there is one and no reader is in its way.
    pub(super) async fn pass_queue_on(&self, departing: Departing) -> Result<Option<NodeId>, Trouble> {
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

    /// X4: who comes after `node`. `None` if nobody does, or if who does will register itself.
    async fn successor(&self, Departing { node, queue }: Departing) -> Result<Option<NodeId>, Trouble> {
        let tail = match queue {
            Found::Tail(tail) => tail,
            Found::Link(linked) => return self.decode("next", linked),
            Found::Nothing => {
                let linked = self.linked(node).await?;
                if linked != 0 {
                    return self.decode("next", linked);
                }
                self.fabric.compare_swap(&self.writers()?.tail, node.bits(), 0).await?
            }
        };
        if tail == node.bits() {
            return Ok(None);
        }
        let next = self.node(node, Part::Next)?;
        let linked = self.fabric.compare_swap(&next, 0, NodeId::PASSED).await?;
        self.decode("next", linked)
    }

    /// Who has linked itself behind `node`; 0 if nobody has.
    async fn linked(&self, node: NodeId) -> Result<u64, FabricError> {
        if node.rank() == self.me {
            self.fabric.load(self.own(node.slot(), Part::Next)?)
        } else {
            self.fabric.get_word(&self.node(node, Part::Next)?).await
        }
    }
}

/// What hands the lock on from `node` to `next`, if anything has to be done but to wake it.
fn hand_over<S: Scheme>(node: NodeId, next: u64) -> Option<Amo<u64>> {
    (S::HAND_OVER == HandOver::IfNoReaders)
        .then(|| Amo::CompareSwap { expected: S::active(node.bits()), new: S::active(next) })
}
