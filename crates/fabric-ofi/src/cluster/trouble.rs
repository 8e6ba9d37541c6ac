//! What the network refused, answers that got lost, and operations that outlive what they were posted
//! for: a loss may explain them, which is told later, or never.

use super::{core::Core, directory::FarRegion, flight::Flight};
use core::time::Duration;
use rdma_fabric::{FabricError, RegionKey};
use std::{sync::Arc, time::Instant};

/// How long an operation that the network refused may wait for the news that its target is lost.
pub(super) const GRACE: Duration = Duration::from_secs(30);
/// How often those are looked at that wait so.
const ROUND: Duration = Duration::from_millis(100);

/// An operation that is over for the program and not for the network, which may still use memory.
#[derive(Debug)]
pub(super) struct Outlived {
    since: Instant,
    far: Option<Arc<FarRegion>>,
    own: Option<RegionKey>,
}

impl Outlived {
    pub(super) fn new(far: Option<Arc<FarRegion>>, own: Option<RegionKey>) -> Self {
        Outlived { since: Instant::now(), far, own }
    }
}

impl Core {
    /// Notes that the network refused an operation. It ends when its target's loss is told, or after
    /// some time.
    pub(super) fn refuse(&mut self, id: u64, error: FabricError) {
        self.outlived(id);
        if let Some(flight) = self.flights.get(id) {
            flight.posted = false;
            flight.refused.get_or_insert((Instant::now(), error));
            self.trouble = true;
        }
    }

    /// Notes that the network is done with an operation, if it is one that was over before.
    pub(super) fn outlived(&mut self, id: u64) {
        if let Some(Outlived { far, own, .. }) = self.outlived.remove(&id) {
            self.leave_region(far.as_deref(), own);
        }
    }

    /// Notes that the endpoint is closed, and so nothing uses memory by it.
    pub(super) fn closed(&mut self) {
        for id in self.outlived.keys().copied().collect::<Vec<_>>() {
            self.outlived(id);
        }
        for id in self.flights.those(|flight| flight.posted) {
            self.flights.get(id).into_iter().for_each(|flight| flight.posted = false);
        }
        self.halfway.clear();
        self.unanswered.clear();
    }

    /// Ends what has been in trouble for too long.
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
        let late = |outlived: &Outlived| outlived.since.elapsed() > grace;
        let late: Vec<u64> = self.outlived.iter().filter(|(_, at)| late(at)).map(|(id, _)| *id).collect();
        late.into_iter().for_each(|id| self.outlived(id));
        let lost = &self.lost;
        self.unanswered.retain(|rank, _| !lost.contains(rank));
        if let Some((_, error)) = self.unanswered.values().find(|(since, _)| since.elapsed() > grace).cloned() {
            self.unanswered.clear();
            self.give_up(&error);
        }
        let waits = !self.flights.those(|flight| flight.refused.is_some()).is_empty();
        self.trouble = waits || !self.outlived.is_empty() || !self.unanswered.is_empty();
    }
}
