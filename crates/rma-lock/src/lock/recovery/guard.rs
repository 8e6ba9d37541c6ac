//! Proof of holding a recoverable lock.

use super::{Core, OwnedReadGuard, OwnedWriteGuard, Recoverable, Torn};
use crate::{
    Guard, Result,
    lock::counted::{ReadGuard, WriteGuard},
};
use core::future::Future;
use rdma_fabric::provider::Boxed;
use std::{sync::Arc, thread};

/// Shared access: no writer is inside. Returned by [`super::RecoverableLock::read`].
///
/// Dropping it releases the lock in the background, as [`Guard::release`] does, without reporting
/// errors.
#[must_use = "a guard that is dropped at once protects nothing"]
#[derive(Debug)]
pub struct RecoverableReadGuard<'a> {
    inside: ReadGuard<'a, Recoverable>,
}

/// Exclusive access: there is no other holder. Returned by [`super::RecoverableLock::write`] and
/// [`super::RecoverableLock::mend`].
///
/// Dropping it releases the lock in the background, as [`Guard::release`] does, without reporting
/// errors. If a panic drops it, the protected data counts as torn.
#[must_use = "a guard that is dropped at once protects nothing"]
#[derive(Debug)]
pub struct RecoverableWriteGuard<'a> {
    core: &'a Arc<Core>,
    /// `None` only during a release.
    inside: Option<WriteGuard<'a, Recoverable>>,
    torn: Option<Torn>,
}

impl<'a> RecoverableReadGuard<'a> {
    pub(super) fn new(inside: ReadGuard<'a, Recoverable>) -> Self {
        RecoverableReadGuard { inside }
    }

    /// Converts this guard to a hold that does not borrow the lock.
    pub fn into_owned(self) -> OwnedReadGuard {
        OwnedReadGuard::new(self.inside)
    }
}

impl<'a> RecoverableWriteGuard<'a> {
    pub(super) fn new(core: &'a Arc<Core>, inside: WriteGuard<'a, Recoverable>, torn: Option<Torn>) -> Self {
        RecoverableWriteGuard { core, inside: Some(inside), torn }
    }

    /// Returns whether the protected data may be half-written; `Some` only if
    /// [`super::RecoverableLock::mend`] returned this guard.
    pub fn torn(&self) -> Option<Torn> {
        self.torn
    }

    /// Declares that the protected data is consistent again, so that acquisitions succeed as
    /// before. This takes effect immediately, regardless of how the guard is released later.
    ///
    /// # Errors
    /// [`crate::LockError::Fabric`].
    pub fn clear_torn(&mut self) -> impl Future<Output = Result<()>> {
        self.make_whole()
    }

    fn make_whole(&mut self) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            if let (Some(_), Some(inside)) = (self.torn, &self.inside) {
                self.core.make_whole(inside.lock()).await?;
                self.torn = None;
            }
            Ok(())
        })
    }

    /// Converts this guard to a hold that does not borrow the lock.
    pub fn into_owned(mut self) -> OwnedWriteGuard {
        OwnedWriteGuard::new(self.core, self.inside.take().expect("only a release takes it"), self.torn)
    }
}

impl Drop for RecoverableWriteGuard<'_> {
    fn drop(&mut self) {
        if let Some(inside) = self.inside.take()
            && thread::panicking()
        {
            // Marked as torn before the lock is passed on.
            inside.release_torn(self.core.clone());
        }
    }
}

impl Guard for RecoverableReadGuard<'_> {
    fn release(self) -> impl Future<Output = Result<()>> {
        self.inside.release()
    }
}

impl Guard for RecoverableWriteGuard<'_> {
    fn release(mut self) -> impl Future<Output = Result<()>> {
        self.inside.take().expect("only a release takes it").release()
    }
}
