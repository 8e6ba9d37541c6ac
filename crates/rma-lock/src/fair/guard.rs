//! Proof of holding a fair lock.

use super::{
    Class, Core, FairLock,
    in_place::{Leave, NotOut},
};
use crate::{Guard, Mode, Result, owed::Owed, queue::NodeId, shortcut::shortcut};
use core::{fmt, future::Future, marker::PhantomData, mem};

/// What a holder must remember.
#[derive(Clone, Copy)]
pub(super) struct Held {
    pub(super) node: NodeId,
    pub(super) class: Class,
    /// Whether somebody woke it.
    pub(super) woken: bool,
}

/// [`crate::Shared`] or [`crate::Exclusive`] access, by a [`FairLock`].
///
/// Dropping it releases the lock in the background, as [`FairGuard::release`] does, and tells nobody about errors.
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
    pub(super) fn new(lock: &'a FairLock, held: Held, mode: PhantomData<M>) -> Self {
        FairGuard { lock, held, mode }
    }

    /// The lock that is held.
    pub fn lock(&self) -> &'a FairLock {
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
        shortcut(Leave(self), |(guard, exit)| Box::pin(guard.leave_later(exit)))
    }

    /// From `exit` on. Dropped before G1 is posted, the guard does it all in the background.
    async fn leave_later(self, exit: NotOut) -> Result<()> {
        let core = &self.lock.core;
        let flushed = if exit.is_none() { core.flush_data().await } else { Ok(()) };
        let held = self.held;
        mem::forget(self);
        Owed::new(core, |core, _| async move { core.answer(core.release(held, exit).await) }).await?;
        flushed
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
        let Err(exit) = self.lock.core.leave(self.held) else { return };
        let (core, held) = (self.lock.core.clone(), self.held);
        self.lock.core.fabric.detach(async move {
            if exit.is_none() {
                let _ = core.flush_data().await;
            }
            let _ = core.answer(core.release(held, exit).await);
        });
    }
}

impl<M: Mode> Guard for FairGuard<'_, M> {
    fn release(self) -> impl Future<Output = Result<()>> {
        FairGuard::release(self)
    }
}
