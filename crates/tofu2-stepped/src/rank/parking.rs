//! Parking a rank's thread in the simulator.
//!
//! Between two parks no virtual time passes for the rank, so a wait that has found nothing needs no
//! request of its own: it is [deferred](super::deferred) until [`Link::park`], which begins all of them in one
//! request. That request ends when the simulator would poll the rank's task again, and reports which waits and
//! operations have ended.

use super::{deferred::NextPark, link::Link};
use crate::wire::{FabricCall, Request};
use core::{
    cell::RefCell,
    pin::Pin,
    task::{Context, Waker},
};
use rdma_fabric::{FabricError, Result, provider::Deferred as DeferredWork};
use std::{fs, os::linux::fs::MetadataExt as _, sync::Arc, task::Wake};
use tofu2_shm::{Parker, park_by, polls_with};

impl Link {
    /// Lets the task of `cx`, if there is one, be polled again when the thread has parked.
    ///
    /// # Errors
    /// [`FabricError::Unsupported`] if the thread would not park in the simulator.
    pub(super) fn listen(self: &Arc<Self>, cx: &Context<'_>) -> Result<()> {
        if is_noop(cx) {
            return Ok(());
        }
        if !park_by(self) {
            return Err(FabricError::Unsupported { feature: &"a runtime of the program's own in virtual time" });
        }
        if !polls_with(cx) {
            self.deferred().wake_later(cx.waker().clone());
        }
        Ok(())
    }
}

impl Parker for Link {
    fn park(&self, is_woken: bool) {
        if poll_detached() {
            return;
        }
        let Some(NextPark { operations, waits, until }) = self.deferred().next_park() else { return };
        let call = FabricCall::Park { operations, waits, is_woken, until };
        let parked = self.exchange(&Request::Fabric { call });
        let wakers = self.deferred().parked(parked);
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// Returns whether no task waits ([`Waker::noop`]).
pub(super) fn is_noop(cx: &Context<'_>) -> bool {
    cx.waker().data().is_null()
}

/// Returns whether the process has other threads.
pub(super) fn has_threads() -> bool {
    // A folder has two links more than it has folders.
    fs::metadata("/proc/self/task").is_ok_and(|tasks| tasks.st_nlink() > 3)
}

// ----- remaining work of dropped futures ---------------------------------------------------------

/// The remaining work of a dropped future.
type Rest = Pin<Box<dyn Future<Output = ()>>>;

thread_local! {
    /// That of this thread's dropped futures; polled before the thread parks.
    static DETACHED: RefCell<Vec<Rest>> = const { RefCell::new(Vec::new()) };
}

/// Its waker: it is polled before each park anyway.
struct AtNextPark;

impl Wake for AtNextPark {
    fn wake(self: Arc<Self>) {}
}

pub(super) fn detach(work: DeferredWork<'_>) {
    let rest = work.boxed();
    DETACHED.with_borrow_mut(|all| all.push(rest));
}

/// Returns whether this thread has such work.
pub(super) fn has_detached() -> bool {
    DETACHED.with_borrow(|all| !all.is_empty())
}

/// Polls all of it. Returns whether any has ended.
fn poll_detached() -> bool {
    // Polling and dropping may detach more.
    let all = DETACHED.take();
    if all.is_empty() {
        return false;
    }
    let waker = Waker::from(Arc::new(AtNextPark));
    let mut cx = Context::from_waker(&waker);
    let before = all.len();
    let mut rest = all;
    rest.retain_mut(|work| work.as_mut().poll(&mut cx).is_pending());
    let has_ended = rest.len() < before;
    DETACHED.with_borrow_mut(|all| all.splice(..0, rest).for_each(drop));
    has_ended
}
