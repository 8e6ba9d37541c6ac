//! Futures that are mostly over when they are first polled.

use core::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};
use rdma_fabric::provider::Boxed;

/// Tries something at its first poll; awaits the boxed rest if that was not enough.
#[must_use = "futures do nothing unless they are polled"]
pub(crate) struct Soon<'a, Try, Rest, Out> {
    /// `None` after the first poll.
    first: Option<(Try, Rest)>,
    rest: Option<Boxed<'a, Out>>,
}

/// Tries `first`; if it yields nothing, awaits what `rest` returns.
#[inline(always)]
pub(crate) fn soon<'a, Try, Rest, Out>(first: Try, rest: Rest) -> Soon<'a, Try, Rest, Out>
where
    Try: FnOnce() -> Option<Out>,
    Rest: FnOnce() -> Boxed<'a, Out>,
{
    Soon { first: Some((first, rest)), rest: None }
}

// Nothing in the future is pinned.
impl<Try, Rest, Out> Unpin for Soon<'_, Try, Rest, Out> {}

impl<'a, Try, Rest, Out> Future for Soon<'a, Try, Rest, Out>
where
    Try: FnOnce() -> Option<Out>,
    Rest: FnOnce() -> Boxed<'a, Out>,
{
    type Output = Out;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Out> {
        if let Some((first, rest)) = self.first.take() {
            if let Some(out) = first() {
                return Poll::Ready(out);
            }
            self.rest = Some(rest());
        }
        poll_rest(&mut self.rest, cx)
    }
}

#[inline(never)]
fn poll_rest<Out>(rest: &mut Option<Boxed<'_, Out>>, cx: &mut Context<'_>) -> Poll<Out> {
    rest.as_mut().expect("polled after the end").as_mut().poll(cx)
}
