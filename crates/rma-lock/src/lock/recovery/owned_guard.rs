//! Holds of a recoverable lock without a borrow, for callers that cannot keep a borrow: a library
//! for other languages, whose handles outlive any scope.

use super::{Core, EpochLock, Recoverable, RecoverableReadGuard, RecoverableWriteGuard, Torn};
use crate::{
    Guard, Result,
    lock::counted::{ReadGuard, WriteGuard},
};
use core::{fmt, future::Future};
use rdma_fabric::provider::Boxed;
use std::sync::Arc;

/// Shared access without a borrow of the lock: [`RecoverableReadGuard::into_owned`].
///
/// Dropping it releases the lock as dropping the guard does.
#[must_use = "a hold that is dropped at once protects nothing"]
#[derive(Debug)]
pub struct OwnedReadGuard {
    /// `None` only during a release.
    lock: Option<EpochLock>,
}

/// Exclusive access without a borrow of the lock: [`RecoverableWriteGuard::into_owned`].
///
/// Dropping it releases the lock as dropping the guard does: a panic leaves the protected data
/// torn.
#[must_use = "a hold that is dropped at once protects nothing"]
pub struct OwnedWriteGuard {
    core: Arc<Core>,
    /// `None` only during a release.
    inside: Option<(EpochLock, GuardAgain)>,
    torn: Option<Torn>,
}

/// Recreates the kept guard, once.
type GuardAgain = Box<dyn for<'a> Fn(&'a EpochLock) -> WriteGuard<'a, Recoverable> + Send + Sync>;

impl fmt::Debug for OwnedWriteGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedWriteGuard").field("torn", &self.torn).finish_non_exhaustive()
    }
}

impl OwnedReadGuard {
    pub(super) fn new(guard: ReadGuard<'_, Recoverable>) -> Self {
        let lock = guard.lock().clone();
        // The guard is recreated from the lock.
        core::mem::forget(guard);
        OwnedReadGuard { lock: Some(lock) }
    }

    /// Makes every put of this rank visible, then releases the lock.
    ///
    /// # Errors
    /// As [`RecoverableReadGuard::release`].
    pub fn release(mut self) -> impl Future<Output = Result<()>> {
        let lock = self.lock.take().expect("only a release takes it");
        async move { RecoverableReadGuard::new(ReadGuard::new(&lock)).release().await }
    }
}

impl Drop for OwnedReadGuard {
    fn drop(&mut self) {
        if let Some(lock) = self.lock.take() {
            drop(ReadGuard::new(&lock));
        }
    }
}

impl OwnedWriteGuard {
    pub(super) fn new(core: &Arc<Core>, guard: WriteGuard<'_, Recoverable>, torn: Option<Torn>) -> Self {
        let lock = guard.lock().clone();
        let held = guard.disarm();
        let again: GuardAgain = Box::new(move |lock| WriteGuard::new(lock, held));
        OwnedWriteGuard { core: core.clone(), inside: Some((lock, again)), torn }
    }

    /// Returns whether the protected data may be half-written, as [`RecoverableWriteGuard::torn`]
    /// does.
    pub fn torn(&self) -> Option<Torn> {
        self.torn
    }

    /// Declares that the protected data is consistent again.
    ///
    /// # Errors
    /// As [`RecoverableWriteGuard::clear_torn`].
    pub fn clear_torn(&mut self) -> impl Future<Output = Result<()>> {
        self.make_whole()
    }

    fn make_whole(&mut self) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            if let (Some(_), Some((lock, _))) = (self.torn, &self.inside) {
                self.core.make_whole(lock).await?;
                self.torn = None;
            }
            Ok(())
        })
    }

    /// Makes every put of this rank visible, then releases the lock.
    ///
    /// # Errors
    /// As [`RecoverableWriteGuard::release`].
    pub fn release(mut self) -> impl Future<Output = Result<()>> {
        let (lock, again) = self.inside.take().expect("only a release takes it");
        let core = self.core.clone();
        async move { RecoverableWriteGuard::new(&core, again(&lock), None).release().await }
    }
}

impl Drop for OwnedWriteGuard {
    fn drop(&mut self) {
        if let Some((lock, again)) = self.inside.take() {
            drop(RecoverableWriteGuard::new(&self.core, again(&lock), self.torn));
        }
    }
}
