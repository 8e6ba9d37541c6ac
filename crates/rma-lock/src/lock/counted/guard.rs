//! Proof of holding a counted lock, and its implementation of the traits of all locks.

use super::{Core, CountedLock, Flat, Scheme, scheme::HEAD};
use crate::{
    Fairness, Guard, Lock, Result, RmaLock,
    lock::{
        AnonymousShared, KeptExclusive, OfThisCrate,
        boxed::wrapped,
        queue::{Call, Held, LOCK_BYTES, NodeId},
        recovery::EpochLink,
    },
};
use core::{fmt, future::Future, mem, sync::atomic::Ordering::Relaxed, task::Context};
use rdma_fabric::{
    Fabric, GroupMemory, Rank, Time,
    fast_path::{FastPath, fast_path},
    provider::Boxed,
};

/// Shared access: no writer is inside. Returned by [`RmaLock::read`].
///
/// Dropping it releases the lock in the background, as [`Guard::release`] does, without reporting
/// errors.
#[must_use = "a guard that is dropped at once protects nothing"]
#[derive(Debug)]
pub struct ReadGuard<'a, S: Scheme = Flat> {
    lock: &'a CountedLock<S>,
}

/// Exclusive access: no other rank is inside. Returned by [`RmaLock::write`].
///
/// Dropping it releases the lock in the background, as [`Guard::release`] does, without reporting
/// errors.
#[must_use = "a guard that is dropped at once protects nothing"]
pub struct WriteGuard<'a, S: Scheme = Flat> {
    /// The state of the writer is stored in the lock: only one writer is inside, and a guard of one
    /// word stays in a register.
    lock: &'a CountedLock<S>,
}

/// The state of a writer inside: its queue node, and whether another rank woke it; for a lock that
/// allows barging, the count word with which it entered. One word, so that it is cheap to move.
#[derive(Clone, Copy)]
pub(crate) struct Writing(u64);

impl Writing {
    /// Set if another rank woke the writer; above the node's bits.
    const WOKEN: u64 = 1 << 32;

    #[inline(always)]
    pub(super) fn new(node: NodeId, woken: bool) -> Self {
        Writing(node.bits() | if woken { Writing::WOKEN } else { 0 })
    }

    #[inline(always)]
    pub(super) fn barged(word: u64) -> Self {
        Writing(word)
    }

    #[inline(always)]
    pub(super) fn word(self) -> u64 {
        self.0
    }

    /// Returns the node that the count word names.
    pub(super) fn node_in_word(self) -> NodeId {
        NodeId::of_bits((self.0 >> HEAD) as u32)
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

impl From<Held> for Writing {
    fn from(held: Held) -> Self {
        match held.node {
            Some(node) if held.word == 0 => Writing::new(node, held.woken),
            _ => Writing::barged(held.word),
        }
    }
}

impl<S: Scheme> fmt::Debug for WriteGuard<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held @ Writing(word) = self.lock.core.held();
        if S::RULES.barges {
            return write!(f, "entered with {word:#x}, {:?}", self.lock);
        }
        let woken = if held.woken() { ", woken" } else { "" };
        write!(f, "{:?}{woken}, {:?}", held.node(), self.lock)
    }
}

/// A release that has consumed its guard.
pub(crate) struct Leave<G>(pub(crate) G);

impl<S: Scheme> FastPath for Leave<ReadGuard<'_, S>> {
    type Out = Result<()>;
    type Stage = Call<Core>;

    #[inline(always)]
    fn fast(self, _: &mut Context<'_>) -> Result<Result<()>, Call<Core>> {
        let lock = self.0.lock;
        mem::forget(self.0);
        lock.leave_read().map(|out| out.map(drop))
    }
}

impl<S: Scheme> FastPath for Leave<WriteGuard<'_, S>> {
    type Out = Result<()>;
    type Stage = Call<Core>;

    #[inline(always)]
    fn fast(self, _: &mut Context<'_>) -> Result<Result<()>, Call<Core>> {
        let lock = self.0.lock;
        lock.leave_write(self.0.disarm()).map(|out| out.map(drop))
    }
}

