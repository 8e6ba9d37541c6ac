//! What a future of a lock still owes when it is dropped.
//!
//! An operation that was posted takes effect, whether or not anybody awaits it, and a node in a queue will be woken. So nothing is
//! undone on dropping: what is under way is [detached](Fabric::detach), learns its results, and ends where it owes nothing.

use crate::LockError;
use core::{
    future::Future,
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    task::{Context, Poll},
};
use rdma_fabric::Fabric;
use std::sync::Arc;

/// A rank's side of a lock.
pub(crate) trait Side {
    fn fabric(&self) -> &Fabric;
}

/// Tells a part of the protocol that nobody awaits it any more.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quit(Arc<AtomicBool>);

impl Quit {
    /// Set and seen by one thread at a time: the one that drops and detaches.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// What a call is told that nobody hears.
    pub(crate) const REASON: LockError = LockError::TimedOut;
}

/// A part of the protocol that owns all it needs. Awaited, it goes as if it were not here; dropped, it is told to quit, and
/// detached.
pub(crate) struct Owed<'a, S: Side, Rest: Future + 'static> {
    side: &'a Arc<S>,
    quit: Quit,
    /// `None` when it is over.
    rest: Option<Pin<Box<Rest>>>,
}

impl<'a, S: Side, Rest: Future + 'static> Owed<'a, S, Rest> {
    #[cold]
    pub(crate) fn new(side: &'a Arc<S>, rest: impl FnOnce(Arc<S>, Quit) -> Rest) -> Self {
        let quit = Quit::default();
        Owed { side, rest: Some(Box::pin(rest(side.clone(), quit.clone()))), quit }
    }
}

impl<S: Side, Rest: Future + 'static> Future for Owed<'_, S, Rest> {
    type Output = Rest::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Rest::Output> {
        let rest = self.rest.as_mut().expect("polled after the end");
        let Poll::Ready(out) = rest.as_mut().poll(cx) else { return Poll::Pending };
        self.rest = None;
        Poll::Ready(out)
    }
}

impl<S: Side, Rest: Future + 'static> Drop for Owed<'_, S, Rest> {
    fn drop(&mut self) {
        if let Some(rest) = self.rest.take() {
            self.quit.0.store(true, Relaxed);
            self.side.fabric().detach(async move { drop(rest.await) });
        }
    }
}
