//! Proof of holding a fair lock.

use super::{Class, Core, FairLock, Steps};
use crate::{
    Guard, Result,
    lock::{
        boxed::wrapped,
        queue::{Call, Held, NodeId},
    },
    locks::Mode,
};
use core::{fmt, future::Future, marker::PhantomData, mem::ManuallyDrop, task::Context};
use rdma_fabric::{
    Time,
    fast_path::{FastPath, fast_path},
};

/// The state of a holder.
#[derive(Clone, Copy)]
pub(super) struct Holding {
    pub(super) node: NodeId,
    /// Whether another rank woke the holder.
    pub(super) woken: bool,
}

impl From<Held> for Holding {
    fn from(held: Held) -> Self {
        Holding { node: held.node.expect("a holder has a node"), woken: held.woken }
    }
}

/// [`crate::locks::Shared`] or [`crate::locks::Exclusive`] access to a [`FairLock`].
///
/// Dropping it releases the lock in the background, as [`Guard::release`] does, without reporting
/// errors.
#[must_use = "a guard that is dropped at once protects nothing"]
pub struct FairGuard<'a, M: Mode> {
    lock: &'a FairLock,
    held: Holding,
    mode: PhantomData<M>,
}

impl<M: Mode> fmt::Debug for FairGuard<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let woken = if self.held.woken { ", woken" } else { "" };
        write!(f, "{}, {:?}{woken}, {:?}", M::NAME, self.held.node, self.lock)
    }
}

impl<'a, M: Mode> FairGuard<'a, M> {
    #[inline(always)]
    pub(super) fn new(lock: &'a FairLock, held: Holding) -> Self {
        FairGuard { lock, held, mode: PhantomData }
    }

    /// Releases the lock; the guard must not be used or dropped after that.
    fn leave(&self) -> Result<Result<Option<Held>>, Call<Core>> {
        let Holding { node, woken } = self.held;
        self.lock.core.walk(Steps::release(Class::of::<M>(), node, woken), Time::MAX)
    }

    /// Returns the lock that is held.
    pub fn lock(&self) -> &'a FairLock {
        self.lock
    }
}

impl<M: Mode> Drop for FairGuard<'_, M> {
    fn drop(&mut self) {
        // A call that is dropped continues in the background.
        drop(self.leave());
    }
}

/// A release that has consumed its guard.
struct Leave<'a, M: Mode>(FairGuard<'a, M>);

impl<M: Mode> FastPath for Leave<'_, M> {
    type Out = Result<()>;
    type Stage = Call<Core>;

    #[inline(always)]
    fn fast(self, _: &mut Context<'_>) -> Result<Result<()>, Call<Core>> {
        ManuallyDrop::new(self.0).leave().map(|out| out.map(drop))
    }
}

impl<M: Mode> Guard for FairGuard<'_, M> {
    #[inline]
    fn release(self) -> impl Future<Output = Result<()>> {
        // If it is dropped unpolled, the future drops the guard.
        fast_path(Leave(self), |call| wrapped(call, drop))
    }
}
