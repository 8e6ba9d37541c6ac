//! Atomics of fast paths ([`rdma_fabric::fast_path`]): executed if they complete immediately.

use rdma_fabric::{Amo, Fabric, FabricError, Handle, RemoteWord};

/// An atomic that was posted.
#[derive(Debug)]
pub(crate) enum Posting {
    InFlight(Handle<u64>),
    Complete(Result<u64, FabricError>),
}

impl Posting {
    pub(crate) async fn result(self) -> Result<u64, FabricError> {
        match self {
            Posting::InFlight(handle) => handle.await,
            Posting::Complete(result) => result,
        }
    }
}

/// The state of an atomic without a result; `None` if it was not posted, and may be tried again.
/// Boxed, because moving such a large result costs more than taking a lock.
pub(crate) type Unfinished = Option<Box<Posting>>;

#[cold]
#[inline(never)]
fn unfinished(posting: Posting) -> Unfinished {
    Some(Box::new(posting))
}

/// Executes an atomic that completes immediately.
///
/// The out-of-line call receives a copy of `amo`: if the original's address were passed, the
/// original would be kept in memory even on the fast path.
#[inline(always)]
pub(crate) fn atomic_now(fabric: &Fabric, word: &RemoteWord<u64>, amo: Amo<u64>) -> Result<u64, Unfinished> {
    match fabric.direct().atomic(word, amo) {
        Some(old) => Ok(old),
        None => test_atomic(fabric, word, amo.to_bits()),
    }
}

#[inline(never)]
fn test_atomic(fabric: &Fabric, word: &RemoteWord<u64>, amo: Amo<u64>) -> Result<u64, Unfinished> {
    match fabric.try_atomic(word, amo) {
        Ok(mut handle) => {
            if !handle.test() {
                return Err(unfinished(Posting::InFlight(handle)));
            }
            match handle.wait() {
                Ok(old) => Ok(old),
                Err(error) => Err(unfinished(Posting::Complete(Err(error)))),
            }
        }
        Err(_) => Err(None),
    }
}
