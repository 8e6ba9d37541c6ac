//! Waits of a rank's futures, which the thread that polls them passes to the simulator when it parks.
//!
//! Between two parks no virtual time passes for the rank, so a wait that has found nothing needs no
//! request of its own: it is deferred until [`Link::park`], which begins all of them in one request. That
//! request ends when the simulator would poll the rank's task again.

use super::link::Link;
use crate::wire::{AwaitedEvent, FabricCall, ParkUntil, Request, Target};
use core::{
    cell::RefCell,
    mem::take,
    pin::Pin,
    task::{Context, Waker},
};
use rdma_fabric::{FabricError, Result, provider::Deferred as DeferredWork};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::linux::fs::MetadataExt as _,
    sync::Arc,
    task::Wake,
};
use tofu2_shm::{Parker, park_by, polls_with};

/// Parks in a row of a process with several threads that end after a millisecond; a later one lasts until
/// something happens, so that ranks that wait forever are a deadlock.
const SHORT_PARKS: u32 = 4096;

/// The waits of a rank.
#[derive(Debug, Default)]
pub(super) struct Deferred {
    /// Operations posted since time last passed: they are in flight.
    fresh: BTreeSet<u64>,
    /// Operations to wait for.
    operations: BTreeSet<u64>,
    /// Waits that have not begun.
    waits: BTreeMap<u64, AwaitedEvent>,
    /// Waits that the simulator has begun and not ended.
    begun: BTreeSet<u64>,
    /// The words of all waits for words.
    words: BTreeMap<u64, Target>,
    /// The number of the last wait.
    last: u64,
    /// The outcomes of waits that the simulator has ended.
    outcomes: BTreeMap<u64, Result<()>>,
    /// Whether this rank has written an awaited word itself.
    is_written: bool,
    /// Wakers of tasks that another executor than `block_on` polls.
    wakers: Vec<Waker>,
    /// The end of the next park.
    until: ParkUntil,
    /// The number of parks.
    parks: u64,
    /// Parks in a row that were short.
    short: u32,
    /// The error that ended the simulation.
    failure: Option<FabricError>,
}

impl Deferred {
    pub(super) fn time_passes(&mut self) {
        self.fresh.clear();
    }

    pub(super) fn posted(&mut self, number: u64) {
        self.fresh.insert(number);
    }

    /// Returns whether an operation is certainly in flight. If so, and `waits`, the next park waits for it.
    pub(super) fn defers(&mut self, number: u64, waits: bool) -> bool {
        let is_fresh = self.fresh.contains(&number);
        if is_fresh && waits {
            self.operations.insert(number);
        }
        is_fresh
    }

    /// Forgets an operation.
    pub(super) fn forget(&mut self, number: u64) {
        self.fresh.remove(&number);
        self.operations.remove(&number);
    }

    /// Returns the number of a new wait.
    pub(super) fn next_wait(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Defers a wait until the next park.
    pub(super) fn defer(&mut self, wait: u64, event: AwaitedEvent) {
        if let AwaitedEvent::Word { word, .. } = &event {
            self.words.insert(wait, *word);
        }
        self.waits.insert(wait, event);
    }

    /// Returns the outcome of a wait if the simulator has ended it, or itself.
    pub(super) fn outcome(&mut self, wait: u64) -> Option<Result<()>> {
        let outcome = self.outcomes.remove(&wait).or_else(|| self.failure.clone().map(Err));
        if outcome.is_some() {
            self.words.remove(&wait);
        }
        outcome
    }

    /// Notes that the simulator has begun a wait.
    pub(super) fn begin(&mut self, wait: u64) {
        self.begun.insert(wait);
    }

    /// Ends a wait. Returns whether the simulator has to end it as well.
    pub(super) fn end(&mut self, wait: u64) -> bool {
        self.words.remove(&wait);
        self.waits.remove(&wait);
        self.outcomes.remove(&wait);
        self.begun.remove(&wait)
    }

    /// Notes the reply to a park.
    fn parked(&mut self, begun: Vec<u64>, parked: Result<Vec<(u64, Result<()>)>>) {
        match parked {
            Ok(outcomes) => {
                self.begun.extend(begun);
                for (wait, outcome) in outcomes {
                    self.begun.remove(&wait);
                    self.outcomes.insert(wait, outcome);
                }
            }
            Err(error) => self.failure = Some(error),
        }
    }

    /// Returns the number of parks.
    pub(super) fn parks(&self) -> u64 {
        self.parks
    }

    /// Sets the end of the next park.
    pub(super) fn pause(&mut self, until: ParkUntil) {
        self.until = until;
    }

    /// Returns the end of a park.
    fn next_until(&mut self) -> ParkUntil {
        self.parks += 1;
        let until = take(&mut self.until);
        let is_short = matches!(until, ParkUntil::Awaited) && self.short < SHORT_PARKS && has_threads();
        self.short = if is_short { self.short + 1 } else { 0 };
        if is_short { ParkUntil::Soon } else { until }
    }

    /// Notes that the rank has written its own memory.
    pub(super) fn written(&mut self, at: &Target) {
        let Target { at, len, .. } = *at;
        let overlaps = |word: &Target| {
            word.at.region == at.region
                && word.at.offset < at.offset + len as u64
                && at.offset < word.at.offset + word.len as u64
        };
        self.is_written |= self.words.values().any(overlaps);
    }
}

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
            self.deferred().wakers.push(cx.waker().clone());
        }
        Ok(())
    }
}

impl Parker for Link {
    fn park(&self, is_woken: bool) {
        if poll_detached() {
            return;
        }
        let (begun, call) = {
            let mut deferred = self.deferred();
            if take(&mut deferred.is_written) || deferred.failure.is_some() {
                return;
            }
            let until = deferred.next_until();
            let operations = take(&mut deferred.operations).into_iter().collect();
            let waits = take(&mut deferred.waits);
            let begun = waits.keys().copied().collect();
            (begun, FabricCall::Park { operations, waits: waits.into_iter().collect(), is_woken, until })
        };
        let parked = self.exchange(&Request::Fabric { call });
        let wakers = {
            let mut deferred = self.deferred();
            deferred.parked(begun, parked);
            take(&mut deferred.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// Returns whether no task waits ([`Waker::noop`]).
pub(super) fn is_noop(cx: &Context<'_>) -> bool {
    cx.waker().data().is_null()
}

/// Returns whether the process has other threads.
fn has_threads() -> bool {
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
