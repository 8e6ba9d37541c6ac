//! Calls that usually complete when first polled: for the protocols built on this crate, whose fast
//! paths are compiled into their callers.

use crate::provider::Boxed;
use core::{
    fmt,
    future::Future,
    mem,
    pin::Pin,
    task::{Context, Poll},
};

/// A call that usually takes effect immediately.
///
/// A trait instead of two closures, which the compiler may leave out of line: their results would
/// then go through memory.
pub trait FastPath<'a>: Sized {
    /// The result of the call.
    type Out;
    /// The error of the call.
    type Error;
    /// Executes the call; `None` if it can't be completed immediately. The progress made is
    /// recorded in `self`, and [`FastPath::slow`] continues from there. It has no errors: an error
    /// in the return type would move the result out of registers.
    fn fast(&mut self) -> Option<Self::Out>;
    /// Takes the slow path: executes the call, or the rest of it, or returns the error.
    fn slow(self) -> Boxed<'a, Result<Self::Out, Self::Error>>;
}

/// Takes the fast path at the first poll, and awaits the boxed slow path if that was not enough.
#[must_use = "futures do nothing unless they are polled"]
pub struct FastPathFuture<'a, C: FastPath<'a>>(Stage<'a, C>);

enum Stage<'a, C: FastPath<'a>> {
    /// Not polled yet.
    Fast(C),
    Slow(Boxed<'a, Result<C::Out, C::Error>>),
    Complete,
}

/// Returns the future of a call.
#[inline(always)]
pub fn fast_path<'a, C: FastPath<'a>>(call: C) -> FastPathFuture<'a, C> {
    FastPathFuture(Stage::Fast(call))
}

// Nothing in the future is pinned.
impl<'a, C: FastPath<'a>> Unpin for FastPathFuture<'a, C> {}

impl<'a, C: FastPath<'a>> fmt::Debug for FastPathFuture<'a, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Stage::Fast(_) => "a call that was not polled",
            Stage::Slow(_) => "a call on its slow path",
            Stage::Complete => "a completed call",
        })
    }
}

impl<'a, C: FastPath<'a>> Future for FastPathFuture<'a, C> {
    type Output = Result<C::Out, C::Error>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<C::Out, C::Error>> {
        let slow = match mem::replace(&mut self.0, Stage::Complete) {
            Stage::Fast(mut call) => match call.fast() {
                Some(out) => return Poll::Ready(Ok(out)),
                None => slow_path(call),
            },
            Stage::Slow(slow) => slow,
            Stage::Complete => again(),
        };
        // Destructured and rebuilt, so that a result that is immediately ready stays in registers.
        match poll_slow(slow, &mut self, cx) {
            Poll::Ready(Ok(out)) => Poll::Ready(Ok(out)),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        }
    }
}

#[cold]
#[inline(never)]
fn slow_path<'a, C: FastPath<'a>>(call: C) -> Boxed<'a, Result<C::Out, C::Error>> {
    call.slow()
}

#[cold]
#[inline(never)]
fn again() -> ! {
    panic!("a future is not polled after its end")
}

/// Polls the slow path, and keeps it if it is pending.
#[inline(never)]
fn poll_slow<'a, C: FastPath<'a>>(
    mut slow: Boxed<'a, Result<C::Out, C::Error>>,
    future: &mut FastPathFuture<'a, C>,
    cx: &mut Context<'_>,
) -> Poll<Result<C::Out, C::Error>> {
    let poll = slow.as_mut().poll(cx);
    if poll.is_pending() {
        future.0 = Stage::Slow(slow);
    }
    poll
}
