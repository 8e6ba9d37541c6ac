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
pub trait Call<'a>: Sized {
    /// The result of the call.
    type Out;
    /// The error of the call.
    type Error;
    /// Executes the call; `None` if it can't be completed immediately. The progress made is
    /// recorded in `self`, and [`Call::later`] continues from there. It has no errors: an error in
    /// the return type would move the result out of registers.
    fn now(&mut self) -> Option<Self::Out>;
    /// Executes the call, or the rest of it, or returns the error.
    fn later(self) -> Boxed<'a, Result<Self::Out, Self::Error>>;
}

/// Tries a call at its first poll; awaits the boxed rest if that was not enough.
#[must_use = "futures do nothing unless they are polled"]
pub struct Soon<'a, C: Call<'a>>(Stage<'a, C>);

enum Stage<'a, C: Call<'a>> {
    /// Not polled yet.
    First(C),
    Rest(Boxed<'a, Result<C::Out, C::Error>>),
    Over,
}

/// Returns the future of a call.
#[inline(always)]
pub fn soon<'a, C: Call<'a>>(call: C) -> Soon<'a, C> {
    Soon(Stage::First(call))
}

// Nothing in the future is pinned.
impl<'a, C: Call<'a>> Unpin for Soon<'a, C> {}

impl<'a, C: Call<'a>> fmt::Debug for Soon<'a, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Stage::First(_) => "a call not begun",
            Stage::Rest(_) => "a call not over",
            Stage::Over => "a call that is over",
        })
    }
}

impl<'a, C: Call<'a>> Future for Soon<'a, C> {
    type Output = Result<C::Out, C::Error>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<C::Out, C::Error>> {
        let rest = match mem::replace(&mut self.0, Stage::Over) {
            Stage::First(mut call) => match call.now() {
                Some(out) => return Poll::Ready(Ok(out)),
                None => rest_of(call),
            },
            Stage::Rest(rest) => rest,
            Stage::Over => again(),
        };
        // Destructured and rebuilt, so that a result that is immediately ready stays in registers.
        match poll_rest(rest, &mut self, cx) {
            Poll::Ready(Ok(out)) => Poll::Ready(Ok(out)),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        }
    }
}

#[cold]
#[inline(never)]
fn rest_of<'a, C: Call<'a>>(call: C) -> Boxed<'a, Result<C::Out, C::Error>> {
    call.later()
}

#[cold]
#[inline(never)]
fn again() -> ! {
    panic!("a future is not polled after its end")
}

/// Polls the rest, and keeps it if it is pending.
#[inline(never)]
fn poll_rest<'a, C: Call<'a>>(
    mut rest: Boxed<'a, Result<C::Out, C::Error>>,
    future: &mut Soon<'a, C>,
    cx: &mut Context<'_>,
) -> Poll<Result<C::Out, C::Error>> {
    let poll = rest.as_mut().poll(cx);
    if poll.is_pending() {
        future.0 = Stage::Rest(rest);
    }
    poll
}
