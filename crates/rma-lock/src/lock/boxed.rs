//! Futures that are boxed only if they do not complete immediately.

use crate::Result;
use core::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};
use rdma_fabric::provider::Boxed;

/// A future whose success is converted, for example from a hold to a guard.
pub(crate) struct Wrapped<F, Wrap> {
    future: F,
    /// `None` after it has completed.
    wrap: Option<Wrap>,
}

/// Converts the success of `future` by `wrap`.
#[inline(always)]
pub(crate) fn wrapped<T, Out, F, Wrap>(future: F, wrap: Wrap) -> Wrapped<F, Wrap>
where
    F: Future<Output = Result<T>> + Unpin,
    Wrap: FnOnce(T) -> Out,
{
    Wrapped { future, wrap: Some(wrap) }
}

// The conversion is never pinned.
impl<F: Unpin, Wrap> Unpin for Wrapped<F, Wrap> {}

impl<T, Out, F, Wrap> Future for Wrapped<F, Wrap>
where
    F: Future<Output = Result<T>> + Unpin,
    Wrap: FnOnce(T) -> Out,
{
    type Output = Result<Out>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Out>> {
        let Poll::Ready(outcome) = Pin::new(&mut self.future).poll(cx) else { return Poll::Pending };
        let wrap = self.wrap.take().expect("polled after the end");
        Poll::Ready(outcome.map(wrap))
    }
}

/// Polls `future`, and boxes it if it is still pending.
#[inline(always)]
pub(crate) fn poll_or_box<'a, F>(mut future: F, cx: &mut Context<'_>) -> Result<F::Output, Boxed<'a, F::Output>>
where
    F: Future + Unpin + Send + 'a,
{
    match Pin::new(&mut future).poll(cx) {
        Poll::Ready(out) => Ok(out),
        Poll::Pending => Err(boxed(future)),
    }
}

/// Boxes a future that does not complete immediately.
#[cold]
#[inline(never)]
pub(crate) fn boxed<'a, F: Future + Send + 'a>(future: F) -> Boxed<'a, F::Output> {
    Box::pin(future)
}
