//! Ranks that kill themselves: at a chosen atomic, or after a given time.

use checks::killed::die;
use rdma_fabric::{
    Amo, Fabric, Result, forward,
    provider::{Ended, Goal, Place, Posted, Provider, Slot},
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
    fabric.under(Mortal { below: fabric.clone(), armed })
}

#[derive(Debug)]
struct Mortal {
    below: Fabric,
    armed: Arc<AtomicBool>,
}

impl Provider for Mortal {
    forward!(alloc, alloc_symmetric, adopt, release, resolve_hidden, ring, nop, poll, test, forget, try_notice);
    forward!(copy, now, detach, optional, read, write, put, get);

    fn atomic(&self, word: &Place, amo: Amo<u64>) -> Posted {
        let posted = self.below.provider().atomic(word, amo);
        match (&posted, amo) {
            (Posted::Over(before), Amo::CompareSwap { expected, .. })
                if *before == expected && self.armed.load(SeqCst) =>
            {
                die()
            }
            _ => posted,
        }
    }

    fn poll_wait(&self, slot: &mut Slot, goal: Goal<'_>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.below.provider().poll_wait(slot, goal, cx)
    }

    fn end_wait(&self, slot: &mut Slot, goal: Goal<'_>, ended: Ended) {
        self.below.provider().end_wait(slot, goal, ended);
    }
}