impl<'a, S: Scheme> ReadGuard<'a, S> {
    #[inline]
    pub(crate) fn new(lock: &'a CountedLock<S>) -> Self {
        ReadGuard { lock }
    }

    /// Returns the lock that is held.
    pub fn lock(&self) -> &'a CountedLock<S> {
        self.lock
    }
}

impl<S: Scheme> Drop for ReadGuard<'_, S> {
    fn drop(&mut self) {
        // A call that is dropped continues in the background.
        drop(self.lock.leave_read());
    }
}

impl<'a, S: Scheme> WriteGuard<'a, S> {
    #[inline(always)]
    pub(crate) fn new(lock: &'a CountedLock<S>, held: Writing) -> Self {
        lock.core.held.store(held.0, Relaxed);
        WriteGuard { lock }
    }

    /// Returns the lock that is held.
    pub fn lock(&self) -> &'a CountedLock<S> {
        self.lock
    }

    /// Returns the hold, without releasing it when the guard is dropped.
    #[inline(always)]
    pub(crate) fn disarm(self) -> Writing {
        let held = self.lock.core.held();
        mem::forget(self);
        held
    }
}

impl<S: Scheme> Drop for WriteGuard<'_, S> {
    fn drop(&mut self) {
        drop(self.lock.leave_write(self.lock.core.held()));
    }
}

impl Core {
    /// Returns the state of the writer inside, which must be this rank's.
    #[inline(always)]
    fn held(&self) -> Writing {
        Writing(self.held.load(Relaxed))
    }
}

impl<S: Scheme> Lock for CountedLock<S> {
    type Options = ();

    const NAME: &'static str = S::RULES.name;
    const FAIRNESS: Fairness = S::RULES.fairness;
    const HOME_WORDS: usize = S::RULES.home_words;

    fn bytes((): &(), _: usize) -> usize {
        LOCK_BYTES
    }

    fn over(fabric: &Fabric, memory: GroupMemory, home: Rank, (): ()) -> Result<Self> {
        Self::with(fabric, memory, home, EpochLink::default())
    }

    fn home(&self) -> Rank {
        self.core.home
    }

    fn fabric(&self) -> &Fabric {
        &self.core.fabric
    }
}

impl<S: Scheme> Guard for ReadGuard<'_, S> {
    #[inline]
    fn release(self) -> impl Future<Output = Result<()>> {
        // If it is dropped unpolled, the future drops the guard.
        fast_path(Leave(self), |call| wrapped(call, drop))
    }
}

impl<S: Scheme> Guard for WriteGuard<'_, S> {
    #[inline]
    fn release(self) -> impl Future<Output = Result<()>> {
        fast_path(Leave(self), |call| wrapped(call, drop))
    }
}

/// Only a recoverable lock publishes which ranks are inside, and its holds are never anonymous.
impl<S: Scheme> AnonymousShared for CountedLock<S> {
    fn hold(&self, deadline: Time, _: OfThisCrate) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            mem::forget(self.read_before(deadline).await?);
            Ok(())
        })
    }

    fn try_hold(&self, _: OfThisCrate) -> Boxed<'_, Result<bool>> {
        Box::pin(async move { Ok(self.try_read().await?.map(mem::forget).is_some()) })
    }

    fn end_hold(&self, _: OfThisCrate) -> Boxed<'_, Result<()>> {
        Box::pin(ReadGuard::new(self).release())
    }
}

impl<S: Scheme> KeptExclusive for CountedLock<S> {
    fn keep(&self, deadline: Time, _: OfThisCrate) -> Boxed<'_, Result<u64>> {
        Box::pin(async move { Ok(self.write_before(deadline).await?.disarm().0) })
    }

    fn try_keep(&self, _: OfThisCrate) -> Boxed<'_, Result<Option<u64>>> {
        Box::pin(async move { Ok(self.try_write().await?.map(|guard| guard.disarm().0)) })
    }

    fn end_kept(&self, kept: u64, _: OfThisCrate) -> Boxed<'_, Result<()>> {
        Box::pin(WriteGuard::new(self, Writing(kept)).release())
    }
}
