//! Handles of posted operations, which outlive the borrow of the fabric.

use crate::{
    Fabric, FabricError, Result,
    provider::{Sink, Token},
};
use core::{
    fmt,
    future::Future,
    mem::ManuallyDrop,
    pin::Pin,
    task::{Context, Poll, Waker},
};

/// A posted operation. Await it, [`test`](Handle::test) it, or [`wait`](Handle::wait) for it; it
/// yields the old value of an atomic or gives back the buffer of a put or get.
///
/// *Complete* means: the source may be reused, the result is here. It does not mean that a put is
/// visible at its target; that is what [`crate::Fabric::flush`] waits for. An atomic or a get is
/// complete only after it took effect at its target.
///
/// Dropping a handle does not cancel the transfer: memory in flight stays alive, the result is
/// discarded. A handle may be awaited from any task of its rank.
#[must_use = "a handle tells when the operation is complete; drop it only if nobody needs to know"]
pub struct Handle<T: 'static> {
    /// The result, or what becomes it: `None` when it has been taken.
    value: Option<T>,
    /// Of an operation that was not over when it was posted. Dropped by [`Handle::drop`] only, which the short path sees through.
    under: ManuallyDrop<Option<Under<T>>>,
}

struct Under<T: 'static> {
    fabric: Fabric,
    token: Token,
    shape: &'static Shape<T>,
}

/// How the result of an operation is made.
pub(crate) struct Shape<T: 'static> {
    /// Where the bytes of a get go.
    pub(crate) sink: fn(&mut T) -> Sink<'_>,
    /// What an atomic makes of the word before.
    pub(crate) patch: fn(&mut T, u64),
}

impl<T> Shape<T> {
    /// Of an operation that gives back what it was given.
    pub(crate) const PLAIN: &'static Shape<T> = &Shape { sink: |_| Sink::none(), patch: |_, _| () };
}

impl<T> Handle<T> {
    #[inline(always)]
    pub(crate) fn over(value: T) -> Self {
        Handle { value: Some(value), under: ManuallyDrop::new(None) }
    }

    pub(crate) fn under(fabric: &Fabric, token: Token, value: T, shape: &'static Shape<T>) -> Self {
        let under = Under { fabric: fabric.clone(), token, shape };
        Handle { value: Some(value), under: ManuallyDrop::new(Some(under)) }
    }
}

/// How the operation of a handle stands that was not over when it was posted.
#[inline(never)]
fn go_on<T>(handle: &mut Handle<T>, cx: &mut Context<'_>) -> Poll<Result<T>> {
    let (Some(under), Some(value)) = (&mut *handle.under, &mut handle.value) else { taken() };
    let Under { fabric, token, shape } = under;
    let Poll::Ready(outcome) = fabric.provider().poll(token, (shape.sink)(value), cx) else { return Poll::Pending };
    if let Ok(word) = &outcome {
        (shape.patch)(value, *word);
    }
    *handle.under = None;
    let value = handle.value.take();
    Poll::Ready(outcome.and(value.ok_or(TAKEN)))
}

const TAKEN: FabricError = FabricError::Unsupported { feature: &"taking a result twice" };

#[cold]
fn taken() -> ! {
    panic!("a completed operation was polled again")
}

// Nothing in it is pinned.
impl<T> Unpin for Handle<T> {}

impl<T: Unpin> Future for Handle<T> {
    type Output = Result<T>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        if self.under.is_none() {
            match self.value.take() {
                Some(value) => return Poll::Ready(Ok(value)),
                None => taken(),
            }
        }
        // Taken apart, so that what is over at once stays in registers.
        match go_on(&mut self, cx) {
            Poll::Ready(Ok(value)) => Poll::Ready(Ok(value)),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<T> Handle<T> {
    /// Whether the operation is complete. Never blocks.
    #[inline]
    pub fn test(&mut self) -> bool {
        match &*self.under {
            None => true,
            Some(under) => under.fabric.provider().test(&under.token),
        }
    }

    /// Take the result of an operation that is complete; where [`crate::Caps::blocking_wait`] allows it, block the calling thread
    /// until it is.
    ///
    /// # Errors
    /// What the operation itself fails with, and [`FabricError::Unsupported`] if it isn't complete and the
    /// provider's operations can't be waited for so (virtual time).
    #[inline]
    pub fn wait(mut self) -> Result<T> {
        if self.under.is_none() {
            return self.value.take().ok_or(TAKEN);
        }
        let blocking = FabricError::Unsupported { feature: &"blocking until an operation is complete" };
        if !self.test() {
            return Err(blocking);
        }
        match go_on(&mut self, &mut Context::from_waker(Waker::noop())) {
            Poll::Ready(out) => out,
            Poll::Pending => Err(blocking),
        }
    }
}

#[cold]
#[inline(never)]
fn give_up<T>(under: &mut Option<Under<T>>) {
    if let Some(Under { fabric, token, .. }) = under.take() {
        fabric.provider().forget(token);
    }
}

impl<T: 'static> Drop for Handle<T> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.under.is_some() {
            give_up(&mut self.under);
        }
    }
}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.under {
            Some(under) => write!(f, "Handle({:?})", under.token),
            None => f.write_str(if self.value.is_some() { "Handle(over)" } else { "Handle(result taken)" }),
        }
    }
}
