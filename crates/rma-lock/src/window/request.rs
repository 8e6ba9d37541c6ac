//! Operations whose completion is checked later.

use super::core::Core;
use core::{
    fmt,
    future::Future,
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll},
};
use rdma_fabric::{FabricError, Handle, Result, provider::Boxed};

/// A put or get that was posted (`MPI_Rput`, `MPI_Rget`): returns its buffer once that may be
/// reused or is filled.
///
/// It cannot outlive its epoch. Dropping it does not cancel the transfer.
#[must_use = "a request reports completion; drop it only if completion does not matter"]
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

    /// Returns whether the transfer is complete (`MPI_Test`). Never blocks.
    pub fn test(&mut self) -> bool {
        self.handle.test()
    }

    /// Blocks the calling thread until the transfer is complete.
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

// The handle is `Unpin`, and nothing else is polled.
impl<B: Unpin + 'static> Unpin for Transfer<'_, B> {}

/// An accumulate that was started (`MPI_Raccumulate`, `MPI_Rget_accumulate`): returns its result
/// when it is complete.
///
/// It cannot outlive its epoch. Dropping it does not cancel the accumulate: a flush, the end of the
/// epoch, or a wait for another accumulate of the window drives it. Until then an accumulate that
/// needs more than one atomic per element makes no progress.
#[must_use = "a request reports completion; drop it only if completion does not matter"]
pub struct Request<'e, Out> {
    core: &'e Core,
    number: u64,
    before: Boxed<'e, Result<Vec<u64>>>,
    out: fn(Vec<u64>) -> Out,
}

impl<Out> fmt::Debug for Request<'_, Out> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Request({})", self.number)
    }
}

impl<'e, Out> Request<'e, Out> {
    /// Makes a request that applies `out` to the elements' previous bits and returns the result.
    pub(super) fn new(claim: Claim<'e>, out: fn(Vec<u64>) -> Out) -> Self {
        Request { core: claim.core, number: claim.number, before: Box::pin(claim.before()), out }
    }

    /// Returns whether the accumulate is complete (`MPI_Test`). Never blocks.
    pub fn test(&mut self) -> bool {
        self.core.in_flight.test(&self.core.fabric, self.number)
    }

    /// Returns the result if the accumulate is complete.
    ///
    /// # Errors
    /// The error of the operation itself, and [`FabricError::Unsupported`] if it is not complete: a
    /// thread cannot block for a task that takes more than one operation; await it instead.
    pub fn wait(mut self) -> Result<Out> {
        let mut cx = Context::from_waker(core::task::Waker::noop());
        if self.test()
            && let Poll::Ready(outcome) = Pin::new(&mut self).poll(&mut cx)
        {
            return outcome;
        }
        Err(FabricError::Unsupported { feature: &"blocking for an accumulate" })
    }
}

impl<Out> Future for Request<'_, Out> {
    type Output = Result<Out>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Out>> {
        Pin::new(&mut self.before).poll(cx).map(|before| before.map(self.out))
    }
}

/// The claim to an accumulate's result.
pub(super) struct Claim<'e> {
    core: &'e Core,
    number: u64,
}

impl<'e> Claim<'e> {
    pub(super) fn new(core: &'e Core, number: u64) -> Self {
        Claim { core, number }
    }

    /// Waits until the accumulate is complete; returns the elements' previous bits.
    pub(super) async fn before(self) -> Result<Vec<u64>> {
        self.core.in_flight.take(&self.core.fabric, self.number).await
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.core.in_flight.leave(self.number);
    }
}
