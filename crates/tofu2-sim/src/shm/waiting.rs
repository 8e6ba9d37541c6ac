//! The leaf futures: what a rank waits for.

use super::{
    endpoint::Endpoint,
    executor,
    stall::{Awaiting, For},
    wakers::{Armed, Key},
};
use core::{
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use rdma_fabric::{Deps, FabricError};
use std::time::Instant;

/// What a wait looks for.
///
/// Not a closure, which the compiler may leave out of line: what it finds, and every error, would go through memory.
pub(super) trait Look {
    type Found;

    /// What is there now, if that takes few instructions to tell; no reason to stop looking otherwise.
    #[inline(always)]
    fn glance(&mut self) -> Option<Self::Found> {
        None
    }

    /// What is there now.
    fn look(&mut self) -> Result<Option<Self::Found>, FabricError>;
}

/// A look that is rare or long enough to be a closure.
pub(super) struct Calling<F>(pub(super) F);

impl<T, F: FnMut() -> Result<Option<T>, FabricError>> Look for Calling<F> {
    type Found = T;

    fn look(&mut self) -> Result<Option<T>, FabricError> {
        (self.0)()
    }
}

/// Wait until `look` finds something, or `deps` says that it never will. `what` tells where that is written.
///
/// When the last dependency has left, two more looks follow before that is an error, with a poll of the whole
/// program between them: what it wrote before leaving counts, and so does what a joined task of this rank does at once.
#[inline(always)]
pub(super) fn until_found<'a, 'd, L: Look>(
    endpoint: &'a Endpoint,
    deps: Deps<'d>,
    what: For,
    look: L,
) -> UntilFound<'a, 'd, L> {
    UntilFound { look, deps, what, wait: Wait::new(endpoint), seen: None, fruitless: 0 }
}

/// See [`until_found`]. The first look is in line with the program, what comes after is not.
#[must_use = "futures do nothing unless they are polled"]
pub(super) struct UntilFound<'a, 'd, L> {
    look: L,
    deps: Deps<'d>,
    what: For,
    wait: Wait<'a>,
    /// Changes of ranks' states when the outlook was last good.
    seen: Option<u64>,
    /// Looks since everybody was seen to have left.
    fruitless: u32,
}

// Nothing in it is pinned.
impl<L> Unpin for UntilFound<'_, '_, L> {}

impl<L: Look> Future for UntilFound<'_, '_, L> {
    type Output = Result<L::Found, FabricError>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(found) = self.look.glance() {
            return Poll::Ready(Ok(found));
        }
        let again = match self.look.look() {
            Ok(Some(found)) => return Poll::Ready(Ok(found)),
            Ok(None) => self.poll_again(cx),
            Err(error) => return Poll::Ready(Err(error)),
        };
        // Taken apart, so that what is found at once stays in registers.
        match again {
            Poll::Ready(Ok(found)) => Poll::Ready(Ok(found)),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<L: Look> UntilFound<'_, '_, L> {
    /// After a fruitless look.
    #[inline(never)]
    fn poll_again(&mut self, cx: &Context<'_>) -> Poll<Result<L::Found, FabricError>> {
        loop {
            match self.expect_more(cx) {
                Ok(Next::Return) => return Poll::Pending,
                Ok(Next::Look) => {}
                Err(error) => {
                    // What a rank wrote before it was lost counts.
                    return Poll::Ready(self.look.look().and_then(|found| found.ok_or(error)));
                }
            }
            if let Some(found) = self.look.look().transpose() {
                return Poll::Ready(found);
            }
        }
    }
}

/// What to do after a fruitless look.
enum Next {
    Return,
    Look,
}

impl<L> UntilFound<'_, '_, L> {
    /// Whether something may still be found; arrange another poll then.
    fn expect_more(&mut self, cx: &Context<'_>) -> Result<Next, FabricError> {
        let endpoint = self.wait.endpoint;
        let changes = endpoint.job().control.changes();
        if self.seen != Some(changes) {
            match endpoint.job().outlook(endpoint.me(), &self.deps) {
                Ok(()) => self.seen = Some(changes),
                Err(FabricError::PeersLeft) if self.fruitless < 2 => {
                    self.fruitless += 1;
                    self.wait.begin_again();
                }
                Err(error) => return Err(error),
            }
        }
        let awaiting = Awaiting::new(self.what, &self.deps);
        Ok(if self.wait.is_arranged(cx, awaiting, None, None) { Next::Return } else { Next::Look })
    }
}

/// The longest time between two looks at what nobody rings a bell for.
const LOOK_AGAIN: Duration = Duration::from_micros(200);

/// Wait until `ready`, which nobody rings a bell for: look now and then, more and more seldom.
pub(super) fn until_ready(
    endpoint: &Endpoint,
    what: For,
    mut ready: impl FnMut() -> Result<bool, FabricError>,
) -> impl Future<Output = Result<(), FabricError>> {
    let mut wait = Wait::new(endpoint);
    poll_fn(move |cx| {
        loop {
            if ready()? {
                return Poll::Ready(Ok(()));
            }
            if wait.is_arranged_for_later(cx, what)? {
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
            if wait.is_arranged(cx, Awaiting::by_itself(), None, at) {
                return Poll::Pending;
            }
        }
    })
}

/// Fruitless polls under a foreign executor before a waker is left: a peer that answers at once is faster than a park.
const FOREIGN_SPINS: u32 = 64;

/// One wait, and how it comes to be polled again.
pub(super) struct Wait<'a> {
    endpoint: &'a Endpoint,
    /// Whether the next fruitless poll is the first.
    first: bool,
    /// Fruitless polls by foreign executors since the last time it was woken.
    spins: u32,
    /// Where its waker lies, if a foreign executor polls it.
    key: Option<Key>,
}

impl<'a> Wait<'a> {
    #[inline(always)]
    pub(super) fn new(endpoint: &'a Endpoint) -> Self {
        Wait { endpoint, first: true, spins: 0, key: None }
    }

    #[inline(always)]
    pub(super) fn endpoint(&self) -> &'a Endpoint {
        self.endpoint
    }

    /// Something happened: poll soon.
    fn begin_again(&mut self) {
        (self.first, self.spins) = (true, 0);
    }

    /// Arrange another poll for something that nobody rings a bell for. If false, the caller looks again first.
    ///
    /// # Errors
    /// [`FabricError::Deadlock`].
    pub(super) fn is_arranged_for_later(&mut self, cx: &Context<'_>, what: For) -> Result<bool, FabricError> {
        if what != For::ItsEnd {
            self.endpoint.job().control.can_go_on()?;
        }
        Ok(self.is_arranged(cx, Awaiting::new(what, &Deps::All), Some(LOOK_AGAIN), None))
    }

    /// Arrange another poll, after what is awaited was written, `longest` has passed or `until` has come. If false, the caller looks
    /// again first.
    fn is_arranged(
        &mut self,
        cx: &Context<'_>,
        awaiting: Awaiting,
        longest: Option<Duration>,
        until: Option<Instant>,
    ) -> bool {
        self.endpoint.serve_queues();
        let mut wish = self.endpoint.wish(awaiting, core::mem::take(&mut self.first));
        wish.until = until;
        wish.longest = longest.unwrap_or(wish.longest);
        executor::is_noted(cx, wish) || self.is_armed(cx, awaiting.what, longest, until)
    }

    #[cold]
    fn is_armed(&mut self, cx: &Context<'_>, what: For, longest: Option<Duration>, until: Option<Instant>) -> bool {
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
