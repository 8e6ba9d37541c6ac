//! Handles of posted operations.

use crate::{FabricError, Result};
use core::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

/// A posted operation. Await it, [`test`](OpHandle::test) it, or [`wait`](OpHandle::wait) for it; it
/// yields the old value of an atomic or gives back the buffer of a put or get.
///
/// *Complete* means: the source may be reused, the result is here. It does not mean that a put is
/// visible at its target; that is what [`crate::Fabric::flush`] waits for. An atomic or a get is
/// complete only after it took effect at its target.
///
/// Dropping a handle does not cancel the transfer: memory in flight stays alive, the result is
/// discarded. A handle may be awaited from any task of its rank, and polled again after
/// completion only if the poll panics are acceptable, as with every future.
#[must_use = "a handle tells when the operation is complete; drop it only if nobody needs to know"]
pub trait OpHandle<T>: Future<Output = Result<T>> + Unpin + 'static {
    /// Whether the operation is complete. Never blocks.
    fn test(&mut self) -> bool;

    /// Block the calling thread until the operation is complete.
    ///
    /// # Errors
    /// What the operation itself fails with, and [`FabricError::Unsupported`] on a provider whose
    /// [`crate::Caps::blocking_wait`] is false (virtual time) if the operation isn't complete already.
    fn wait(self) -> Result<T>;
}

/// The handle of providers that finish every operation while it is posted, or refuse it then. Allocates nothing and
/// touches no waker.
#[derive(Debug)]
#[must_use = "a handle carries the operation's result"]
pub struct Completed<T>(Option<T>);

impl<T> Completed<T> {
    /// The handle of an operation that is over and left this.
    #[inline(always)]
    pub fn new(result: T) -> Self {
        Completed(Some(result))
    }
}

impl<T: Unpin + 'static> OpHandle<T> for Completed<T> {
    #[inline(always)]
    fn test(&mut self) -> bool {
        true
    }

    #[inline(always)]
    fn wait(self) -> Result<T> {
        self.0.ok_or(FabricError::Unsupported { feature: "waiting twice" })
    }
}

impl<T: Unpin> Future for Completed<T> {
    type Output = Result<T>;
    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(Ok(self.0.take().expect("a completed operation was polled again")))
    }
}
