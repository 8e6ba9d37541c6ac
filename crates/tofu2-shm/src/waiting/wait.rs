//! Waits of a rank, and how each of them is polled again.

use super::{
    block_on,
    wakers::{Armed, Key},
    watchdog::{Awaiting, WaitsFor},
};
use crate::endpoint::Endpoint;
use core::{
    future::{Future, poll_fn},
    mem::ManuallyDrop,
    task::{Context, Poll},
    time::Duration,
};
use rdma_fabric::{Deps, FabricError, Result, provider::WaitState};
use std::time::Instant;

/// The longest time between two checks of a condition that rings no doorbell.
const LOOK_AGAIN: Duration = Duration::from_micros(200);

/// The number of checks in one poll of a wait for a word or a notice.
const SPIN_LIMIT: u64 = 4;

/// Fruitless polls under another executor before a waker is registered: if a peer answers
/// immediately, polling is faster than parking.
const FOREIGN_SPINS: u32 = 64;

/// Waits until `look` finds something, or `deps` shows that it never will. `what` is the position
/// where the awaited value will be written.
pub(crate) fn until_found<T>(
    endpoint: &Endpoint,
    deps: Deps<'_>,
    what: WaitsFor,
    mut look: impl FnMut() -> Result<Option<T>>,
) -> impl Future<Output = Result<T>> {
    let mut wait = Wait::new(endpoint);
    poll_fn(move |cx| {
        loop {
            if let Some(found) = look().transpose() {
                return Poll::Ready(found);
            }
            match wait.until_polled(cx, what, &deps) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(())) => {}
                // Writes of a rank before it was lost take precedence.
                Poll::Ready(Err(error)) => return Poll::Ready(look().and_then(|found| found.ok_or(error))),
            }
        }
    })
}

/// Waits until `ready` holds, for conditions that ring no doorbell: checks at growing intervals.
pub(crate) fn until_ready(
    endpoint: &Endpoint,
    what: WaitsFor,
    mut ready: impl FnMut() -> Result<bool>,
) -> impl Future<Output = Result<()>> {
    let mut wait = Wait::new(endpoint);
    poll_fn(move |cx| wait.until_ready(cx, what, &mut ready))
}

/// One wait, and how it is polled again.
pub(crate) struct Wait<'a> {
    endpoint: &'a Endpoint,
    /// Whether the next fruitless poll is the first.
    first: bool,
    /// Fruitless polls by other executors since the wait was last woken.
    spins: u32,
    /// The key of the wait's waker, if another executor polls it.
    key: Option<Key>,
    /// The count of state changes when the wait was last found able to end.
    seen: Option<u64>,
    /// The number of checks since all dependencies were seen to have left.
    fruitless: u32,
}

impl<'a> Wait<'a> {
    #[inline(always)]
    pub(crate) fn new(endpoint: &'a Endpoint) -> Self {
        Wait { endpoint, first: true, spins: 0, key: None, seen: None, fruitless: 0 }
    }

