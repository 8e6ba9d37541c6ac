//! Atomics that may be over when they are posted.

use core::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};
use rdma_fabric::{Amo, Fabric, FabricError, Handle, RemoteWord};

/// An atomic that was posted.
#[derive(Debug)]
pub enum Posting {
    InFlight(Handle<u64>),
    Over(Result<u64, FabricError>),
}

impl Posting {
    pub(crate) async fn result(self) -> Result<u64, FabricError> {
        match self {
            Posting::InFlight(handle) => handle.await,
            Posting::Over(result) => result,
        }
    }
}

/// Why there is no result yet; `None` if the atomic was not posted, and may be tried again. Boxed, because results that large cost
/// more to move than a lock costs to take.
pub(crate) type NotOver = Option<Box<Posting>>;

#[cold]
#[inline(never)]
fn not_over(posting: Posting) -> NotOver {
    Some(Box::new(posting))
}

/// An atomic that is over at once.
///
/// The call out of line is given a copy of `amo`: the one whose address is passed would be kept in memory on the short path too.
#[inline(always)]
pub(crate) fn atomic_now(fabric: &Fabric, word: &RemoteWord<u64>, amo: Amo<u64>) -> Result<u64, NotOver> {
    match fabric.atomic_now(word, amo) {
        Some(old) => Ok(old),
        None => test_atomic(fabric, word, amo.to_bits()),
    }
}

#[inline(never)]
fn test_atomic(fabric: &Fabric, word: &RemoteWord<u64>, amo: Amo<u64>) -> Result<u64, NotOver> {
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
pub(crate) fn poll_atomic(
    fabric: &Fabric,
    word: &RemoteWord<u64>,
    amo: Amo<u64>,
    cx: &mut Context<'_>,
) -> Result<u64, NotOver> {
    match fabric.atomic_now(word, amo) {
        Some(old) => Ok(old),
        None => await_atomic(fabric, word, amo.to_bits(), cx),
    }
}

#[inline(never)]
fn await_atomic(fabric: &Fabric, word: &RemoteWord<u64>, amo: Amo<u64>, cx: &mut Context<'_>) -> Result<u64, NotOver> {
    match fabric.try_atomic(word, amo) {
        Ok(mut handle) => match Pin::new(&mut handle).poll(cx) {
            Poll::Ready(Ok(old)) => Ok(old),
            Poll::Ready(Err(error)) => Err(not_over(Posting::Over(Err(error)))),
            Poll::Pending => Err(not_over(Posting::InFlight(handle))),
        },
        Err(_) => Err(None),
    }
}
