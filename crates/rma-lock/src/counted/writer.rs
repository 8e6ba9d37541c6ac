//! Writers: a queue whose first waits for the readers.

use super::{
    Core, CountedLock, Scheme, Writers,
    guard::WriteGuard,
    writer_wait::{acquire, try_acquire},
};
use crate::{
    Result,
    detach::DetachOnDrop,
    in_place::{Attempt, FastPath, Never, Posting, in_place},
    queue::{NodeId, Transition},
};
use core::{fmt, future::Future, marker::PhantomData, task::Context};
use rdma_fabric::{Amo, Time};

/// What a writer inside must remember: its queue node, and whether somebody woke it. One word, so
/// that it is cheap to move.
#[derive(Clone, Copy)]
pub struct Writing(u64);

impl Writing {
    /// Set if somebody woke the writer; above the node's bits.
    const WOKEN: u64 = 1 << 32;

    pub(super) fn bits(self) -> u64 {
        self.0
    }

    /// Restores the value from [`Writing::bits`].
    pub(super) fn of_bits(bits: u64) -> Self {
        Writing(bits)
    }

    #[inline(always)]
    pub(super) fn new(node: NodeId, woken: bool) -> Self {
        Writing(node.bits() | if woken { Writing::WOKEN } else { 0 })
    }

    #[inline(always)]
    pub(super) fn node(self) -> NodeId {
        NodeId::of_bits(self.0 as u32)
    }

    #[inline(always)]
    pub(super) fn woken(self) -> bool {
        self.0 & Writing::WOKEN != 0
    }
}

impl fmt::Debug for Writing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}{}", self.node(), if self.woken() { ", woken" } else { "" })
    }
}

/// The state of an acquisition that is not complete yet.
#[derive(Debug)]
pub enum WriteEntry {
    /// W2, or a try's compare-and-swap in its place, was posted.
    Tail(Posting),
    /// The queue was empty, or whoever was in it is gone.
    First,
    /// W6's swap was posted.
    Link(Posting),
    /// W6 is done.
    Linked,
    /// W4 was posted.
    Interest(Posting),
    /// W4 found nobody inside.
    Alone,
    /// W5, or the compare-and-swap of 0 in its place, was posted.
    Enter(Posting),
}

/// An acquisition whose node is taken and whose W2 was posted; `None` if nothing has happened yet.
pub(super) type NotInside = Option<Box<(NodeId, WriteEntry)>>;

#[cold]
#[inline(never)]
pub(super) fn not_inside(node: NodeId, entry: WriteEntry) -> NotInside {
    Some(Box::new((node, entry)))
}

/// W1–W5 for a `Held` that is a guard or may be one; `First` is W2.
struct WriteNow<'a, S: Scheme, First, Held>(&'a CountedLock<S>, First, PhantomData<fn() -> Held>);

impl<'a, S: Scheme, First, Held> FastPath for WriteNow<'a, S, First, Held>
where
    First: Fn(NodeId) -> Amo<u64>,
    Held: From<WriteGuard<'a, S>>,
{
    type Out = Result<Held>;
    type Posted = Never<Self>;
    type Stage = NotInside;

    #[inline(always)]
    fn now(self, _: &mut Context<'_>) -> Attempt<Self> {
        match self.0.core.start(self.1) {
            Ok(held) => Attempt::Done(Ok(WriteGuard::new(self.0, held).into())),
            Err(entry) => Attempt::NotDone(entry),
        }
    }
}

impl<S: Scheme> CountedLock<S> {
    /// Takes the lock exclusively.
    ///
    /// Everything that earlier holders put is visible to gets posted afterwards. On an idle lock
    /// this costs 3 remote atomics and a put, one after the other.
    ///
    /// Dropping the future undoes what it has done. This costs a waiting writer 1 atomic on its own
    /// memory; the rank that would have woken it passes it over. A writer that has been let in
    /// releases the lock in the background.
    ///
    /// # Errors
    /// As [`CountedLock::read`].
    #[inline]
    pub fn write(&self) -> impl Future<Output = Result<WriteGuard<'_, S>>> {
        self.write_before(Time::MAX)
    }

    /// Takes the lock exclusively, or gives up at `deadline`. Giving up costs 1 atomic on this
    /// rank's own memory; the rank that would have woken it hands the lock on. Dropping the future
    /// has the same effect.
    ///
    /// # Errors
    /// As [`CountedLock::write`], and [`crate::LockError::TimedOut`].
    #[inline]
    pub fn write_before(&self, deadline: Time) -> impl Future<Output = Result<WriteGuard<'_, S>>> {
        in_place(WriteNow(self, queue_up, PhantomData), move |entry| S::write_later(self, entry, deadline))
    }

    /// Takes the lock exclusively if nobody is inside or waits to write. Dropping the future undoes
    /// what it has done.
    ///
    /// # Errors
    /// As [`CountedLock::write`].
    #[inline]
    pub fn try_write(&self) -> impl Future<Output = Result<Option<WriteGuard<'_, S>>>> {
        in_place(WriteNow(self, only_first, PhantomData), move |entry| S::try_write_later(self, entry))
    }

    /// Continues [`CountedLock::write_before`] from `entry` on.
    pub(super) async fn wait_to_write(&self, entry: NotInside, deadline: Time) -> Result<WriteGuard<'_, S>> {
        let core = &self.core;
        let (node, entry) = core.started(entry, deadline, queue_up).await?;
        let held = DetachOnDrop::new(core, |core, cancelled| acquire(core, node, entry, deadline, cancelled)).await?;
        Ok(WriteGuard::new(self, held))
    }

    /// Continues [`CountedLock::try_write`] from `entry` on.
    pub(super) async fn write_or_withdraw(&self, entry: NotInside) -> Result<Option<WriteGuard<'_, S>>> {
        let core = &self.core;
        let (node, entry) = core.started(entry, Time::MAX, only_first).await?;
        let held = DetachOnDrop::new(core, |core, cancelled| try_acquire(core, node, entry, cancelled)).await?;
        Ok(held.map(|held| WriteGuard::new(self, held)))
    }
}

