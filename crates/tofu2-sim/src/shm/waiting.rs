//! The leaf futures: what a rank waits for.

use super::{
    doorbell::Watch,
    endpoint::Endpoint,
    executor,
    wakers::{Armed, Key},
};
use core::{
    future::{Future, poll_fn},
    task::{Context, Poll},
    time::Duration,
};
use rdma_fabric::{Deps, FabricError};
use std::time::Instant;

/// Wait until `look` finds something, or `deps` says that it never will. `watch` is where that is written.
///
/// When the last dependency has left, two more looks follow before that is an error, with a poll of the whole
/// program between them: what it wrote before leaving counts, and so does what a joined task of this rank does at once.
pub(super) fn until_found<T>(
    endpoint: &Endpoint,
    deps: Deps<'_>,
    watch: Watch,
    mut look: impl FnMut() -> Result<Option<T>, FabricError>,
) -> impl Future<Output = Result<T, FabricError>> {
    let mut wait = Wait::new(endpoint);
    // Changes of ranks' states when the outlook was last good.
    let mut seen = None;
    let mut fruitless = 0;
    poll_fn(move |cx| {
        loop {
            if let Some(found) = look()? {
                return Poll::Ready(Ok(found));
            }
            let job = endpoint.job();
            let changes = job.control.changes();
            if seen != Some(changes) {
                match job.outlook(endpoint.me(), &deps) {
                    Ok(()) => seen = Some(changes),
                    Err(FabricError::PeersLeft) if fruitless < 2 => {
                        fruitless += 1;
                        wait.begin_again();
                    }
                    Err(error) => {
                        // What a rank wrote before it was lost counts.
                        return Poll::Ready(look()?.ok_or(error));
                    }
                }
            }
            if wait.is_arranged(cx, watch, None, None) {
                return Poll::Pending;
            }
        }
    })
}

/// The longest time between two looks at what nobody rings a bell for.
const LOOK_AGAIN: Duration = Duration::from_micros(200);

/// Wait until `ready`, which nobody rings a bell for: look now and then, more and more seldom.
pub(super) fn until_ready(
    endpoint: &Endpoint,
    mut ready: impl FnMut() -> Result<bool, FabricError>,
) -> impl Future<Output = Result<(), FabricError>> {
    let mut wait = Wait::new(endpoint);
    poll_fn(move |cx| {
        loop {
            if ready()? {
                return Poll::Ready(Ok(()));
            }
            if wait.is_arranged(cx, Watch::Nothing, Some(LOOK_AGAIN), None) {
                return Poll::Pending;
            }
        }
    })
}

/// Wait until `at`; for ever if `None`.
pub(super) fn until_time(endpoint: &Endpoint, at: Option<Instant>) -> impl Future<Output = ()> {
    let mut wait = Wait::new(endpoint);
    poll_fn(move |cx| {
        loop {
            if at.is_some_and(|at| Instant::now() >= at) {
                return Poll::Ready(());
            }
            if wait.is_arranged(cx, Watch::Nothing, None, at) {
                return Poll::Pending;
            }
        }
    })
}

/// Fruitless polls under a foreign executor before a waker is left: a peer that answers at once is faster than a park.
const FOREIGN_SPINS: u32 = 64;

/// One wait, and how it comes to be polled again.
struct Wait<'a> {
    endpoint: &'a Endpoint,
    /// Whether the next fruitless poll is the first.
    first: bool,
    /// Fruitless polls by foreign executors since the last time it was woken.
    spins: u32,
    /// Where its waker lies, if a foreign executor polls it.
    key: Option<Key>,
}

impl<'a> Wait<'a> {
    fn new(endpoint: &'a Endpoint) -> Self {
        Wait { endpoint, first: true, spins: 0, key: None }
    }

    /// Something happened: poll soon.
    fn begin_again(&mut self) {
        (self.first, self.spins) = (true, 0);
    }

    /// Arrange another poll, after `watch` was written, `longest` has passed or `until` has come. If false, the caller looks
    /// again first.
    fn is_arranged(
        &mut self,
        cx: &Context<'_>,
        watch: Watch,
        longest: Option<Duration>,
        until: Option<Instant>,
    ) -> bool {
        let mut wish = self.endpoint.wish(watch, core::mem::take(&mut self.first));
        wish.until = until;
        wish.longest = longest.unwrap_or(wish.longest);
        executor::is_noted(cx, wish) || self.is_armed(cx, watch, longest, until)
    }

    #[cold]
    fn is_armed(&mut self, cx: &Context<'_>, watch: Watch, longest: Option<Duration>, until: Option<Instant>) -> bool {
        let wakers = self.endpoint.wakers();
        if let Some(key) = self.key {
            if wakers.is_armed(key, cx.waker()) {
                return true;
            }
            // Woken.
            self.key = None;
        }
        if self.spins < FOREIGN_SPINS {
            self.spins += 1;
            cx.waker().wake_by_ref();
            return true;
        }
        match wakers.arm(cx.waker(), watch, longest.unwrap_or(self.endpoint.job().longest_sleep()), until) {
            Armed::Kept(key) => self.key = Some(key),
            Armed::Rung => {}
            Armed::NoThread => {
                cx.waker().wake_by_ref();
                return true;
            }
        }
        false
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.endpoint.wakers().forget(key);
        }
    }
}
