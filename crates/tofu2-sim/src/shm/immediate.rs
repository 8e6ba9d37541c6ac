//! Operations that are over when they are first polled.

use core::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

/// Runs a closure when first polled.
///
/// Not an `async` block: the compiler may leave the poll of one out of line, and then the result, which is as large as the
/// largest error, goes through memory. That costs more than a short operation itself.
#[must_use = "futures do nothing unless they are polled"]
pub(super) struct Immediate<Run>(Option<Run>);

impl<Run> Immediate<Run> {
    #[inline(always)]
    pub(super) fn new<Out>(run: Run) -> Self
    where
        Run: FnOnce() -> Out,
    {
        Immediate(Some(run))
    }
}

// Nothing in it is pinned.
impl<Run> Unpin for Immediate<Run> {}

impl<Out, Run: FnOnce() -> Out> Future for Immediate<Run> {
    type Output = Out;

    /// # Panics
    /// If it was ready before.
    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Out> {
        let run = self.0.take().expect("a future is not polled after its end");
        Poll::Ready(run())
    }
}
