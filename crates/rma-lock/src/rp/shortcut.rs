//! A future that is over at its first poll unless something has to be waited for.
//!
//! The same as an `async` block that tries something and awaits the rest if that is not enough, with two differences, because a
//! call and a large value moved cost more than a lock: the first poll is certain to become part of its caller, and the rest is boxed,
//! and only made when it is needed.

use core::{
    future::Future,
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
    /// `None` before it, and when it is over.
    rest: Option<Pin<Box<Rest>>>,
}

// Nothing but the box's content is ever pinned.
impl<Fast, Slow, Rest> Unpin for Shortcut<Fast, Slow, Rest> {}

/// Try `fast`; if it hands something on, await `slow` of that.
#[inline(always)]
pub(crate) fn shortcut<Fast, Slow, Rest>(fast: Fast, slow: Slow) -> Shortcut<Fast, Slow, Rest>
where
    Fast: Try,
    Slow: FnOnce(Fast::Stage) -> Rest,
    Rest: Future<Output = Fast::Out>,
{
    Shortcut { begin: Some((fast, slow)), rest: None }
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
                Err(stage) => self.rest = Some(begin(slow, stage)),
            }
        }
        go_on(&mut self.rest, cx)
    }
}

#[cold]
#[inline(never)]
fn begin<Stage, Rest>(slow: impl FnOnce(Stage) -> Rest, stage: Stage) -> Pin<Box<Rest>> {
    Box::pin(slow(stage))
}

#[cold]
#[inline(never)]
fn go_on<Rest: Future>(rest: &mut Option<Pin<Box<Rest>>>, cx: &mut Context<'_>) -> Poll<Rest::Output> {
    let out = rest.as_mut().expect("polled after the end").as_mut().poll(cx);
    if out.is_ready() {
        *rest = None;
    }
    out
}
