//! Operations that the network refused, answers that were lost, and operations that continue in the
//! network after their flight has ended. The loss of a rank may be the cause; it is reported later,
//! or never.

use super::{core::Core, directory::RemoteRegion, flight::Flight};
use core::time::Duration;
use rdma_fabric::{FabricError, RegionKey};
use std::{sync::Arc, time::Instant};

/// How long an operation that the network refused waits for the report that its target is lost.
pub(super) const GRACE: Duration = Duration::from_secs(30);
/// How often these operations are checked.
const ROUND: Duration = Duration::from_millis(100);

/// An operation that has completed for the program but not for the network, which may still access
/// memory.
#[derive(Debug)]
pub(super) struct Orphaned {
    since: Instant,
    remote: Option<Arc<RemoteRegion>>,
    own: Option<RegionKey>,
}

impl Orphaned {
    pub(super) fn new(remote: Option<Arc<RemoteRegion>>, own: Option<RegionKey>) -> Self {
        Orphaned { since: Instant::now(), remote, own }
    }
}

impl Core {
    /// Records that the network refused an operation. The operation fails when the loss of its
    /// target is reported, or after [`Core::grace`].
    pub(super) fn refuse(&mut self, id: u64, error: FabricError) {
        self.orphaned(id);
        if let Some(flight) = self.flights.get(id) {
            flight.posted = false;
            flight.refused.get_or_insert((Instant::now(), error));
            self.trouble = true;
        }
    }

    /// Records that the network has finished with an operation that had already completed for the
    /// program, if it is one.
    pub(super) fn orphaned(&mut self, id: u64) {
        if let Some(Orphaned { remote, own, .. }) = self.orphaned.remove(&id) {
            self.leave_region(remote.as_deref(), own);
        }
    }

    /// Records that the endpoint is closed, and therefore no longer accesses memory.
    pub(super) fn closed(&mut self) {
        for id in self.orphaned.keys().copied().collect::<Vec<_>>() {
            self.orphaned(id);
        }
        for id in self.flights.those(|flight| flight.posted) {
            self.flights.get(id).into_iter().for_each(|flight| flight.posted = false);
        }
        self.halfway.clear();
        self.unanswered.clear();
    }

    /// Ends refused, outlived and unanswered operations whose grace period has passed.
    pub(super) fn end_trouble(&mut self) {
        if !self.trouble || self.looked_at.elapsed() < ROUND.min(self.grace) {
            return;
        }
        self.looked_at = Instant::now();
        let grace = self.grace;
        let late = |flight: &Flight| flight.refused.as_ref().is_some_and(|(since, _)| since.elapsed() > grace);
        for id in self.flights.those(late) {
            let error = self.flights.get(id).and_then(|flight| flight.refused.take());
            if let Some((_, error)) = error {
                self.end(id, Err(error));
            }
        }
        let late = |orphaned: &Orphaned| orphaned.since.elapsed() > grace;
        let late: Vec<u64> = self.orphaned.iter().filter(|(_, at)| late(at)).map(|(id, _)| *id).collect();
        late.into_iter().for_each(|id| self.orphaned(id));
        let lost = &self.lost;
        self.unanswered.retain(|rank, _| !lost.contains(rank));
        if let Some((_, error)) = self.unanswered.values().find(|(since, _)| since.elapsed() > grace).cloned() {
            self.unanswered.clear();
            self.give_up(&error);
        }
        let waits = !self.flights.those(|flight| flight.refused.is_some()).is_empty();
        self.trouble = waits || !self.orphaned.is_empty() || !self.unanswered.is_empty();
    }
}
