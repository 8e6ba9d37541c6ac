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
/// yields the previous value of an atomic, or returns the buffer of a put or get.
///
/// *Complete* means that the source may be reused and the result has arrived. It does not mean that
/// a put is visible at its target; [`crate::Fabric::flush`] waits for that. An atomic or a get is
/// complete only after it took effect at its target.
///
/// Dropping a handle does not cancel the transfer: memory in flight stays alive, the result is
/// discarded. A handle may be awaited from any task of its rank.
#[must_use = "a handle reports completion; drop it only if completion does not matter"]
pub struct Handle<T: 'static> {
    /// The result, or the value from which it is derived; `None` after it was taken.
    value: Option<T>,
    /// An operation that did not complete when posted. Dropped only by [`Handle::drop`], which is
    /// inlined into the fast path.
    in_flight: ManuallyDrop<Option<InFlight<T>>>,
}

struct InFlight<T: 'static> {
    fabric: Fabric,
    token: Token,
    returns: &'static ReturnedValue<T>,
}

/// The conversion of a handle's value to the operation's result.
pub(crate) struct ReturnedValue<T: 'static> {
    /// The destination of a get.
    pub(crate) sink: fn(&mut T) -> Sink<'_>,
    /// Sets an atomic's result from the word's previous value.
    pub(crate) patch: fn(&mut T, u64),
}

impl<T> ReturnedValue<T> {
    /// For an operation that returns its buffer.
    pub(crate) const UNCHANGED: &'static Self = &ReturnedValue { sink: |_| Sink::none(), patch: |_, _| () };
}

impl<T> Handle<T> {
    #[inline(always)]
    pub(crate) fn complete(value: T) -> Self {
        Handle { value: Some(value), in_flight: ManuallyDrop::new(None) }
    }

    pub(crate) fn in_flight(fabric: &Fabric, token: Token, value: T, returns: &'static ReturnedValue<T>) -> Self {
        let in_flight = InFlight { fabric: fabric.clone(), token, returns };
        Handle { value: Some(value), in_flight: ManuallyDrop::new(Some(in_flight)) }
    }
}

/// Polls an operation that did not complete when posted.
#[inline(never)]
fn resume<T>(handle: &mut Handle<T>, cx: &mut Context<'_>) -> Poll<Result<T>> {
    let (Some(in_flight), Some(value)) = (&mut *handle.in_flight, &mut handle.value) else { taken() };
    let InFlight { fabric, token, returns } = in_flight;
    let Poll::Ready(outcome) = fabric.provider().poll(token, (returns.sink)(value), cx) else { return Poll::Pending };
    if let Ok(word) = &outcome {
        (returns.patch)(value, *word);
    }
    *handle.in_flight = None;
    let value = handle.value.take();
    Poll::Ready(outcome.and(value.ok_or(TAKEN)))
}

const TAKEN: FabricError = FabricError::Unsupported { feature: &"taking a result twice" };

#[cold]
fn taken() -> ! {
    panic!("a completed operation was polled again")
}

// Nothing in the future is pinned.
impl<T> Unpin for Handle<T> {}

impl<T: Unpin> Future for Handle<T> {
    type Output = Result<T>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        if self.in_flight.is_none() {
            match self.value.take() {
                Some(value) => return Poll::Ready(Ok(value)),
                None => taken(),
            }
        }
        // Matched and rebuilt, so that a result that is immediately ready stays in registers.
        match resume(&mut self, cx) {
            Poll::Ready(Ok(value)) => Poll::Ready(Ok(value)),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<T> Handle<T> {
    /// Returns whether the operation is complete. Never blocks.
    #[inline]
    pub fn test(&mut self) -> bool {
        match &*self.in_flight {
            None => true,
            Some(in_flight) => in_flight.fabric.provider().test(&in_flight.token),
        }
    }

    /// Takes the result of a completed operation. Where [`crate::Caps::blocking_wait`] allows it,
    /// blocks the calling thread until the operation is complete.
    ///
    /// # Errors
    /// The error of the operation itself, and [`FabricError::Unsupported`] if the operation isn't
    /// complete and a thread can't block for the provider's operations (virtual time).
    #[inline]
    pub fn wait(mut self) -> Result<T> {
        if self.in_flight.is_none() {
            return self.value.take().ok_or(TAKEN);
        }
        let blocking = FabricError::Unsupported { feature: &"blocking until an operation is complete" };
        while !self.test() {
            if !self.in_flight.as_ref().is_some_and(|in_flight| in_flight.fabric.caps().blocking_wait) {
                return Err(blocking);
            }
            std::thread::yield_now();
        }
        match resume(&mut self, &mut Context::from_waker(Waker::noop())) {
            Poll::Ready(out) => out,
            Poll::Pending => Err(blocking),
        }
    }
}

#[cold]
#[inline(never)]
fn give_up<T>(in_flight: &mut Option<InFlight<T>>) {
    if let Some(InFlight { fabric, token, .. }) = in_flight.take() {
        fabric.provider().forget(token);
    }
}

impl<T: 'static> Drop for Handle<T> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.in_flight.is_some() {
            give_up(&mut self.in_flight);
        }
    }
}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.in_flight {
            Some(in_flight) => write!(f, "Handle({:?})", in_flight.token),
            None => f.write_str(if self.value.is_some() { "Handle(over)" } else { "Handle(result taken)" }),
        }
    }
}
