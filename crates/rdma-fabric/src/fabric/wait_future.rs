//! The futures of waits: the caller checks its condition, and the provider determines when to check
//! again.

use super::Fabric;
use crate::{
    AtomicWord, Notice, Result,
    provider::{Ended, Goal, Place, Slot},
};
use core::{
    future::Future,
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll},
};

/// A provider's state of a wait; the wait ends when this is dropped.
pub(crate) struct SlotGuard<F: FnMut(&mut Slot, Ended)> {
    pub(crate) slot: Slot,
    end: F,
}

impl<F: FnMut(&mut Slot, Ended)> SlotGuard<F> {
    pub(crate) fn new(end: F) -> Self {
        SlotGuard { slot: Slot::default(), end }
    }

    pub(crate) fn end(&mut self, ended: Ended) {
        if !self.slot.is_empty() {
            (self.end)(&mut self.slot, ended);
            self.slot = Slot::default();
        }
    }
}

impl<F: FnMut(&mut Slot, Ended)> Drop for SlotGuard<F> {
    fn drop(&mut self) {
        self.end(Ended::GivenUp);
    }
}

/// Waits for a goal that only the provider can check.
#[must_use = "futures do nothing unless they are polled"]
pub(super) struct GoalFuture<'a, G: Fn() -> Goal<'static>> {
    fabric: &'a Fabric,
    /// Creates the goal; it is smaller than the goal itself.
    goal: G,
    slot: Slot,
}

impl<'a, G: Fn() -> Goal<'static>> GoalFuture<'a, G> {
    #[inline(always)]
    pub(super) fn new(fabric: &'a Fabric, goal: G) -> Self {
        GoalFuture { fabric, goal, slot: Slot::default() }
    }
}

// Nothing in the future is pinned.
impl<G: Fn() -> Goal<'static>> Unpin for GoalFuture<'_, G> {}

impl<G: Fn() -> Goal<'static>> Future for GoalFuture<'_, G> {
    type Output = Result<()>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let me = &mut *self;
        let stands = me.fabric.provider().poll_wait(&mut me.slot, (me.goal)(), cx);
        if let Poll::Ready(Ok(())) = stands
            && !me.slot.is_empty()
        {
            me.fabric.provider().end_wait(&mut me.slot, (me.goal)(), Ended::Reached);
            me.slot = Slot::default();
        }
        stands
    }
}

impl<G: Fn() -> Goal<'static>> Drop for GoalFuture<'_, G> {
    #[inline]
    fn drop(&mut self) {
        if !self.slot.is_empty() {
            self.fabric.provider().end_wait(&mut self.slot, (self.goal)(), Ended::GivenUp);
        }
    }
}

/// Lets time pass; completes only when its goal is reached.
pub(super) struct TimeFuture<'a, G: Fn() -> Goal<'static>>(pub(super) GoalFuture<'a, G>);

impl<G: Fn() -> Goal<'static>> Future for TimeFuture<'_, G> {
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
pub(super) trait Look {
    type Found;
    /// Returns the awaited value, if it is available now.
    fn look(&mut self, fabric: &Fabric) -> Result<Option<Self::Found>>;
    /// Returns whether the provider observes the checks, and so must be notified of the end of the
    /// wait.
    fn is_seen(&self) -> bool {
        false
    }
}

/// Waits until a check succeeds.
#[must_use = "futures do nothing unless they are polled"]
pub(super) struct LookFuture<'a, L: Look> {
    fabric: &'a Fabric,
    goal: Goal<'a>,
    look: L,
    slot: Slot,
    /// Whether the provider observed a check, and has not been notified of the end yet.
    seen: bool,
}

impl<'a, L: Look> LookFuture<'a, L> {
    #[inline(always)]
    pub(super) fn new(fabric: &'a Fabric, goal: Goal<'a>, look: L) -> Self {
        LookFuture { fabric, goal, look, slot: Slot::default(), seen: false }
    }

    /// Waits and checks again, after a check without success.
    #[inline(never)]
    fn look_again(&mut self, cx: &mut Context<'_>) -> Poll<Result<L::Found>> {
        loop {
            match self.fabric.provider().poll_wait(&mut self.slot, self.goal, cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(())) => {}
                // Writes of a rank before its loss are taken into account.
                Poll::Ready(Err(error)) => {
                    return Poll::Ready(self.look.look(self.fabric).and_then(|found| found.ok_or(error)));
                }
            }
            if let Some(found) = self.look.look(self.fabric).transpose() {
                return Poll::Ready(found);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn end(&mut self, ended: Ended) {
        self.fabric.provider().end_wait(&mut self.slot, self.goal, ended);
        (self.slot, self.seen) = (Slot::default(), false);
    }
}

// Nothing in the future is pinned.
impl<L: Look> Unpin for LookFuture<'_, L> {}

impl<L: Look> Future for LookFuture<'_, L> {
    type Output = Result<L::Found>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let me = &mut *self;
        me.seen |= me.look.is_seen();
        let found = match me.look.look(me.fabric) {
            Ok(Some(found)) if !me.seen && me.slot.is_empty() => return Poll::Ready(Ok(found)),
            Ok(Some(found)) => Poll::Ready(Ok(found)),
            Ok(None) => me.look_again(cx),
            Err(error) => return Poll::Ready(Err(error)),
        };
        // Matched and rebuilt, so that a value that is immediately available stays in registers.
        match found {
            Poll::Ready(Ok(found)) => {
                if me.seen || !me.slot.is_empty() {
                    me.end(Ended::Reached);
                }
                Poll::Ready(Ok(found))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<L: Look> Drop for LookFuture<'_, L> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.seen || !self.slot.is_empty() {
            self.end(Ended::GivenUp);
        }
    }
}

/// Checks whether a word satisfies a predicate.
pub(super) struct WordLook<'a, W, Until> {
    pub(super) word: &'a Place,
    pub(super) until: Until,
    pub(super) of: PhantomData<fn() -> W>,
}

impl<W: AtomicWord, Until: FnMut(W) -> bool> Look for WordLook<'_, W, Until> {
    type Found = W;

    #[inline(always)]
    fn look(&mut self, fabric: &Fabric) -> Result<Option<W>> {
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
pub(super) struct NoticeLook;

impl Look for NoticeLook {
    type Found = Notice;

    #[inline(always)]
    fn look(&mut self, fabric: &Fabric) -> Result<Option<Notice>> {
        fabric.provider().try_notice(true)
    }
}
