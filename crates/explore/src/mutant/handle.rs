//! Handles of spoiled operations.

use rdma_fabric::{FabricError, OpHandle, Result};
use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
};

/// A handle whose result is changed on the way out.
pub struct MutantHandle<T> {
    inner: Pin<Box<dyn Future<Output = Result<T>>>>,
    done: Option<Result<T>>,
}

impl<T> fmt::Debug for MutantHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MutantHandle({})", if self.done.is_some() { "done" } else { "under way" })
    }
}

impl<T: Unpin + 'static> MutantHandle<T> {
    pub(super) fn new<I: Unpin + 'static>(inner: impl OpHandle<I>, change: impl FnOnce(I) -> T + 'static) -> Self {
        MutantHandle::after(async move { inner.await.map(change) })
    }

    pub(super) fn after(inner: impl Future<Output = Result<T>> + 'static) -> Self {
        MutantHandle { inner: Box::pin(inner), done: None }
    }
}

impl<T: Unpin> Future for MutantHandle<T> {
    type Output = Result<T>;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        match self.done.take() {
            Some(result) => Poll::Ready(result),
            None => self.inner.as_mut().poll(cx),
        }
    }
}

impl<T: Unpin + 'static> OpHandle<T> for MutantHandle<T> {
    fn test(&mut self) -> bool {
        if self.done.is_none()
            && let Poll::Ready(result) = self.inner.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        {
            self.done = Some(result);
        }
        self.done.is_some()
    }
    fn wait(mut self) -> Result<T> {
        self.test();
        self.done.unwrap_or(Err(FabricError::Unsupported { feature: "blocking wait" }))
    }
}
