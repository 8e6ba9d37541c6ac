//! Ranks that kill themselves: at a chosen call of the fabric, or after a time.

use checks::killed::die;
use rdma_fabric::{
    Amo, Fabric, Result, forward,
    provider::{Ended, Place, Posted, Provider, Sink, Source, WaitFor, WaitState},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    task::{Context, Poll},
};

/// The number of points that a rank may pass: before and after each put, get, atomic and flush, and
/// the end of each wait. Unlimited until it is [set](Points::set).
#[derive(Debug)]
pub(crate) struct Points(AtomicU64);

impl Points {
    pub(crate) fn endless() -> Arc<Self> {
        Arc::new(Points(AtomicU64::new(u64::MAX)))
    }

    /// Makes the rank die after `more` further points.
    pub(crate) fn set(&self, more: u64) {
        self.0.store(more, SeqCst);
    }

    fn pass(&self) {
        let left = self.0.fetch_update(SeqCst, SeqCst, |left| match left {
            u64::MAX => None,
            left => Some(left.wrapping_sub(1)),
        });
        if left == Ok(0) {
            die();
        }
    }

    fn around<T>(&self, call: impl FnOnce() -> T) -> T {
        self.pass();
        let out = call();
        self.pass();
        out
    }
}

/// Returns this rank's fabric with these points.
pub(crate) fn dying(fabric: &Fabric, points: Arc<Points>) -> Fabric {
    fabric.layered(Mortal { below: fabric.clone(), points })
}

#[derive(Debug)]
struct Mortal {
    below: Fabric,
    points: Arc<Points>,
}

impl Provider for Mortal {
    forward!(alloc, alloc_symmetric, adopt, release, resolve_hidden, wake, nop, poll, test, forget, try_notice);
    forward!(copy, now, detach, optional, read, write);

    fn put(&self, to: &Place, from: Source<'_>, notice: Option<u64>) -> Posted {
        self.points.around(|| self.below.provider().put(to, from, notice))
    }

    fn get(&self, from: &Place, to: Sink<'_>) -> Posted {
        self.points.around(|| self.below.provider().get(from, to))
    }

    fn atomic(&self, word: &Place, amo: Amo<u64>) -> Posted {
        self.points.around(|| self.below.provider().atomic(word, amo))
    }

    fn poll_wait(&self, wait_state: &mut WaitState, wait_for: WaitFor<'_>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let flushed = matches!(wait_for, WaitFor::Flush(_));
        if flushed && wait_state.is_empty() {
            self.points.pass();
        }
        let polled = self.below.provider().poll_wait(wait_state, wait_for, cx);
        if flushed && polled.is_ready() {
            self.points.pass();
        }
        polled
    }

    fn end_wait(&self, wait_state: &mut WaitState, wait_for: WaitFor<'_>, ended: Ended) {
        let is_word = matches!(wait_for, WaitFor::Word(..));
        self.below.provider().end_wait(wait_state, wait_for, ended);
        if is_word && ended == Ended::Reached {
            self.points.pass();
        }
    }
}
