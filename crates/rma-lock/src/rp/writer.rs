//! Writers: a queue, whose first waits for the readers.

use super::{
    Core, READER, RpLock, WRITER_ACTIVE, WRITER_INTERESTED,
    settle::{Departing, Duties},
};
use crate::{
    Result, WriteGuard,
    error::Trouble,
    owed::{Owed, Quit},
    posting::Posting,
    queue::{NodeId, Own, Part, Step},
    shortcut::{Now, Try, shortcut},
};
use core::{
    fmt,
    future::{self, Future},
    mem,
    task::Context,
};
use rdma_fabric::{Amo, Fabric, FabricError, PutOptions, Time};
use std::sync::Arc;

const SHOW_INTEREST: Amo<u64> = Amo::Add(WRITER_INTERESTED);
const ENTER: Amo<u64> = Amo::CompareSwap { expected: WRITER_INTERESTED, new: WRITER_ACTIVE };
const LEAVE: Amo<u64> = Amo::Add(WRITER_ACTIVE.wrapping_neg());

/// What a writer inside must remember: its queue node, and whether somebody woke it. One word, to be cheap to move.
#[derive(Clone, Copy)]
pub struct Writing(u64);

impl Writing {
    /// In the slot's bits, of which few are used.
    const WOKEN: u64 = 1 << 15;

    #[inline(always)]
    fn new(node: NodeId, woken: bool) -> Self {
        Writing(node.bits() | if woken { Writing::WOKEN } else { 0 })
    }

    #[inline(always)]
    fn node(self) -> NodeId {
        NodeId::of_bits(self.0 & !Writing::WOKEN)
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
enum Entry<F: Fabric> {
    /// W2, or the comparison of a try in its place, was posted.
    Tail(Posting<F>),
    /// The queue was empty.
    First,
    /// W4 was posted.
    Interest(Posting<F>),
    /// W4 found nobody inside.
    Alone,
    /// W5 was posted.
    Enter(Posting<F>),
}

/// An acquisition whose node is taken and whose W2 was posted; `None` if nothing has happened yet.
type NotInside<F> = Option<Box<(NodeId, Entry<F>)>>;

#[cold]
#[inline(never)]
fn not_inside<F: Fabric>(node: NodeId, entry: Entry<F>) -> NotInside<F> {
    Some(Box::new((node, entry)))
}

/// Where a release stands that is not over yet.
pub(crate) enum Exit<F: Fabric> {
    /// X2 was posted.
    Active(Posting<F>),
    /// X3 is done.
    Queue,
    /// X4's comparison was posted.
    Tail(Posting<F>),
}

/// A release whose X2 was posted; `None` if nothing has happened yet.
pub(crate) type NotOut<F> = Option<Box<Exit<F>>>;

#[cold]
#[inline(never)]
fn not_out<F: Fabric>(exit: Exit<F>) -> NotOut<F> {
    Some(Box::new(exit))
}

/// A writer does several operations one after the other, so none is awaited in place.
type Never<Fast> = future::Pending<Result<<Fast as Try>::Out, <Fast as Try>::Stage>>;

struct Enter<'a, F: Fabric>(&'a RpLock<F>);

impl<'a, F: Fabric> Try for Enter<'a, F> {
    type Out = Result<WriteGuard<'a, F>>;
    type Posted = Never<Self>;
    type Stage = NotInside<F>;

    #[inline(always)]
    fn now(self, _: &mut Context<'_>) -> Now<Self> {
        match self.0.core.start(queue_up) {
            Ok(held) => Now::Over(Ok(WriteGuard::new(self.0, held))),
            Err(entry) => Now::Stuck(entry),
        }
    }
}

struct TryEnter<'a, F: Fabric>(&'a RpLock<F>);

impl<'a, F: Fabric> Try for TryEnter<'a, F> {
    type Out = Result<Option<WriteGuard<'a, F>>>;
    type Posted = Never<Self>;
    type Stage = NotInside<F>;

    #[inline(always)]
    fn now(self, _: &mut Context<'_>) -> Now<Self> {
        match self.0.core.start(only_first) {
            Ok(held) => Now::Over(Ok(Some(WriteGuard::new(self.0, held)))),
            Err(entry) => Now::Stuck(entry),
        }
    }
}

