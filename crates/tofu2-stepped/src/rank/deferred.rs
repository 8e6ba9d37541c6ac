//! The operations and waits that a rank's futures wait for, until its thread parks.

use super::parking::has_threads;
use crate::wire::{AwaitedEvent, ParkUntil, Parked, Target};
use core::{mem::take, task::Waker};
use rdma_fabric::{FabricError, Result};
use std::collections::{HashMap, HashSet};

/// Parks in a row of a process with several threads that end after a millisecond; a later one lasts until
/// something happens, so that ranks that wait forever are a deadlock.
const SHORT_PARKS: u32 = 4096;

/// The events for which a rank's futures wait.
#[derive(Debug, Default)]
pub(super) struct Deferred {
    /// Operations that are in flight, as of the time when time last passed.
    in_flight: HashSet<u64>,
    /// Operations to wait for.
    operations: HashSet<u64>,
    /// The outcomes of operations.
    done: HashMap<u64, Result<u64>>,
    /// Waits that have not begun.
    waits: HashMap<u64, AwaitedEvent>,
    /// Waits that the simulator has begun and not ended.
    begun: HashSet<u64>,
    /// The words of all waits for words.
    words: HashMap<u64, Target>,
    /// The number of the last wait.
    last: u64,
    /// The outcomes of waits that the simulator has ended.
    outcomes: HashMap<u64, Result<()>>,
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

/// The waits that a park begins.
#[derive(Debug)]
pub(super) struct NextPark {
    pub(super) operations: Vec<u64>,
    pub(super) waits: Vec<(u64, AwaitedEvent)>,
    pub(super) until: ParkUntil,
}

impl Deferred {
    /// Notes that operations may have completed.
    pub(super) fn time_passes(&mut self) {
        self.in_flight.clear();
    }

    // ----- operations ----------------------------------------------------------------------------

    /// Notes an operation in flight.
    pub(super) fn posted(&mut self, number: u64) {
        self.in_flight.insert(number);
    }

    /// Returns whether an operation is certainly in flight.
    pub(super) fn is_in_flight(&self, number: u64) -> bool {
        self.in_flight.contains(&number)
    }

    /// Lets the next park wait for an operation in flight.
    pub(super) fn awaits(&mut self, number: u64) {
        self.in_flight.insert(number);
        self.operations.insert(number);
    }

    /// Returns the outcome of an operation, if a park has reported it.
    pub(super) fn done(&mut self, number: u64) -> Option<Result<u64>> {
        self.done.remove(&number).or_else(|| self.failure.clone().map(Err))
    }

    /// Returns whether a park has reported the outcome of an operation.
    pub(super) fn is_done(&self, number: u64) -> bool {
        self.done.contains_key(&number)
    }

    /// Forgets an operation. Returns whether the simulator has to forget it as well.
    pub(super) fn forget(&mut self, number: u64) -> bool {
        self.in_flight.remove(&number);
        self.operations.remove(&number);
        self.done.remove(&number).is_none()
    }

    // ----- waits ---------------------------------------------------------------------------------

    /// Returns the number of a new wait.
    pub(super) fn next_wait(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Returns whether the simulator has begun a wait, and has not reported its end.
    pub(super) fn has_begun(&self, wait: u64) -> bool {
        self.begun.contains(&wait)
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
        self.outcomes.remove(&wait).or_else(|| self.failure.clone().map(Err))
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

    /// Keeps a waker until the next park has ended.
    pub(super) fn wake_later(&mut self, waker: Waker) {
        self.wakers.push(waker);
    }

    // ----- parks ---------------------------------------------------------------------------------

    /// Returns the number of parks.
    pub(super) fn parks(&self) -> u64 {
        self.parks
    }

    /// Sets the end of the next park.
    pub(super) fn pause(&mut self, until: ParkUntil) {
        self.until = until;
    }

    /// Returns the events to park for; `None` if the futures have to be polled again before.
    pub(super) fn next_park(&mut self) -> Option<NextPark> {
        if take(&mut self.is_written) || self.failure.is_some() {
            return None;
        }
        self.parks += 1;
        let until = take(&mut self.until);
        let is_short = matches!(until, ParkUntil::Awaited) && self.short < SHORT_PARKS && has_threads();
        self.short = if is_short { self.short + 1 } else { 0 };
        let mut waits: Vec<_> = take(&mut self.waits).into_iter().collect();
        waits.sort_unstable_by_key(|(wait, _)| *wait);
        self.begun.extend(waits.iter().map(|(wait, _)| *wait));
        let mut operations: Vec<u64> = self.operations.iter().copied().collect();
        operations.sort_unstable();
        Some(NextPark { operations, waits, until: if is_short { ParkUntil::Soon } else { until } })
    }

    /// Notes the reply to a park. Returns the wakers to wake.
    pub(super) fn parked(&mut self, parked: Result<Parked>) -> Vec<Waker> {
        // Those that were forgotten meanwhile are not among them.
        let mut awaited = take(&mut self.operations);
        match parked {
            Ok(Parked { operations, waits }) => {
                for (number, outcome) in operations {
                    // Without an outcome, the operation has to be polled.
                    if awaited.remove(&number)
                        && let Some(outcome) = outcome
                    {
                        self.done.insert(number, outcome);
                    }
                }
                self.in_flight.extend(awaited);
                for (wait, outcome) in waits {
                    if self.begun.remove(&wait) {
                        self.outcomes.insert(wait, outcome);
                    }
                }
            }
            Err(error) => self.failure = Some(error),
        }
        take(&mut self.wakers)
    }
}