    /// Decides how to proceed after a fruitless check. Ready means that the caller must check again
    /// immediately.
    ///
    /// When the last dependency has left, two more checks follow before this is an error, with a
    /// poll of the whole program between them, to find writes that the dependency made before it
    /// left, and writes that a joined task of this rank makes immediately.
    pub(crate) fn until_polled(&mut self, cx: &Context<'_>, what: WaitsFor, deps: &Deps<'_>) -> Poll<Result<()>> {
        let endpoint = self.endpoint;
        let changes = endpoint.job().control.changes();
        if self.seen != Some(changes) {
            match endpoint.outlook(deps) {
                Ok(()) => self.seen = Some(changes),
                Err(FabricError::PeersLeft) if self.fruitless < 2 => {
                    self.fruitless += 1;
                    // Something happened: poll soon.
                    (self.first, self.spins) = (true, 0);
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        if self.is_arranged(cx, Awaiting::new(what, deps), None, None) { Poll::Pending } else { Poll::Ready(Ok(())) }
    }

    /// Polls whether a condition that rings no doorbell is `ready`.
    ///
    /// # Errors
    /// [`FabricError::Deadlock`], [`FabricError::HelperFailed`], [`FabricError::Aborted`], and the
    /// errors of `ready`.
    pub(crate) fn until_ready(
        &mut self,
        cx: &Context<'_>,
        what: WaitsFor,
        ready: &mut dyn FnMut() -> Result<bool>,
    ) -> Poll<Result<()>> {
        loop {
            if ready()? {
                return Poll::Ready(Ok(()));
            }
            if what != WaitsFor::Itself {
                self.endpoint.job().control.can_continue()?;
                self.endpoint.helpers().can_continue(self.endpoint.me())?;
            }
            if self.is_arranged(cx, Awaiting::new(what, &Deps::All), Some(LOOK_AGAIN), None) {
                return Poll::Pending;
            }
        }
    }

    /// Polls whether `at` has passed; never ready if `None`.
    ///
    /// # Errors
    /// [`FabricError::Aborted`].
    pub(crate) fn until_time(&mut self, cx: &Context<'_>, at: Option<Instant>) -> Poll<Result<()>> {
        loop {
            if at.is_some_and(|at| Instant::now() >= at) {
                return Poll::Ready(Ok(()));
            }
            self.endpoint.job().control.not_aborted()?;
            if self.is_arranged(cx, Awaiting::by_itself(), None, at) {
                return Poll::Pending;
            }
        }
    }

    /// Arranges another poll for when the awaited write has happened, `longest` has elapsed or
    /// `until` has passed. If it returns false, the caller must first check again.
    fn is_arranged(
        &mut self,
        cx: &Context<'_>,
        awaiting: Awaiting,
        longest: Option<Duration>,
        until: Option<Instant>,
    ) -> bool {
        self.endpoint.serve_queues();
        let mut request = self.endpoint.poll_request(awaiting, core::mem::take(&mut self.first));
        request.until = until;
        request.longest = longest.unwrap_or(request.longest);
        block_on::note(cx, request) || self.is_armed(cx, awaiting.what, longest, until)
    }

    #[cold]
    fn is_armed(
        &mut self,
        cx: &Context<'_>,
        what: WaitsFor,
        longest: Option<Duration>,
        until: Option<Instant>,
    ) -> bool {
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
        match wakers.arm(cx.waker(), what.watch(), longest.unwrap_or(self.endpoint.job().longest_sleep()), until) {
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

// ----- waits whose state is kept between two polls -----

// The fourth word counts checks in waits for a word or a notice; queues and gates use it
// differently.
/// Bits of a wait state's first word: whether there is a wait, and whether it was polled without
/// success, has seen the ranks' states, and has left a waker.
const BEGUN: u64 = 1;
const POLLED: u64 = 1 << 1;
const SEEN: u64 = 1 << 2;
const KEPT: u64 = 1 << 3;
/// Position, above those bits, of the count of checks since all dependencies had left; above that,
/// of the polls by other executors.
const FRUITLESS: u32 = 8;
const SPINS: u32 = 32;

impl<'a> Wait<'a> {
    fn of(endpoint: &'a Endpoint, wait_state: &WaitState) -> Self {
        let [bits, seen, key, _] = wait_state.0;
        Wait {
            endpoint,
            first: bits & POLLED == 0,
            spins: (bits >> SPINS) as u32,
            key: (bits & KEPT != 0).then_some(key),
            seen: (bits & SEEN != 0).then_some(seen),
            fruitless: u32::from((bits >> FRUITLESS) as u8),
        }
    }

    /// Returns whether the caller must check again before the wait in `slot` is arranged. A few
    /// more checks detect events that are nanoseconds away sooner, unless the rank that causes them
    /// may need this CPU.
    #[inline]
    pub(crate) fn polls_once_more(endpoint: &Endpoint, wait_state: &mut WaitState) -> bool {
        wait_state.0[0] |= BEGUN;
        wait_state.0[3] = wait_state.0[3].wrapping_add(1) % SPIN_LIMIT;
        wait_state.0[3] != 0 && !endpoint.job().oversubscribed
    }

    /// Continues the wait in `slot`, or begins one.
    #[inline]
    pub(crate) fn resume<T>(
        endpoint: &'a Endpoint,
        wait_state: &mut WaitState,
        poll: impl FnOnce(&mut Self) -> Poll<T>,
    ) -> Poll<T> {
        // Dropping it would release the waker that the wait state still holds.
        let mut wait = ManuallyDrop::new(Wait::of(endpoint, wait_state));
        let stands = poll(&mut wait);
        let flag = |set: bool, bit| if set { bit } else { 0 };
        let flags = flag(!wait.first, POLLED) | flag(wait.seen.is_some(), SEEN) | flag(wait.key.is_some(), KEPT);
        wait_state.0[0] = BEGUN | flags | u64::from(wait.fruitless) << FRUITLESS | u64::from(wait.spins) << SPINS;
        (wait_state.0[1], wait_state.0[2]) = (wait.seen.unwrap_or(0), wait.key.unwrap_or(0));
        stands
    }

    /// Ends the wait in `slot`, if there is one.
    pub(crate) fn end(endpoint: &'a Endpoint, wait_state: &mut WaitState) {
        drop(Wait::of(endpoint, wait_state));
        *wait_state = WaitState::default();
    }
}
