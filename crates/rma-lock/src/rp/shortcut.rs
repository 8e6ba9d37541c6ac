//! A future that is over at its first poll unless something has to be waited for.
//!
//! The same as an `async` block that tries something and awaits the rest if that is not enough, with two differences, because a
//! call and a large value moved cost more than a lock: the first poll is certain to become part of its caller, and the rest is boxed,
//! and only made when it is needed.

use core::{
    future::Future,
    mem::{self, ManuallyDrop},
    pin::Pin,
    task::{Context, Poll},
};

/// What is tried first.
pub(crate) trait Try {
    type Out;
    /// What the rest needs to know.
    type Stage;

    /// Do it; to be marked `#[inline(always)]`, which closures can't be.
    fn now(self) -> Result<Self::Out, Self::Stage>;
}

pub(crate) struct Shortcut<Fast, Slow, Rest> {
    /// `None` after the first poll.
    begin: Option<(Fast, Slow)>,
    rest: Later<Rest>,
}

// Nothing but the box's content is ever pinned.
impl<Fast, Slow, Rest> Unpin for Shortcut<Fast, Slow, Rest> {}

/// What is awaited; `None` before the first poll, and when it is over. Dropping that is a comparison.
struct Later<Rest>(ManuallyDrop<Option<Pin<Box<Rest>>>>);

impl<Rest> Later<Rest> {
    #[cold]
    #[inline(never)]
    fn discard(&mut self) {
        drop(ManuallyDrop::into_inner(mem::replace(&mut self.0, ManuallyDrop::new(None))));
    }
}

impl<Rest> Drop for Later<Rest> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.0.is_some() {
            self.discard();
        }
    }
}

/// Try `fast`; if it hands something on, await `slow` of that.
#[inline(always)]
pub(crate) fn shortcut<Fast, Slow, Rest>(fast: Fast, slow: Slow) -> Shortcut<Fast, Slow, Rest>
where
    Fast: Try,
    Slow: FnOnce(Fast::Stage) -> Rest,
    Rest: Future<Output = Fast::Out>,
{
    Shortcut { begin: Some((fast, slow)), rest: Later(ManuallyDrop::new(None)) }
}

impl<Fast, Slow, Rest> Future for Shortcut<Fast, Slow, Rest>
where
    Fast: Try,
    Slow: FnOnce(Fast::Stage) -> Rest,
    Rest: Future<Output = Fast::Out>,
{
    type Output = Fast::Out;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Fast::Out> {
        if let Some((fast, slow)) = self.begin.take() {
            match fast.now() {
                Ok(out) => return Poll::Ready(out),
                Err(stage) => begin(&mut self.rest, slow, stage),
            }
        }
        match go_on(&mut self.rest, cx) {
            Some(out) => Poll::Ready(*out),
            None => Poll::Pending,
        }
    }
}

#[cold]
#[inline(never)]
fn begin<Stage, Rest>(rest: &mut Later<Rest>, slow: impl FnOnce(Stage) -> Rest, stage: Stage) {
    *rest.0 = Some(Box::pin(slow(stage)));
}

/// Boxed, so that only this path has its result in memory.
#[cold]
#[inline(never)]
fn go_on<Rest: Future>(rest: &mut Later<Rest>, cx: &mut Context<'_>) -> Option<Box<Rest::Output>> {
    match rest.0.as_mut().expect("polled after the end").as_mut().poll(cx) {
        Poll::Ready(out) => {
            rest.discard();
            Some(Box::new(out))
        }
        Poll::Pending => None,
    }
}
