//! What a future of the lock still owes when it is dropped.
//!
//! An operation that was posted takes effect, whether or not anybody awaits it, and a node in a queue will be woken. So nothing is
//! undone on dropping: what is under way is [detached](Fabric::detach), learns its results, and ends where it owes nothing.

use super::{Core, RpLock};
use crate::{LockError, Result};
use core::{
    future::Future,
    marker::PhantomData,
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    task::{Context, Poll},
};
use rdma_fabric::Fabric;
use std::sync::Arc;

/// What is to be done if the result of an atomic is not taken. A type and not a value, to take no room.
pub(super) trait Dropped {
    /// Detach it.
    fn dropped<F: Fabric>(core: &Arc<Core<F>>, posted: F::Handle<u64>);
}

/// An atomic that was posted and must be followed by others; yields the value before.
pub(super) struct InFlight<'a, F: Fabric, D: Dropped> {
    lock: &'a RpLock<F>,
    /// `None` when the result has been taken.
    handle: Option<F::Handle<u64>>,
    dropped: PhantomData<fn() -> D>,
}

impl<'a, F: Fabric, D: Dropped> InFlight<'a, F, D> {
    #[inline(always)]
    pub(super) fn new(lock: &'a RpLock<F>, handle: F::Handle<u64>) -> Self {
        InFlight { lock, handle: Some(handle), dropped: PhantomData }
    }

    #[inline(always)]
    pub(super) fn lock(&self) -> &'a RpLock<F> {
        self.lock
    }
}

impl<F: Fabric, D: Dropped> Future for InFlight<'_, F, D> {
    type Output = Result<u64>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<u64>> {
        let handle = self.handle.as_mut().expect("polled after the end");
        let Poll::Ready(result) = Pin::new(handle).poll(cx) else { return Poll::Pending };
        self.handle = None;
        Poll::Ready(match result {
            Ok(old) => Ok(old),
            Err(error) => Err(self.lock.core.broke_by(error)),
        })
    }
}

impl<F: Fabric, D: Dropped> Drop for InFlight<'_, F, D> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            D::dropped(&self.lock.core, handle);
        }
    }
}

/// Tells a part of the protocol that nobody awaits it any more.
#[derive(Clone, Debug, Default)]
pub(super) struct Quit(Arc<AtomicBool>);

impl Quit {
    /// Set and seen by one thread at a time: the one that drops and detaches.
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// What a call is told that nobody hears.
    pub(super) const REASON: LockError = LockError::TimedOut;
}

/// A part of the protocol that owns all it needs. Awaited, it goes as if it were not here; dropped, it is told to quit, and
/// detached.
pub(super) struct Owed<'a, F: Fabric, Rest: Future + 'static> {
    core: &'a Arc<Core<F>>,
    quit: Quit,
    /// `None` when it is over.
    rest: Option<Pin<Box<Rest>>>,
}

impl<'a, F: Fabric, Rest: Future + 'static> Owed<'a, F, Rest> {
    #[cold]
    pub(super) fn new(core: &'a Arc<Core<F>>, rest: impl FnOnce(Arc<Core<F>>, Quit) -> Rest) -> Self {
        let quit = Quit::default();
        Owed { core, rest: Some(Box::pin(rest(core.clone(), quit.clone()))), quit }
    }
}

impl<F: Fabric, Rest: Future + 'static> Future for Owed<'_, F, Rest> {
    type Output = Rest::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Rest::Output> {
        let rest = self.rest.as_mut().expect("polled after the end");
        let Poll::Ready(out) = rest.as_mut().poll(cx) else { return Poll::Pending };
        self.rest = None;
        Poll::Ready(out)
    }
}

impl<F: Fabric, Rest: Future + 'static> Drop for Owed<'_, F, Rest> {
    fn drop(&mut self) {
        if let Some(rest) = self.rest.take() {
            self.quit.0.store(true, Relaxed);
            self.core.fabric.detach(async move { drop(rest.await) });
        }
    }
}
