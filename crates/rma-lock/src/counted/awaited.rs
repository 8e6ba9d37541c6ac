//! A reader's one atomic, awaited in place, and what continues in the background when nobody awaits
//! it.

use super::{Core, CountedLock, Scheme, reader::UNCOUNT_ME};
use crate::{Result, queue::Transition};
use core::{
    future::Future,
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll},
};
use rdma_fabric::Handle;
use std::sync::Arc;

/// What must be done if the result of an atomic is never taken. A type instead of a value, so that
/// it takes no space.
pub(super) trait Dropped {
    /// Detaches that work.
    fn dropped<S: Scheme>(core: &Arc<Core<S>>, posted: Handle<u64>);
}

/// A posted atomic that must be followed by others; its output is the previous value.
pub(super) struct AwaitedAtomic<'a, S: Scheme, D: Dropped> {
    lock: &'a CountedLock<S>,
    /// `None` when the result has been taken.
    handle: Option<Handle<u64>>,
    dropped: PhantomData<fn() -> D>,
}

impl<'a, S: Scheme, D: Dropped> AwaitedAtomic<'a, S, D> {
    #[inline(always)]
    pub(super) fn new(lock: &'a CountedLock<S>, handle: Handle<u64>) -> Self {
        AwaitedAtomic { lock, handle: Some(handle), dropped: PhantomData }
    }

    #[inline(always)]
    pub(super) fn lock(&self) -> &'a CountedLock<S> {
        self.lock
    }
}

impl<S: Scheme, D: Dropped> Future for AwaitedAtomic<'_, S, D> {
    type Output = Result<u64>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<u64>> {
        let handle = self.handle.as_mut().expect("polled after the end");
        let Poll::Ready(result) = Pin::new(handle).poll(cx) else { return Poll::Pending };
        self.handle = None;
        Poll::Ready(match result {
            Ok(old) => Ok(old),
            Err(error) => Err(self.lock.core.broken.by_fabric(error)),
        })
    }
}

impl<S: Scheme, D: Dropped> Drop for AwaitedAtomic<'_, S, D> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            D::dropped(&self.lock.core, handle);
        }
    }
}

impl<S: Scheme> Core<S> {
    pub(super) fn detach_release(self: &Arc<Self>) {
        let core = self.clone();
        self.fabric.detach(async move {
            let _ = core.flush_data().await;
            let posted = match core.post(Transition::READER_LEAVES, &core.count, UNCOUNT_ME).await {
                Ok(posted) => posted,
                Err(error) => return drop(core.broken.by(error.into())),
            };
            let _ = core.broken.answer(core.uncounted(posted).await);
        });
    }

    pub(super) fn detach_wake(self: &Arc<Self>, old: u64) {
        let core = self.clone();
        self.fabric.detach(async move { drop(core.broken.answer(core.after_uncounting(old).await)) });
    }

    pub(super) fn detach_withdrawal(self: &Arc<Self>, posted: Handle<u64>) {
        let core = self.clone();
        self.fabric.detach(async move {
            let counted = async {
                posted.await?;
                core.withdraw_reader().await
            };
            let _ = core.broken.answer(counted.await);
        });
    }

    pub(super) fn detach_departure(self: &Arc<Self>, posted: Handle<u64>) {
        let core = self.clone();
        self.fabric.detach(async move { drop(core.broken.answer(core.uncounted(posted).await)) });
    }
}

/// R1 was posted by a future that was dropped: the reader uncounts itself again.
pub(super) struct Arrival;

impl Dropped for Arrival {
    #[cold]
    fn dropped<S: Scheme>(core: &Arc<Core<S>>, posted: Handle<u64>) {
        S::withdraw_unawaited(core, posted);
    }
}

/// U1 was posted by a future that was dropped: the rest of the release is done.
pub(super) struct Departure;

impl Dropped for Departure {
    #[cold]
    fn dropped<S: Scheme>(core: &Arc<Core<S>>, posted: Handle<u64>) {
        S::leave_unawaited(core, posted);
    }
}
