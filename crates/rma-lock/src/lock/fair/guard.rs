//! Proof of holding a fair lock.

use super::{Class, Core, FairLock, fast};
use crate::{
    Guard, Result,
    lock::{
        boxed::wrapped,
        queue::{Call, Held, NodeId},
    },
    locks::Mode,
};
use core::{fmt, future::Future, marker::PhantomData, mem, task::Context};
use rdma_fabric::fast_path::{FastPath, fast_path};

/// The state of a holder.
#[derive(Clone, Copy)]
pub(super) struct Holding {
    pub(super) node: NodeId,
    /// Whether another rank woke the holder.
    pub(super) woken: bool,
}

impl From<Held> for Holding {
    fn from(held: Held) -> Self {
        Holding { node: held.node.expect("whoever is inside has a node"), woken: held.woken }
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

    /// Returns the lock that is held.
    pub fn lock(&self) -> &'a FairLock {
        self.lock
    }
}

impl<M: Mode> Drop for FairGuard<'_, M> {
    fn drop(&mut self) {
        // A call that is dropped continues in the background.
        drop(fast::leave(&self.lock.core, Class::of::<M>(), self.held));
    }
}

/// A release that has consumed its guard.
struct Leave<'a, M: Mode>(FairGuard<'a, M>);

impl<M: Mode> FastPath for Leave<'_, M> {
    type Out = Result<()>;
    type Stage = Call<Core>;

    #[inline(always)]
    fn fast(self, _: &mut Context<'_>) -> Result<Result<()>, Call<Core>> {
        let (lock, held) = (self.0.lock, self.0.held);
        mem::forget(self.0);
        fast::leave(&lock.core, Class::of::<M>(), held).map(|out| out.map(drop))
    }
}

impl<M: Mode> Guard for FairGuard<'_, M> {
    #[inline]
    fn release(self) -> impl Future<Output = Result<()>> {
        // If it is dropped unpolled, the future drops the guard.
        fast_path(Leave(self), |call| wrapped(call, drop))
    }
}
