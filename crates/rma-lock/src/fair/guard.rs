//! Proof of holding a fair lock.

use super::{
    Class, Core, FairLock,
    short_path::{Leave, NotOut},
};
use crate::{
    Guard, Result, detach::DetachOnDrop, in_place::in_place, lock::guard_by_itself, locks::Mode, queue::NodeId,
};
use core::{fmt, future::Future, marker::PhantomData, mem};
use rdma_fabric::provider::Boxed;
use std::sync::Arc;

/// What a holder must remember.
#[derive(Clone, Copy)]
pub(super) struct Held {
    pub(super) node: NodeId,
    pub(super) class: Class,
    /// Whether somebody woke the holder.
    pub(super) woken: bool,
}

/// [`crate::locks::Shared`] or [`crate::locks::Exclusive`] access to a [`FairLock`].
///
/// Dropping it releases the lock in the background, as [`FairGuard::release`] does, and reports no
/// errors.
#[must_use = "a guard that is dropped at once protects nothing"]
pub struct FairGuard<'a, M: Mode> {
    lock: &'a FairLock,
    held: Held,
    mode: PhantomData<M>,
}

impl<M: Mode> fmt::Debug for FairGuard<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let woken = if self.held.woken { ", woken" } else { "" };
        write!(f, "{}, {:?}{woken}, {:?}", M::NAME, self.held.node, self.lock)
    }
}

impl<'a, M: Mode> FairGuard<'a, M> {
    pub(super) fn new(lock: &'a FairLock, held: Held) -> Self {
        FairGuard { lock, held, mode: PhantomData }
    }

    /// Returns the lock that is held.
    pub fn lock(&self) -> &'a FairLock {
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
        in_place(Leave(self), |(guard, exit)| guard.release_from(exit))
    }

    fn release_from(self, exit: NotOut) -> Boxed<'a, Result<()>> {
        let armed = Armed { core: &self.lock.core, held: self.held };
        mem::forget(self);
        release_later(armed, exit)
    }

    #[inline(always)]
    pub(super) fn core(&self) -> &'a Core {
        &self.lock.core
    }

    #[inline(always)]
    pub(super) fn held(&self) -> Held {
        self.held
    }
}

impl<M: Mode> Drop for FairGuard<'_, M> {
    fn drop(&mut self) {
        drop(Armed { core: &self.lock.core, held: self.held });
    }
}

/// A hold that is released in the background if it is dropped.
struct Armed<'a> {
    core: &'a Arc<Core>,
    held: Held,
}

impl Drop for Armed<'_> {
    fn drop(&mut self) {
        let Err(exit) = self.core.leave(self.held) else { return };
        let (core, held) = (self.core.clone(), self.held);
        self.core.fabric.detach(async move {
            if exit.is_none() {
                let _ = core.flush_data().await;
            }
            let _ = core.broken.answer(core.release(held, exit).await);
        });
    }
}

/// Releases from `exit` on. If it is dropped before G1 is posted, the hold is released in the
/// background.
fn release_later(armed: Armed<'_>, exit: NotOut) -> Boxed<'_, Result<()>> {
    Box::pin(async move {
        let (core, held) = (armed.core, armed.held);
        let flushed = if exit.is_none() { core.flush_data().await } else { Ok(()) };
        mem::forget(armed);
        DetachOnDrop::new(core, |core, _| async move { core.broken.answer(core.release(held, exit).await) }).await?;
        flushed
    })
}

guard_by_itself!([M: Mode] FairGuard<'_, M>);
