//! Futures that are detached when they are dropped, because other ranks depend on their completion.
//!
//! An operation that was posted takes effect, whether or not anybody awaits it, and a node in a
//! queue will be woken. So dropping a future undoes nothing: whatever is in flight is
//! [detached](Fabric::detach), learns its results, and ends where nobody depends on it any more.

use crate::{LockError, Result, error::Stopped};
use core::{
    future::Future,
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    task::{Context, Poll},
};
use rdma_fabric::{Fabric, Time};
use std::sync::{Arc, OnceLock};

/// A rank's side of a lock.
pub(crate) trait HasFabric {
    fn fabric(&self) -> &Fabric;
}

/// Notifies a part of a protocol that nobody awaits it any more.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancelled(Arc<AtomicBool>);

impl Cancelled {
    /// Returns whether it was cancelled. It is set and read by one thread at a time: the one that
    /// drops and detaches.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// The result of a call that nobody awaits.
    pub(crate) const REASON: LockError = LockError::TimedOut;
}

/// A part of a protocol that owns everything it needs. Awaiting it changes nothing; dropping it
/// cancels that part and detaches it.
pub(crate) struct DetachOnDrop<'a, S: HasFabric, Rest: Future + 'static> {
    side: &'a Arc<S>,
    cancelled: Cancelled,
    /// `None` when it has ended.
    rest: Option<Pin<Box<Rest>>>,
}

impl<'a, S: HasFabric, Rest: Future + 'static> DetachOnDrop<'a, S, Rest> {
    #[cold]
    pub(crate) fn new(side: &'a Arc<S>, rest: impl FnOnce(Arc<S>, Cancelled) -> Rest) -> Self {
        let cancelled = Cancelled::default();
        DetachOnDrop { side, rest: Some(Box::pin(rest(side.clone(), cancelled.clone()))), cancelled }
    }
}

impl<S: HasFabric, Rest: Future + 'static> Future for DetachOnDrop<'_, S, Rest> {
    type Output = Rest::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Rest::Output> {
        let rest = self.rest.as_mut().expect("polled after the end");
        let Poll::Ready(out) = rest.as_mut().poll(cx) else { return Poll::Pending };
        self.rest = None;
        Poll::Ready(out)
    }
}

impl<S: HasFabric, Rest: Future + 'static> Drop for DetachOnDrop<'_, S, Rest> {
    fn drop(&mut self) {
        if let Some(rest) = self.rest.take() {
            self.cancelled.0.store(true, Relaxed);
            self.side.fabric().detach(async move { drop(rest.await) });
        }
    }
}

/// Remembers a failure between two steps of a protocol: what it left in the lock's words is
/// unknown, and later calls of this rank report that.
#[derive(Debug, Default)]
pub(crate) struct Broken(OnceLock<LockError>);

impl Broken {
    pub(crate) fn cause(&self) -> Option<&LockError> {
        self.0.get()
    }

    /// Returns whether the state left by this rank's earlier calls is known.
    #[inline(always)]
    pub(crate) fn is_whole(&self) -> bool {
        self.0.get().is_none()
    }

    /// Refuses an acquisition once something has failed.
    #[inline(always)]
    pub(crate) fn check(&self) -> Result<()> {
        match self.0.get() {
            None => Ok(()),
            Some(cause) => Err(LockError::Broken(Box::new(cause.clone()))),
        }
    }

    /// Remembers `error`, which occurred between two steps.
    #[cold]
    pub(crate) fn by(&self, error: LockError) -> LockError {
        self.0.get_or_init(|| error.clone());
        error
    }

    /// Returns the result of a call.
    pub(crate) fn answer<T>(&self, outcome: Result<T, Stopped>) -> Result<T> {
        match outcome {
            Ok(out) => Ok(out),
            Err(Stopped::GaveUp(error)) => Err(error),
            Err(Stopped::Broken(error)) => Err(self.by(error)),
        }
    }
}

/// Awaits `future`, or gives up at `deadline` and returns `None`. Without a deadline
/// ([`Time::MAX`]) no timer is set.
pub(crate) async fn before<T: Future>(fabric: &Fabric, deadline: Time, future: T) -> Option<T::Output> {
    if deadline == Time::MAX { Some(future.await) } else { fabric.before(deadline, future).await }
}