/// X2–X4, whose guard is still armed if X2 was not posted.
pub(crate) struct Leave<'a, F: Fabric>(pub(crate) WriteGuard<'a, F>);

impl<'a, F: Fabric> Try for Leave<'a, F> {
    type Out = Result<()>;
    type Posted = Never<Self>;
    type Stage = (WriteGuard<'a, F>, NotOut<F>);

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

impl<F: Fabric> RpLock<F> {
    /// Take the lock exclusively.
    ///
    /// Everything that earlier holders put is visible to gets posted afterwards. On an idle lock this is 3 remote
    /// atomics and a put, one after the other.
    ///
    /// Dropping the future takes back what it has done: a writer that waits is passed over by whoever would have woken it, at the cost of
    /// 1 atomic on own memory now; one that is let in releases the lock in the background.
    ///
    /// # Errors
    /// As [`RpLock::read`].
    #[inline]
    pub fn write(&self) -> impl Future<Output = Result<WriteGuard<'_, F>>> {
        self.write_before(Time::MAX)
    }

    /// Take the lock exclusively, or give up at `deadline`. Giving up costs 1 atomic on own memory; whoever would
    /// have woken this rank hands the lock on. Dropping the future does the same.
    ///
    /// # Errors
    /// As [`RpLock::write`], and [`crate::LockError::TimedOut`].
    #[inline]
    pub fn write_before(&self, deadline: Time) -> impl Future<Output = Result<WriteGuard<'_, F>>> {
        shortcut(Enter(self), move |entry| async move {
            let core = &self.core;
            let (node, entry) = core.started(entry, deadline, queue_up).await?;
            let held = Owed::new(core, |core, quit| acquire(core, node, entry, deadline, quit)).await?;
            Ok(WriteGuard::new(self, held))
        })
    }

    /// Take the lock exclusively if nobody is inside or waits to write. Dropping the future takes back what it has done.
    ///
    /// # Errors
    /// As [`RpLock::write`].
    #[inline]
    pub fn try_write(&self) -> impl Future<Output = Result<Option<WriteGuard<'_, F>>>> {
        shortcut(TryEnter(self), move |entry| async move {
            let core = &self.core;
            let (node, entry) = core.started(entry, Time::MAX, only_first).await?;
            let held = Owed::new(core, |core, quit| try_acquire(core, node, entry, quit)).await?;
            Ok(held.map(|held| WriteGuard::new(self, held)))
        })
    }

    /// X2–X7 from `exit` on. Dropped before X2 is posted, the guard does it all in the background.
    pub(crate) async fn leave_later(guard: WriteGuard<'_, F>, exit: NotOut<F>) -> Result<()> {
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

    /// Release an exclusive hold that nobody will.
    pub(crate) fn release_write_unawaited(&self, held: Writing) {
        let core = self.core.clone();
        self.core.fabric.detach(async move {
            let _ = core.flush_data().await;
            let _ = core.answer(core.release_writer(held).await);
        });
    }
}

/// W2–W7 from `entry` on.
async fn acquire<F: Fabric>(
    core: Arc<Core<F>>,
    node: NodeId,
    entry: Entry<F>,
    deadline: Time,
    quit: Quit,
) -> Result<Writing> {
    core.answer(core.enter_from(node, entry, deadline, &quit).await)
}

