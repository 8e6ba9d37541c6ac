//! A future that boxes nothing unless it has to wait for more than one operation.
//!
//! The same as an `async` block that tries something, awaits the operation it posted and then the rest if that is not enough, with
//! two differences, because a call and a large value moved cost more than a lock: the first poll is certain to become part of its
//! caller, and the rest is boxed, and only made when it is needed. Where operations take time, a future per rank is what a large
//! job consists of: an acquisition or release that meets nobody keeps its operation in place.

use core::{
    future::{Future, Pending},
    mem::{self, ManuallyDrop},
    pin::Pin,
    task::{Context, Poll},
};

/// What is tried first.
pub(crate) trait Try {
    type Out;
    /// What was posted, and polled once; dropping it leaves nothing undone.
    type Posted: Future<Output = Result<Self::Out, Self::Stage>> + Unpin;
    /// What the rest needs to know.
    type Stage;

    /// Do it; to be marked `#[inline(always)]`, which closures can't be.
    fn now(self, cx: &mut Context<'_>) -> Now<Self>;
}

/// For what posts several operations one after the other: none is awaited in place.
pub(crate) type Never<Fast> = Pending<Result<<Fast as Try>::Out, <Fast as Try>::Stage>>;

/// What came of it.
pub(crate) enum Now<T: Try + ?Sized> {
    Over(T::Out),
    Posted(T::Posted),
    Stuck(T::Stage),
}

pub(crate) struct Shortcut<Fast: Try, Slow, Rest> {
    /// `None` after the first poll.
    fast: Option<Fast>,
    /// Until the rest is made of it.
    slow: Option<Slow>,
    then: ManuallyDrop<Then<Fast, Rest>>,
}

/// What is awaited.
enum Then<Fast: Try, Rest> {
    /// Before the first poll, and when it is over.
    Nothing,
    Posted(Fast::Posted),
    Rest(Rest),
}

// Nothing is ever pinned.
impl<Fast: Try, Slow, Rest> Unpin for Shortcut<Fast, Slow, Rest> {}

/// Try `fast`; if it hands something on, await what `slow` makes of that: a box.
#[inline(always)]
pub(crate) fn shortcut<Fast, Slow, Rest>(fast: Fast, slow: Slow) -> Shortcut<Fast, Slow, Rest>
where
    Fast: Try,
    Slow: FnOnce(Fast::Stage) -> Rest,
    Rest: Future<Output = Fast::Out> + Unpin,
{
    Shortcut { fast: Some(fast), slow: Some(slow), then: ManuallyDrop::new(Then::Nothing) }
}

impl<Fast: Try, Slow, Rest> Shortcut<Fast, Slow, Rest> {
    #[cold]
    #[inline(never)]
    fn take(&mut self) -> Then<Fast, Rest> {
        ManuallyDrop::into_inner(mem::replace(&mut self.then, ManuallyDrop::new(Then::Nothing)))
    }
}

/// Dropping one that is over is a comparison.
impl<Fast: Try, Slow, Rest> Drop for Shortcut<Fast, Slow, Rest> {
    #[inline(always)]
    fn drop(&mut self) {
        if !matches!(*self.then, Then::Nothing) {
            drop(self.take());
        }
    }
}

impl<Fast, Slow, Rest> Future for Shortcut<Fast, Slow, Rest>
where
    Fast: Try,
    Slow: FnOnce(Fast::Stage) -> Rest,
    Rest: Future<Output = Fast::Out> + Unpin,
{
    type Output = Fast::Out;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Fast::Out> {
        if let Some(fast) = self.fast.take() {
            match fast.now(cx) {
                Now::Over(out) => return Poll::Ready(out),
                Now::Posted(posted) => {
                    *self.then = Then::Posted(posted);
                    return Poll::Pending;
                }
                Now::Stuck(stage) => self.begin(stage),
            }
        }
        match self.go_on(cx) {
            Some(out) => Poll::Ready(*out),
            None => Poll::Pending,
        }
    }
}

impl<Fast, Slow, Rest> Shortcut<Fast, Slow, Rest>
where
    Fast: Try,
    Slow: FnOnce(Fast::Stage) -> Rest,
    Rest: Future<Output = Fast::Out> + Unpin,
{
    #[cold]
    #[inline(never)]
    fn begin(&mut self, stage: Fast::Stage) {
        let slow = self.slow.take().expect("only one rest");
        *self.then = Then::Rest(slow(stage));
    }

    /// The result is boxed, so that only this path has it in memory.
    #[cold]
    #[inline(never)]
    fn go_on(&mut self, cx: &mut Context<'_>) -> Option<Box<Fast::Out>> {
        if let Then::Posted(posted) = &mut *self.then {
            let Poll::Ready(ended) = Pin::new(posted).poll(cx) else { return None };
            drop(self.take());
            match ended {
                Ok(out) => return Some(Box::new(out)),
                Err(stage) => self.begin(stage),
            }
        }
        let Then::Rest(rest) = &mut *self.then else { panic!("polled after the end") };
        let Poll::Ready(out) = Pin::new(rest).poll(cx) else { return None };
        drop(self.take());
        Some(Box::new(out))
    }
}
