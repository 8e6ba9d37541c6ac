//! The futures of waits: the caller checks its condition, and the provider determines when to check
//! again.

use super::Fabric;
use crate::{
    AtomicWord, Notice, Result,
    provider::{Ended, Place, WaitFor, WaitState},
};
use core::{
    future::Future,
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll},
};

/// A wait whose condition only the provider can check.
#[must_use = "futures do nothing unless they are polled"]
pub(super) struct WaitFuture<'a, G: Fn() -> WaitFor<'static>> {
    fabric: &'a Fabric,
    /// Creates the argument of the poll; it is smaller than that argument.
    wait_for: G,
    state: WaitState,
}

impl<'a, G: Fn() -> WaitFor<'static>> WaitFuture<'a, G> {
    #[inline(always)]
    pub(super) fn new(fabric: &'a Fabric, wait_for: G) -> Self {
        WaitFuture { fabric, wait_for, state: WaitState::default() }
    }
}

// Nothing in the future is pinned.
impl<G: Fn() -> WaitFor<'static>> Unpin for WaitFuture<'_, G> {}

impl<G: Fn() -> WaitFor<'static>> Future for WaitFuture<'_, G> {
    type Output = Result<()>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let me = &mut *self;
        let stands = me.fabric.provider().poll_wait(&mut me.state, (me.wait_for)(), cx);
        if let Poll::Ready(Ok(())) = stands
            && !me.state.is_empty()
        {
            me.fabric.provider().end_wait(&mut me.state, (me.wait_for)(), Ended::Reached);
            me.state = WaitState::default();
        }
        stands
    }
}

impl<G: Fn() -> WaitFor<'static>> Drop for WaitFuture<'_, G> {
    #[inline]
    fn drop(&mut self) {
        if !self.state.is_empty() {
            self.fabric.provider().end_wait(&mut self.state, (self.wait_for)(), Ended::GivenUp);
        }
    }
}

/// Lets time pass; completes only when its goal is reached.
pub(super) struct TimeFuture<'a, G: Fn() -> WaitFor<'static>>(pub(super) WaitFuture<'a, G>);

impl<G: Fn() -> WaitFor<'static>> Future for TimeFuture<'_, G> {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx).map(drop)
    }
}

/// The condition of a wait.
///
/// A trait instead of a closure, which the compiler may leave out of line: its result, and every
/// error, would then go through memory.
pub(super) trait Check {
    type Found;
    /// Returns the awaited value, if it is available now.
    fn check(&mut self, fabric: &Fabric) -> Result<Option<Self::Found>>;
    /// Returns whether the provider observes the checks, and so must be notified of the end of the
    /// wait.
    fn is_seen(&self) -> bool {
        false
    }
}

/// Waits until a check succeeds.
#[must_use = "futures do nothing unless they are polled"]
pub(super) struct CheckFuture<'a, L: Check> {
    fabric: &'a Fabric,
    wait_for: WaitFor<'a>,
    check: L,
    state: WaitState,
    /// Whether the provider observed a check, and has not been notified of the end yet.
    seen: bool,
}

impl<'a, L: Check> CheckFuture<'a, L> {
    #[inline(always)]
    pub(super) fn new(fabric: &'a Fabric, wait_for: WaitFor<'a>, check: L) -> Self {
        CheckFuture { fabric, wait_for, check, state: WaitState::default(), seen: false }
    }

    /// Waits and checks again, after a check without success.
    #[inline(never)]
    fn poll_again(&mut self, cx: &mut Context<'_>) -> Poll<Result<L::Found>> {
        loop {
            match self.fabric.provider().poll_wait(&mut self.state, self.wait_for, cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(())) => {}
                // Writes of a rank before its loss are taken into account.
                Poll::Ready(Err(error)) => {
                    return Poll::Ready(self.check.check(self.fabric).and_then(|found| found.ok_or(error)));
                }
            }
            if let Some(found) = self.check.check(self.fabric).transpose() {
                return Poll::Ready(found);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn end(&mut self, ended: Ended) {
        self.fabric.provider().end_wait(&mut self.state, self.wait_for, ended);
        (self.state, self.seen) = (WaitState::default(), false);
    }
}

// Nothing in the future is pinned.
impl<L: Check> Unpin for CheckFuture<'_, L> {}

impl<L: Check> Future for CheckFuture<'_, L> {
    type Output = Result<L::Found>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let me = &mut *self;
        me.seen |= me.check.is_seen();
        let found = match me.check.check(me.fabric) {
            Ok(Some(found)) if !me.seen && me.state.is_empty() => return Poll::Ready(Ok(found)),
            Ok(Some(found)) => Poll::Ready(Ok(found)),
            Ok(None) => me.poll_again(cx),
            Err(error) => return Poll::Ready(Err(error)),
        };
        // Matched and rebuilt, so that a value that is immediately available stays in registers.
        match found {
            Poll::Ready(Ok(found)) => {
                if me.seen || !me.state.is_empty() {
                    me.end(Ended::Reached);
                }
                Poll::Ready(Ok(found))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<L: Check> Drop for CheckFuture<'_, L> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.seen || !self.state.is_empty() {
            self.end(Ended::GivenUp);
        }
    }
}

/// Checks whether a word satisfies a predicate.
pub(super) struct WordCheck<'a, W, Until> {
    pub(super) word: &'a Place,
    pub(super) until: Until,
    pub(super) of: PhantomData<fn() -> W>,
}

impl<W: AtomicWord, Until: FnMut(W) -> bool> Check for WordCheck<'_, W, Until> {
    type Found = W;

    #[inline(always)]
    fn check(&mut self, fabric: &Fabric) -> Result<Option<W>> {
        let value = match self.word.load(W::BYTES) {
            Some(bits) => W::from_bits(bits),
            None => read_word(fabric, self.word, true)?,
        };
        Ok(if (self.until)(value) { Some(value) } else { None })
    }

    #[inline(always)]
    fn is_seen(&self) -> bool {
        !self.word.admits(W::BYTES)
    }
}

/// Reads a word through the provider.
#[inline(never)]
pub(super) fn read_word<W: AtomicWord>(fabric: &Fabric, word: &Place, waiting: bool) -> Result<W> {
    let mut value = W::from_bits(0);
    fabric.provider().read(word, bytemuck::bytes_of_mut(&mut value), waiting)?;
    Ok(value)
}

/// Checks for the next notice.
pub(super) struct NoticeCheck;

impl Check for NoticeCheck {
    type Found = Notice;

    #[inline(always)]
    fn check(&mut self, fabric: &Fabric) -> Result<Option<Notice>> {
        fabric.provider().try_notice(true)
    }
}
