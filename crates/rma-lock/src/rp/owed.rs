//! What a future of the lock still owes when it is dropped.
//!
//! An operation that was posted takes effect, whether or not anybody awaits it, and a node in a queue will be woken. So nothing is
//! undone on dropping: what is under way is [detached](Fabric::detach), learns its results, and ends where it owes nothing.

use super::Core;
use crate::{LockError, Result};
use core::{
    future::Future,
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    task::{Context, Poll},
};
use rdma_fabric::Fabric;
use std::sync::Arc;

/// An atomic that was posted and must be followed by others; yields the value before.
pub(super) struct InFlight<'a, F: Fabric> {
    core: &'a Arc<Core<F>>,
    /// `None` when the result has been taken.
    handle: Option<F::Handle<u64>>,
    /// Detaches what is to be done if the result is not taken.
    dropped: fn(&Arc<Core<F>>, F::Handle<u64>),
}

impl<'a, F: Fabric> InFlight<'a, F> {
    #[inline(always)]
    pub(super) fn new(
        core: &'a Arc<Core<F>>,
        handle: F::Handle<u64>,
        dropped: fn(&Arc<Core<F>>, F::Handle<u64>),
    ) -> Self {
        InFlight { core, handle: Some(handle), dropped }
    }
}

impl<F: Fabric> Future for InFlight<'_, F> {
    type Output = Result<u64>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<u64>> {
        let handle = self.handle.as_mut().expect("polled after the end");
        let Poll::Ready(result) = Pin::new(handle).poll(cx) else { return Poll::Pending };
        self.handle = None;
        Poll::Ready(result.map_err(|error| self.core.broke(error.into())))
    }
}

impl<F: Fabric> Drop for InFlight<'_, F> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            (self.dropped)(self.core, handle);
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
