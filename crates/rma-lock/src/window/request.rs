//! Operations whose end is asked for later.

use super::{op::WindowElement, side::Core};
use core::{
    fmt,
    future::Future,
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll},
};
use rdma_fabric::{FabricError, Handle, Pod, Result};

/// A put or get that was posted (`MPI_Rput`, `MPI_Rget`): yields its buffer when that may be reused, or is filled.
///
/// It can't outlive its epoch. Dropping it does not cancel the transfer.
#[must_use = "a request tells when the operation is complete; drop it only if nobody needs to know"]
pub struct Transfer<'e, B: Unpin + 'static> {
    handle: Handle<B>,
    epoch: PhantomData<&'e ()>,
}

impl<B: Unpin + 'static> fmt::Debug for Transfer<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transfer")
    }
}

impl<B: Unpin + 'static> Transfer<'_, B> {
    pub(super) fn new(handle: Handle<B>) -> Self {
        Transfer { handle, epoch: PhantomData }
    }

    /// Whether it is complete (`MPI_Test`). Never blocks.
    pub fn test(&mut self) -> bool {
        self.handle.test()
    }

    /// Block the calling thread until it is complete.
    ///
    /// # Errors
    /// As [`rdma_fabric::Handle::wait`].
    pub fn wait(self) -> Result<B> {
        self.handle.wait()
    }
}

impl<B: Unpin + 'static> Future for Transfer<'_, B> {
    type Output = Result<B>;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<B>> {
        Pin::new(&mut self.handle).poll(cx)
    }
}

// The handle is, and nothing else is polled.
impl<B: Unpin + 'static> Unpin for Transfer<'_, B> {}

/// An accumulate that was begun (`MPI_Raccumulate`, `MPI_Rget_accumulate`).
///
/// It can't outlive its epoch. Dropping it does not cancel the accumulate: a flush, the end of the epoch, or whoever waits for another one of the
/// window goes on with it. Until then one that needs more than an atomic for each element stands still.
#[must_use = "a request tells when the operation is complete; drop it only if nobody needs to know"]
pub struct Request<'e, T: Pod, Rest> {
    core: &'e Core<T>,
    number: u64,
    rest: Pin<Box<Rest>>,
}

impl<T: Pod, Rest> fmt::Debug for Request<'_, T, Rest> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Request({})", self.number)
    }
}

impl<'e, T: WindowElement, Rest: Future> Request<'e, T, Rest> {
    pub(super) fn new(claim: Claim<'e, T>, rest: impl FnOnce(Claim<'e, T>) -> Rest) -> Self {
        Request { core: claim.core, number: claim.number, rest: Box::pin(rest(claim)) }
    }
}

impl<T: Pod, Out, Rest: Future<Output = Result<Out>>> Request<'_, T, Rest> {
    /// Whether it is complete (`MPI_Test`). Never blocks.
    pub fn test(&mut self) -> bool {
        self.core.jobs.test(&self.core.fabric, self.number)
    }

    /// The outcome, if it is complete.
    ///
    /// # Errors
    /// What the operation itself fails with, and [`FabricError::Unsupported`] if it isn't complete: threads do not block for what takes more than
    /// one operation; await it.
    pub fn wait(mut self) -> Result<Out> {
        let mut cx = Context::from_waker(core::task::Waker::noop());
        if self.test()
            && let Poll::Ready(outcome) = self.rest.as_mut().poll(&mut cx)
        {
            return outcome;
        }
        Err(FabricError::Unsupported { feature: &"blocking for an accumulate" })
    }
}

impl<T: Pod, Rest: Future> Future for Request<'_, T, Rest> {
    type Output = Rest::Output;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Rest::Output> {
        self.rest.as_mut().poll(cx)
    }
}

/// The right to an accumulate's outcome.
pub(super) struct Claim<'e, T: Pod> {
    core: &'e Core<T>,
    number: u64,
}

impl<'e, T: WindowElement> Claim<'e, T> {
    pub(super) fn new(core: &'e Core<T>, number: u64) -> Self {
        Claim { core, number }
    }

    /// Wait until it is complete; yields the elements before.
    pub(super) async fn before(self) -> Result<Vec<T>> {
        let bits = self.core.jobs.take(&self.core.fabric, self.number).await?;
        Ok(bits.into_iter().map(T::of_bits).collect())
    }
}

impl<T: Pod> Drop for Claim<'_, T> {
    fn drop(&mut self) {
        self.core.jobs.leave(self.number);
    }
}
