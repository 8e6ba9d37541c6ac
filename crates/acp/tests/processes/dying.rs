//! Ranks that kill themselves: at a chosen atomic, or after a given time.

use checks::killed::die;
use rdma_fabric::{
    Amo, Fabric, Result, forward,
    provider::{Ended, Place, Posted, Provider, WaitFor, WaitState},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    task::{Context, Poll},
};

/// Returns this rank's fabric, on which it dies with the first successful compare and swap after it
/// is armed: the one that takes a lock.
pub(crate) fn dying(fabric: &Fabric, armed: Arc<AtomicBool>) -> Fabric {
    fabric.layered(Mortal { below: fabric.clone(), armed })
}

#[derive(Debug)]
struct Mortal {
    below: Fabric,
    armed: Arc<AtomicBool>,
}

impl Provider for Mortal {
    forward!(alloc, alloc_symmetric, adopt, release, resolve_hidden, wake, nop, poll, test, forget, try_notice);
    forward!(copy, now, detach, optional, read, write, put, get);

    fn atomic(&self, word: &Place, amo: Amo<u64>) -> Posted {
        let posted = self.below.provider().atomic(word, amo);
        match (&posted, amo) {
            (Posted::Complete(before), Amo::CompareSwap { expected, .. })
                if *before == expected && self.armed.load(SeqCst) =>
            {
                die()
            }
            _ => posted,
        }
    }

    fn poll_wait(&self, wait_state: &mut WaitState, wait_for: WaitFor<'_>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.below.provider().poll_wait(wait_state, wait_for, cx)
    }

    fn end_wait(&self, wait_state: &mut WaitState, wait_for: WaitFor<'_>, ended: Ended) {
        self.below.provider().end_wait(wait_state, wait_for, ended);
    }
}
