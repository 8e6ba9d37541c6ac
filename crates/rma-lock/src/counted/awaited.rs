//! The one atomic of a reader, awaited in place: what it still owes when it is dropped.

use super::{Core, CountedLock, Scheme};
use crate::Result;
use core::{
    future::Future,
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll},
};
use rdma_fabric::Handle;
use std::sync::Arc;

/// What is to be done if the result of an atomic is not taken. A type and not a value, to take no room.
pub(super) trait Dropped {
    /// Detach it.
    fn dropped<S: Scheme>(core: &Arc<Core<S>>, posted: Handle<u64>);
}

/// An atomic that was posted and must be followed by others; yields the value before.
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
            Err(error) => Err(self.lock.core.broke_by(error)),
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
