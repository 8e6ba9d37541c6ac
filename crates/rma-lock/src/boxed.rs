//! Futures that are boxed only if they do not complete immediately.

use crate::{
    Result,
    fast_path::{FastPath, fast_path},
};
use core::{
    future::Future,
    marker::PhantomData,
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

/// A fast path that polls one of several futures, and boxes it if it does not complete
/// immediately.
pub(crate) struct PollOnce<First, Out>(First, PhantomData<fn() -> Out>);

impl<'a, Out, First> FastPath for PollOnce<First, Out>
where
    First: FnOnce(&mut Context<'_>) -> Result<Out, Boxed<'a, Out>>,
    Out: 'a,
{
    type Out = Out;
    type Stage = Boxed<'a, Out>;

    #[inline(always)]
    fn fast(self, cx: &mut Context<'_>) -> Result<Out, Boxed<'a, Out>> {
        self.0(cx)
    }
}

/// Tries `first`, which calls [`poll_or_box`] on one of several futures, and awaits the box that it
/// returns.
#[inline(always)]
pub(crate) fn poll_once<'a, Out, First>(first: First) -> impl Future<Output = Out> + Unpin
where
    First: FnOnce(&mut Context<'_>) -> Result<Out, Boxed<'a, Out>>,
    Out: 'a,
{
    fast_path(PollOnce(first, PhantomData), |rest| rest)
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

/// A value that is already available, or a boxed future of it.
pub(crate) enum MaybeReady<'a, T> {
    /// `None` after it has been taken.
    Ready(Option<T>),
    Boxed(Boxed<'a, T>),
}

impl<'a, T> MaybeReady<'a, T> {
    #[inline]
    pub(crate) fn ready(value: T) -> Self {
        MaybeReady::Ready(Some(value))
    }

    #[cold]
    pub(crate) fn boxed(future: impl Future<Output = T> + Send + 'a) -> Self {
        MaybeReady::Boxed(Box::pin(future))
    }
}

impl<T> Unpin for MaybeReady<'_, T> {}

impl<T> Future for MaybeReady<'_, T> {
    type Output = T;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        match &mut *self {
            MaybeReady::Ready(value) => Poll::Ready(value.take().expect("polled after the end")),
            MaybeReady::Boxed(future) => future.as_mut().poll(cx),
        }
    }
}
