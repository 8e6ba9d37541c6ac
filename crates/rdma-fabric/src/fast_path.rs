//! Calls that usually complete when first polled: their first poll is inlined into the caller, and
//! the future of the slow path is created only when it is needed.
//!
//! [`fast_path()`] is like an `async` block that tries a call and awaits the slow path if that was
//! not enough. It differs where calling a function and moving a large value cost more than the call
//! itself, as for an atomic or an idle lock: the first poll is guaranteed to be inlined, a result
//! that is immediately ready stays in registers, and dropping a completed future costs only
//! comparisons.

use core::{
    fmt,
    future::Future,
    mem::{self, ManuallyDrop},
    pin::Pin,
    task::{Context, Poll},
};

/// A call that usually takes effect immediately.
///
/// A closure implements it where inlining does not matter; only a method can be marked
/// `#[inline(always)]`.
pub trait FastPath: Sized {
    /// The result of the call.
    type Out;
    /// The input of the slow path: what the fast path has left to do, often the call itself.
    type Stage;

    /// Executes the call; the error is the stage at which the slow path continues.
    ///
    /// # Errors
    /// The stage, if the call cannot be completed immediately.
    fn fast(self, cx: &mut Context<'_>) -> Result<Self::Out, Self::Stage>;
}

impl<Call, Out, Stage> FastPath for Call
where
    Call: FnOnce(&mut Context<'_>) -> Result<Out, Stage>,
{
    type Out = Out;
    type Stage = Stage;

    #[inline(always)]
    fn fast(self, cx: &mut Context<'_>) -> Result<Out, Stage> {
        self(cx)
    }
}

/// Takes the fast path at the first poll, and awaits the slow path if that was not enough.
#[must_use = "futures do nothing unless they are polled"]
pub struct FastPathFuture<Call, Slow, Rest> {
    /// The call and the function that creates its slow path; `None` after the first poll.
    first: ManuallyDrop<Option<(Call, Slow)>>,
    /// The slow path; `None` before the first poll and after completion.
    rest: ManuallyDrop<Option<Rest>>,
}

/// Returns the future of `call`, which awaits the future that `slow` creates from the call's stage.
#[inline(always)]
pub fn fast_path<Call, Slow, Rest>(call: Call, slow: Slow) -> FastPathFuture<Call, Slow, Rest>
where
    Call: FastPath,
    Slow: FnOnce(Call::Stage) -> Rest,
    Rest: Future<Output = Call::Out> + Unpin,
{
    FastPathFuture { first: ManuallyDrop::new(Some((call, slow))), rest: ManuallyDrop::new(None) }
}

// Nothing in the future is pinned.
impl<Call, Slow, Rest> Unpin for FastPathFuture<Call, Slow, Rest> {}

impl<Call, Slow, Rest> fmt::Debug for FastPathFuture<Call, Slow, Rest> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (&*self.first, &*self.rest) {
            (Some(_), _) => "a call that was not polled",
            (None, Some(_)) => "a call on its slow path",
            (None, None) => "a completed call",
        })
    }
}

impl<Call, Slow, Rest> Future for FastPathFuture<Call, Slow, Rest>
where
    Call: FastPath,
    Slow: FnOnce(Call::Stage) -> Rest,
    Rest: Future<Output = Call::Out> + Unpin,
{
    type Output = Call::Out;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let me = &mut *self;
        let polled = match me.first.take() {
            Some((call, slow)) => match call.fast(cx) {
                Ok(out) => return Poll::Ready(out),
                Err(stage) => begin::<Call, Slow, Rest>(slow, stage, &mut me.rest, cx),
            },
            None => resume(&mut me.rest, cx),
        };
        match polled {
            Some(out) => Poll::Ready(*out),
            None => Poll::Pending,
        }
    }
}

/// Creates the slow path and polls it. The stage is passed by value and the result is boxed, so that
/// only this path stores them in memory.
#[cold]
#[inline(never)]
fn begin<Call, Slow, Rest>(
    slow: Slow,
    stage: Call::Stage,
    slot: &mut Option<Rest>,
    cx: &mut Context<'_>,
) -> Option<Box<Rest::Output>>
where
    Call: FastPath,
    Slow: FnOnce(Call::Stage) -> Rest,
    Rest: Future + Unpin,
{
    let mut rest = slow(stage);
    let Poll::Ready(out) = Pin::new(&mut rest).poll(cx) else {
        *slot = Some(rest);
        return None;
    };
    Some(Box::new(out))
}

/// Polls the slow path again.
#[inline(never)]
fn resume<Rest: Future + Unpin>(slot: &mut Option<Rest>, cx: &mut Context<'_>) -> Option<Box<Rest::Output>> {
    let rest = slot.as_mut().expect("a future is not polled after its end");
    let Poll::Ready(out) = Pin::new(rest).poll(cx) else { return None };
    *slot = None;
    Some(Box::new(out))
}

impl<Call, Slow, Rest> Drop for FastPathFuture<Call, Slow, Rest> {
    #[inline(always)]
    fn drop(&mut self) {
        if mem::needs_drop::<(Call, Slow)>()
            && let Some(first) = self.first.take()
        {
            dropped(first);
        }
        // Looked at first: taking stores.
        if self.rest.is_some()
            && let Some(rest) = self.rest.take()
        {
            dropped(rest);
        }
    }
}

/// Drops a value. This is a call by value, so that the original need not be in memory.
#[cold]
#[inline(never)]
fn dropped<T>(value: T) {
    drop(value);
}
