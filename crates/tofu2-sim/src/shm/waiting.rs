//! The leaf futures: what a rank waits for.

use super::{
    doorbell::Watch,
    endpoint::Endpoint,
    executor::{self, Wish},
};
use core::{
    future::{Future, poll_fn},
    task::Poll,
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
    let mut first = true;
    // Changes of ranks' states when the outlook was last good.
    let mut seen = None;
    let mut fruitless = 0;
    poll_fn(move |cx| {
        if let Some(found) = look()? {
            return Poll::Ready(Ok(found));
        }
        let job = endpoint.job();
        let changes = job.control.changes();
        if seen != Some(changes) {
            match job.outlook(endpoint.me(), &deps) {
                Ok(()) => seen = Some(changes),
                Err(FabricError::PeersLeft) if fruitless < 2 => (fruitless, first) = (fruitless + 1, true),
                Err(error) => {
                    // What a rank wrote before it was lost counts.
                    return Poll::Ready(look()?.ok_or(error));
                }
            }
        }
        executor::pending(cx, endpoint.wish(watch, std::mem::take(&mut first)));
        Poll::Pending
    })
}

/// Wait until `ready`, which nobody rings a bell for: look now and then, more and more seldom.
pub(super) fn until_ready(
    endpoint: &Endpoint,
    mut ready: impl FnMut() -> Result<bool, FabricError>,
) -> impl Future<Output = Result<(), FabricError>> {
    let mut first = true;
    poll_fn(move |cx| {
        if ready()? {
            return Poll::Ready(Ok(()));
        }
        let wish = endpoint.wish(Watch::Nothing, std::mem::take(&mut first));
        executor::pending(cx, Wish { longest: Duration::from_micros(200), ..wish });
        Poll::Pending
    })
}

/// Wait until `at`; for ever if `None`.
pub(super) fn until_time(endpoint: &Endpoint, at: Option<Instant>) -> impl Future<Output = ()> {
    let mut first = true;
    poll_fn(move |cx| {
        if at.is_some_and(|at| Instant::now() >= at) {
            return Poll::Ready(());
        }
        executor::pending(cx, Wish { until: at, ..endpoint.wish(Watch::Nothing, std::mem::take(&mut first)) });
        Poll::Pending
    })
}
