//! Atomics that may be over when they are posted.

use core::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};
use rdma_fabric::{Amo, Fabric, FabricError, OpHandle, RemoteWord};

/// An atomic that was posted.
pub(crate) enum Posting<F: Fabric> {
    InFlight(<F as Fabric>::Handle<u64>),
    Over(Result<u64, FabricError>),
}

impl<F: Fabric> Posting<F> {
    pub(crate) async fn result(self) -> Result<u64, FabricError> {
        match self {
            Posting::InFlight(handle) => handle.await,
            Posting::Over(result) => result,
        }
    }
}

/// Why there is no result yet; `None` if the atomic was not posted, and may be tried again. Boxed, because results that large cost
/// more to move than a lock costs to take.
pub(crate) type NotOver<F> = Option<Box<Posting<F>>>;

#[cold]
#[inline(never)]
fn not_over<F: Fabric>(posting: Posting<F>) -> NotOver<F> {
    Some(Box::new(posting))
}

/// An atomic that is over at once.
#[inline(always)]
pub(crate) fn atomic_now<F: Fabric>(fabric: &F, word: &RemoteWord<F, u64>, amo: Amo<u64>) -> Result<u64, NotOver<F>> {
    match fabric.try_atomic(word, amo) {
        Ok(mut handle) => {
            if !handle.test() {
                return Err(not_over(Posting::InFlight(handle)));
            }
            match handle.wait() {
                Ok(old) => Ok(old),
                Err(error) => Err(not_over(Posting::Over(Err(error)))),
            }
        }
        Err(_) => Err(None),
    }
}

/// The same, polled: a few instructions less where the fabric's handles know that they are over.
#[inline(always)]
pub(crate) fn poll_atomic<F: Fabric>(
    fabric: &F,
    word: &RemoteWord<F, u64>,
    amo: Amo<u64>,
    cx: &mut Context<'_>,
) -> Result<u64, NotOver<F>> {
    match fabric.try_atomic(word, amo) {
        Ok(mut handle) => match Pin::new(&mut handle).poll(cx) {
            Poll::Ready(Ok(old)) => Ok(old),
            Poll::Ready(Err(error)) => Err(not_over(Posting::Over(Err(error)))),
            Poll::Pending => Err(not_over(Posting::InFlight(handle))),
        },
        Err(_) => Err(None),
    }
}