/// The same for a try.
async fn try_acquire<F: Fabric>(
    core: Arc<Core<F>>,
    node: NodeId,
    entry: Entry<F>,
    quit: Quit,
) -> Result<Option<Writing>> {
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

impl<F: Fabric> Core<F> {
    /// W1–W5 as far as nothing has to be waited for: inside.
    #[inline(always)]
    fn start(&self, first: impl Fn(NodeId) -> Amo<u64>) -> Result<Writing, NotInside<F>> {
        if !self.is_fast() || !self.is_whole() {
            return Err(None);
        }
        let lane = self.published.lane();
        let Some(own) = self.take_fresh_node(lane) else { return Err(None) };
        let node = own.id;
        let step = Step::writer_goes_on(node);
        // W2
        match self.announced_now(lane, step, &self.tail, first(node)) {
            Ok(0) => {}
            Ok(before) => return Err(not_inside(own.keep(), Entry::Tail(Posting::Over(Ok(before))))),
            Err(None) => {
                own.give_back_fresh();
                return Err(None);
            }
            Err(Some(posting)) => return Err(not_inside(own.keep(), Entry::Tail(*posting))),
        }
        // W3: W4 comes after it by the provider's order.
        match self.fabric.try_put(&self.head, [node.bits()], PutOptions::default()) {
            Ok(handle) => drop(handle),
            Err(_) => return Err(not_inside(own.keep(), Entry::First)),
        }
        match self.atomic_now(&self.count, SHOW_INTEREST) {
            Ok(0) => {}
            Ok(count) => return Err(not_inside(own.keep(), Entry::Interest(Posting::Over(Ok(count))))),
            Err(None) => return Err(not_inside(own.keep(), Entry::First)),
            Err(Some(posting)) => return Err(not_inside(own.keep(), Entry::Interest(*posting))),
        }
        match self.atomic_now(&self.count, ENTER) {
            Ok(count) if count == WRITER_INTERESTED && self.publish_in(lane, step).is_ok() => {}
            Ok(count) => return Err(not_inside(own.keep(), Entry::Enter(Posting::Over(Ok(count))))),
            Err(None) => return Err(not_inside(own.keep(), Entry::Alone)),
            Err(Some(posting)) => return Err(not_inside(own.keep(), Entry::Enter(*posting))),
        }
        Ok(Writing::new(own.keep(), false))
    }

    /// A node whose W2, `first`, was posted, now if that has not happened. Until then dropping this owes nothing, and then it
    /// is over.
    async fn started(
        &self,
        entry: NotInside<F>,
        deadline: Time,
        first: impl Fn(NodeId) -> Amo<u64>,
    ) -> Result<(NodeId, Entry<F>)> {
        if let Some(started) = entry {
            return Ok(*started);
        }
        self.check()?;
        let own = match self.take_fresh_node(self.published.lane()) {
            Some(own) => own,
            None => self.answer(Box::pin(self.take_node(deadline, &Quit::default())).await)?,
        };
        let posted = self.post(Step::writer_goes_on(own.id), &self.tail, first(own.id)).await?;
        Ok((own.keep(), Entry::Tail(Posting::InFlight(posted))))
    }

    async fn enter_from(&self, node: NodeId, entry: Entry<F>, deadline: Time, quit: &Quit) -> Result<Writing, Trouble> {
        let own = self.adopt(node);
        let inside = match entry {
            Entry::Tail(posting) => match posting.result().await? {
                0 => self.contend(node, Entry::First).await?,
                before => self.link(node, before).await? && self.contend(node, Entry::First).await?,
            },
            entry => self.contend(node, entry).await?,
        };
        if !inside {
            self.await_turn(&own, deadline, quit).await?;
        }
        self.now_inside(own, !inside, quit).await
    }

    async fn try_enter_from(&self, node: NodeId, entry: Entry<F>, quit: &Quit) -> Result<Option<Writing>, Trouble> {
        let own = self.adopt(node);
        let inside = match entry {
            Entry::Tail(posting) => {
                if posting.result().await? != 0 {
                    self.publish(Step::writer_goes_back(node, 1))?;
                    own.give_back_fresh();
                    return Ok(None);
                }
                self.contend(node, Entry::First).await?
            }
            entry => self.contend(node, entry).await?,
        };
        if !inside {
            // Readers are inside. Withdraw my interest, unless one of them has already let me in.
            let old = self.fabric.fetch_and(&self.count, !WRITER_INTERESTED).await?;
            if old & WRITER_INTERESTED != 0 {
                self.settle(Duties { departing: Some(Departing::new(node)), ..Duties::default() }).await?;
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
        let old = self.fabric.swap(&self.node(before, Part::Next)?, node.bits()).await?;
        Ok(old == NodeId::PASSED)
    }

    /// W3–W5 from `entry` on: first in the queue, `node` registers and enters if no reader is there.
    async fn contend(&self, node: NodeId, entry: Entry<F>) -> Result<bool, Trouble> {
        let count = match entry {
            Entry::Tail(_) | Entry::First => self.register(node).await?,
            Entry::Interest(posting) => posting.result().await?,
            Entry::Alone => 0,
            Entry::Enter(posting) => return Ok(posting.result().await? == WRITER_INTERESTED),
        };
        Ok(count == 0 && self.fabric.atomic(&self.count, ENTER).await? == WRITER_INTERESTED)
    }

    /// W3, W4; X5, X6: make `node` the head, visibly, and then show interest. Yields the count before.
    ///
    /// Interest is known not to be shown: only the first of the queue shows it, and it is first no more when it has become active or
    /// withdrawn.
    async fn register(&self, node: NodeId) -> Result<u64, Trouble> {
        self.fabric.put(&self.head, [node.bits()]).await?;
        if !self.ordered_here {
            self.fabric.flush(self.home).await?;
        }
        Ok(self.fabric.atomic(&self.count, SHOW_INTEREST).await?)
    }

    /// X2–X4 as far as nothing has to be waited for.
    #[inline(always)]
    pub(crate) fn leave(&self, held: Writing) -> Result<(), NotOut<F>> {
        let (node, lane) = (held.node(), self.published.lane());
        if !self.is_fast() {
            return Err(None);
        }
        match self.announced_now(lane, Step::writer_goes_on(node), &self.count, LEAVE) {
            Ok(count) if count < READER => {}
            Ok(count) => return Err(not_out(Exit::Active(Posting::Over(Ok(count))))),
            Err(None) => return Err(None),
            Err(Some(posting)) => return Err(not_out(Exit::Active(*posting))),
        }
        let unlinked = match self.own(node.slot(), Part::Next) {
            Ok(next) => matches!(self.fabric.load(next), Ok(0)),
            Err(_) => false,
        };
        if !unlinked {
            return Err(not_out(Exit::Queue));
        }
        match self.atomic_now(&self.tail, Amo::CompareSwap { expected: node.bits(), new: 0 }) {
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

    /// X2, posted.
    async fn post_leave(&self, held: Writing) -> Result<Exit<F>, FabricError> {
        let posted = self.post(Step::writer_goes_on(held.node()), &self.count, LEAVE).await?;
        Ok(Exit::Active(Posting::InFlight(posted)))
    }

    /// X2–X7.
    async fn release_writer(&self, held: Writing) -> Result<(), Trouble> {
        let exit = self.post_leave(held).await?;
        self.leave_from(held, exit).await
    }

    async fn leave_from(&self, held: Writing, exit: Exit<F>) -> Result<(), Trouble> {
        let node = held.node();
        let own = self.adopt(node);
        let (mut reader, mut tail) = (None, None);
        match exit {
            Exit::Active(posting) => {
                let count = posting.result().await?;
                reader = self.sweep(count).await?;
            }
            Exit::Queue => {}
            Exit::Tail(posting) => tail = Some(posting.result().await?),
        }
        self.settle(Duties { reader, departing: Some(Departing { node, tail }), ..Duties::default() }).await?;
        self.publish(Step::writer_goes_back(node, 3))?;
        drop(own);
        Ok(())
    }

    /// X2, X3 for one who gave up.
    pub(super) async fn writer_leaves(&self) -> Result<Option<NodeId>, Trouble> {
        let count = self.fabric.atomic(&self.count, LEAVE).await?;
        self.sweep(count).await
    }

    /// X3, if the count was `count` before X2: take the readers that waited for that. Yields their top.
    ///
    /// The stack is taken before the next writer can register (X6): a later sweep could release readers that queued behind
    /// that one.
    async fn sweep(&self, count: u64) -> Result<Option<NodeId>, Trouble> {
        if count < READER {
            return Ok(None);
        }
        let top = self.fabric.swap(&self.readers, 0).await?;
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
        if count != 0 {
            return Ok(None);
        }
        self.let_writer_in().await // X7
    }

    /// X4: who comes after `node`. `None` if nobody does, or if who does will register itself.
    async fn successor(&self, Departing { node, tail }: Departing) -> Result<Option<NodeId>, Trouble> {
        let tail = match tail {
            Some(tail) => tail,
            None => {
                let linked = if node.rank() == self.me {
                    self.fabric.load(self.own(node.slot(), Part::Next)?)?
                } else {
                    self.fabric.get_word(&self.node(node, Part::Next)?).await?
                };
                if linked != 0 {
                    return self.decode("next", linked);
                }
                self.fabric.compare_swap(&self.tail, node.bits(), 0).await?
            }
        };
        if tail == node.bits() {
            return Ok(None);
        }
        let next = self.node(node, Part::Next)?;
        let linked = self.fabric.compare_swap(&next, 0, NodeId::PASSED).await?;
        self.decode("next", linked)
    }
}
