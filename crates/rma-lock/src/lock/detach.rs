//! Futures that are detached when they are dropped, because other ranks depend on their completion.
//!
//! An operation that was posted takes effect even if its future was dropped, and a node in a queue
//! will be woken. So dropping a future undoes nothing: operations in flight are
//! [detached](Fabric::detach), their results are processed in the background, and the work ends
//! once no other rank depends on it.

use crate::{LockError, Result, error::Stopped};
use core::{
    future::Future,
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    task::{Context, Poll},
};
use rdma_fabric::{Fabric, Time};
use std::sync::{Arc, OnceLock};

/// The part of a lock at one rank.
pub(crate) trait HasFabric {
    fn fabric(&self) -> &Fabric;
}

/// Notifies a part of a protocol that its future has been dropped.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancelled(Arc<AtomicBool>);

impl Cancelled {
    /// Returns whether the future was dropped. Only one thread at a time sets and reads this: the
    /// one that drops and detaches.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// The result of a call whose future was dropped.
    pub(crate) const REASON: LockError = LockError::TimedOut;
}

/// A part of a protocol that owns everything it needs. Awaiting it changes nothing; dropping it
/// cancels that part and detaches it.
pub(crate) struct DetachOnDrop<'a, S: HasFabric, Rest: Future + 'static> {
    side: &'a Arc<S>,
    cancelled: Cancelled,
    /// `None` after it has completed.
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

/// Records a failure between two steps of a protocol: the state of the lock's words is then
/// unknown, and later calls of this rank report that.
#[derive(Debug, Default)]
pub(crate) struct Broken(OnceLock<Box<LockError>>);

impl Broken {
    pub(crate) fn cause(&self) -> Option<&LockError> {
        self.0.get().map(|cause| &**cause)
    }

    /// Returns whether this rank's earlier calls have left the words in a known state.
    #[inline(always)]
    pub(crate) fn is_whole(&self) -> bool {
        self.0.get().is_none()
    }

    /// Refuses an acquisition after a failure.
    #[inline(always)]
    pub(crate) fn check(&self) -> Result<()> {
        match self.0.get() {
            None => Ok(()),
            Some(cause) => Err(LockError::Broken(cause.clone())),
        }
    }

    /// Records `error`, which occurred between two steps.
    #[cold]
    pub(crate) fn by(&self, error: LockError) -> LockError {
        self.0.get_or_init(|| Box::new(error.clone()));
        error
    }

    /// Converts the outcome of a call to its result.
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
