//! Futures that are mostly over when they are first polled.

use crate::Result;
use core::{
    future::Future,
    mem,
    pin::Pin,
    task::{Context, Poll},
};
use rdma_fabric::provider::Boxed;

/// A call that mostly takes effect at once.
///
/// A trait instead of two closures, which the compiler may leave out of line: whatever they return
/// would then go through memory.
pub(crate) trait Call<'a>: Sized {
    type Out;
    /// Does at once what is asked for; `None` if that is not possible, and nothing has been done. It
    /// has no errors: one beside the result would take the result out of registers.
    fn now(&self) -> Option<Self::Out>;
    /// Does what is asked for, or says why it can't be done.
    fn later(self) -> Boxed<'a, Result<Self::Out>>;
}

/// Tries a call at its first poll; awaits the boxed rest if that was not enough.
#[must_use = "futures do nothing unless they are polled"]
pub(crate) enum Soon<'a, C: Call<'a>> {
    /// Not polled yet.
    First(C),
    Rest(Boxed<'a, Result<C::Out>>),
    Over,
}

/// Returns the future of a call.
#[inline(always)]
pub(crate) fn soon<'a, C: Call<'a>>(call: C) -> Soon<'a, C> {
    Soon::First(call)
}

// Nothing in the future is pinned.
impl<'a, C: Call<'a>> Unpin for Soon<'a, C> {}

impl<'a, C: Call<'a>> Future for Soon<'a, C> {
    type Output = Result<C::Out>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<C::Out>> {
        let rest = match mem::replace(&mut *self, Soon::Over) {
            Soon::First(call) => match call.now() {
                Some(out) => return Poll::Ready(Ok(out)),
                None => rest_of(call),
            },
            Soon::Rest(rest) => rest,
            Soon::Over => again(),
        };
        poll_rest(rest, &mut self, cx)
    }
}

#[cold]
#[inline(never)]
fn rest_of<'a, C: Call<'a>>(call: C) -> Boxed<'a, Result<C::Out>> {
    call.later()
}

#[cold]
#[inline(never)]
fn again() -> ! {
    panic!("a future is not polled after its end")
}

/// Polls the rest, and keeps it if it is not over.
#[inline(never)]
fn poll_rest<'a, C: Call<'a>>(
    mut rest: Boxed<'a, Result<C::Out>>,
    future: &mut Soon<'a, C>,
    cx: &mut Context<'_>,
) -> Poll<Result<C::Out>> {
    let poll = rest.as_mut().poll(cx);
    if poll.is_pending() {
        *future = Soon::Rest(rest);
    }
    poll
}
