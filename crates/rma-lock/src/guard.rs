//! Proof of holding a lock.

use crate::{
    CountedLock, Flat, Result, Scheme,
    counted::{Writing, reader, writer},
    shortcut::shortcut,
};
use core::{future::Future, mem};

/// Shared access: no writer is inside. Returned by [`CountedLock::read`].
///
/// Dropping it releases the lock in the background, as [`ReadGuard::release`] does, and tells nobody about errors.
#[must_use = "a guard that is dropped at once protects nothing"]
#[derive(Debug)]
pub struct ReadGuard<'a, S: Scheme = Flat> {
    lock: &'a CountedLock<S>,
}

/// Exclusive access: nobody else is inside. Returned by [`CountedLock::write`].
///
/// Dropping it releases the lock in the background, as [`WriteGuard::release`] does, and tells nobody about errors.
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

    /// The lock that is held.
    pub fn lock(&self) -> &'a CountedLock<S> {
        self.lock
    }

    /// Make every put of this rank visible, then let go of the lock. If the future is dropped half-way, the rest is done in the
    /// background.
    ///
    /// # Errors
    /// [`crate::LockError::Fabric`]: what a put met at its target, with the lock released all the same; or what the release itself
    /// met, after which further calls on this lock answer [`crate::LockError::Broken`].
    #[inline]
    pub fn release(self) -> impl Future<Output = Result<()>> {
        // Dropped unpolled, the future drops the guard.
        shortcut(reader::Leave(self), S::release_read_later)
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

    /// The lock that is held.
    pub fn lock(&self) -> &'a CountedLock<S> {
        self.lock
    }

    /// As [`ReadGuard::release`].
    ///
    /// # Errors
    /// As [`ReadGuard::release`].
    #[inline]
    pub fn release(self) -> impl Future<Output = Result<()>> {
        shortcut(writer::Leave(self), |(guard, exit)| S::release_write_later(guard, exit))
    }

    pub(crate) fn held(&self) -> Writing {
        self.held
    }

    /// What is held; the guard does nothing more.
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