/// W2.
fn queue_up(node: NodeId) -> Amo<u64> {
    Amo::Swap(node.bits())
}

/// In place of W2: queues up only if the queue is empty.
fn only_first(node: NodeId) -> Amo<u64> {
    Amo::CompareSwap { expected: 0, new: node.bits() }
}

impl<S: Scheme> Core<S> {
    /// W1–W7 as far as they need no wait. Returns the hold if that leads inside.
    #[inline(always)]
    fn start(&self, first: impl Fn(NodeId) -> Amo<u64>) -> Result<Writing, NotInside> {
        if !self.is_fast() || !self.broken.is_whole() {
            return Err(None);
        }
        let Ok(writers) = self.writers() else { return Err(None) };
        let lane = self.published.lane();
        let Some(own) = self.take_fresh_node(lane) else { return Err(None) };
        let node = own.id;
        let step = Transition::writer_goes_on(node);
        // W2
        match self.announced_now(lane, step, &writers.tail, first(node)) {
            Ok(0) => {}
            Ok(before) if !S::RECOVERABLE && matches!(first(node), Amo::Swap(_)) => {
                return self.follow(own, before, lane);
            }
            Ok(before) => return Err(not_inside(own.keep(), WriteEntry::Tail(Posting::Over(Ok(before))))),
            Err(None) => {
                own.give_back_fresh();
                return Err(None);
            }
            Err(Some(posting)) => return Err(not_inside(own.keep(), WriteEntry::Tail(*posting))),
        }
        if !S::HEAD_APART {
            match self.atomic_now(&self.count, self.enter_free(node)) {
                Ok(0) if self.publish_in(lane, step).is_ok() => return Ok(Writing::new(own.keep(), false)),
                Ok(count) => return Err(not_inside(own.keep(), WriteEntry::Enter(Posting::Over(Ok(count))))),
                Err(None) => return Err(not_inside(own.keep(), WriteEntry::First)),
                Err(Some(posting)) => return Err(not_inside(own.keep(), WriteEntry::Enter(*posting))),
            }
        }
        // W3: the provider orders W4 after it.
        if self.put_head_now(writers, node).is_none() {
            return Err(not_inside(own.keep(), WriteEntry::First));
        }
        let interest = S::interest(node.bits());
        match self.atomic_now(&self.count, Amo::Add(interest)) {
            Ok(0) => {}
            Ok(count) => return Err(not_inside(own.keep(), WriteEntry::Interest(Posting::Over(Ok(count))))),
            Err(None) => return Err(not_inside(own.keep(), WriteEntry::First)),
            Err(Some(posting)) => return Err(not_inside(own.keep(), WriteEntry::Interest(*posting))),
        }
        match self.atomic_now(&self.count, Amo::CompareSwap { expected: interest, new: S::granted(interest) }) {
            Ok(count) if count == interest && self.publish_in(lane, step).is_ok() => {}
            Ok(count) => return Err(not_inside(own.keep(), WriteEntry::Enter(Posting::Over(Ok(count))))),
            Err(None) => return Err(not_inside(own.keep(), WriteEntry::Alone)),
            Err(Some(posting)) => return Err(not_inside(own.keep(), WriteEntry::Enter(*posting))),
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

    /// W3–W5 in one, if nobody is present.
    #[inline(always)]
    pub(super) fn enter_free(&self, node: NodeId) -> Amo<u64> {
        Amo::CompareSwap { expected: 0, new: S::active(node.bits()) }
    }
}
