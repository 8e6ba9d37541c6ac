//! Proof of holding a counted lock, and its implementation of the traits of all locks.

use super::{CountedLock, Flat, Scheme, reader::ReleaseRead, writer::Writing, writer_exit::ReleaseWrite};
use crate::{
    Fairness, Guard, Lock, Result, RmaLock,
    in_place::in_place,
    lock::{AnonymousShared, KeptExclusive, OfThisCrate, guard_by_itself, lock_by_itself},
    queue::LOCK_BYTES,
};
use core::{future::Future, mem};
use rdma_fabric::{Fabric, GroupMemory, Rank, Time, provider::Boxed};

/// Shared access: no writer is inside. Returned by [`CountedLock::read`].
///
/// Dropping it releases the lock in the background, as [`ReadGuard::release`] does, and reports no
/// errors.
#[must_use = "a guard that is dropped at once protects nothing"]
#[derive(Debug)]
pub struct ReadGuard<'a, S: Scheme = Flat> {
    lock: &'a CountedLock<S>,
}

/// Exclusive access: nobody else is inside. Returned by [`CountedLock::write`].
///
/// Dropping it releases the lock in the background, as [`WriteGuard::release`] does, and reports no
/// errors.
#[must_use = "a guard that is dropped at once protects nothing"]
#[derive(Debug)]
pub struct WriteGuard<'a, S: Scheme = Flat> {
    lock: &'a CountedLock<S>,
    held: Writing,
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

    /// Makes every put of this rank visible, then releases the lock. If the future is dropped
    /// half-way, the rest is done in the background.
    ///
    /// # Errors
    /// [`crate::LockError::Fabric`]: what a put met at its target, in which case the lock is still
    /// released; or what the release itself met, after which further calls on this lock return
    /// [`crate::LockError::Broken`].
    #[inline]
    pub fn release(self) -> impl Future<Output = Result<()>> {
        // If it is dropped unpolled, the future drops the guard.
        in_place(ReleaseRead(self), S::release_read_later)
    }
}

impl<'a, S: Scheme> ReadGuard<'a, S> {
    /// Leaves the hold to the rank that [takes it over](ReadGuard::take_over). The readers that a
    /// rank publishes include a hold only while somebody has its guard.
    pub(super) fn pass_on(self) {
        self.lock.core.pass_reader_on();
        mem::forget(self);
    }

    /// Takes over a hold that any rank has [passed on](ReadGuard::pass_on).
    pub(super) fn take_over(lock: &'a CountedLock<S>) -> Self {
        lock.core.take_reader_over();
        ReadGuard { lock }
    }
}

impl<S: Scheme> Drop for ReadGuard<'_, S> {
    fn drop(&mut self) {
        self.lock.release_read_unawaited();
    }
}

impl<'a, S: Scheme> WriteGuard<'a, S> {
    #[inline]
    pub(crate) fn new(lock: &'a CountedLock<S>, held: Writing) -> Self {
        WriteGuard { lock, held }
    }

    /// Returns the lock that is held.
    pub fn lock(&self) -> &'a CountedLock<S> {
        self.lock
    }

    /// Makes every put of this rank visible, then releases the lock. If the future is dropped
    /// half-way, the rest is done in the background.
    ///
    /// # Errors
    /// As [`ReadGuard::release`].
    #[inline]
    pub fn release(self) -> impl Future<Output = Result<()>> {
        in_place(ReleaseWrite(self), |(guard, exit)| S::release_write_later(guard, exit))
    }

    pub(crate) fn held(&self) -> Writing {
        self.held
    }

    /// Returns the hold, which the guard then no longer releases.
    pub(crate) fn disarm(self) -> Writing {
        let held = self.held;
        mem::forget(self);
        held
    }
}

impl<S: Scheme> Drop for WriteGuard<'_, S> {
    fn drop(&mut self) {
        self.lock.release_write_unawaited(self.held);
    }
}

impl<S: Scheme> Lock for CountedLock<S> {
    type Options = ();

    const NAME: &'static str = S::NAME;
    const FAIRNESS: Fairness = S::FAIRNESS;
    const HOME_WORDS: usize = S::HOME_WORDS;

    fn bytes((): &(), _: usize) -> usize {
        LOCK_BYTES
    }

    fn over(fabric: &Fabric, memory: GroupMemory, home: Rank, (): ()) -> Result<Self> {
        CountedLock::over(fabric, memory, home)
    }

    fn home(&self) -> Rank {
        CountedLock::home(self)
    }

    fn fabric(&self) -> &Fabric {
        CountedLock::fabric(self)
    }
}

lock_by_itself!([S: Scheme] CountedLock<S>, ReadGuard<'a, S>, WriteGuard<'a, S>);
guard_by_itself!([S: Scheme] ReadGuard<'_, S>);
guard_by_itself!([S: Scheme] WriteGuard<'_, S>);

impl<S: Scheme> AnonymousShared for CountedLock<S> {
    fn hold(&self, deadline: Time, _: OfThisCrate) -> Boxed<'_, Result<()>> {
        S::hold(self, deadline)
    }

    fn try_hold(&self, _: OfThisCrate) -> Boxed<'_, Result<bool>> {
        S::try_hold(self)
    }

    fn end_hold(&self, _: OfThisCrate) -> Boxed<'_, Result<()>> {
        S::end_hold(self)
    }
}

impl<S: Scheme> KeptExclusive for CountedLock<S> {
    fn keep(&self, deadline: Time, _: OfThisCrate) -> Boxed<'_, Result<u64>> {
        S::keep(self, deadline)
    }

    fn try_keep(&self, _: OfThisCrate) -> Boxed<'_, Result<Option<u64>>> {
        S::try_keep(self)
    }

    fn end_kept(&self, kept: u64, _: OfThisCrate) -> Boxed<'_, Result<()>> {
        S::end_kept(self, kept)
    }
}
