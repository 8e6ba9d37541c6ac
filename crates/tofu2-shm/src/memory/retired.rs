//! Extents between deregistration and reuse.
//!
//! A short operation checks the region's generation and then accesses the region, without an
//! announcement. Its thread may be stopped between the two. So an extent is reused no sooner than
//! [`GRACE`] after it was freed, and only when no rank announces an operation inside it
//! ([`super::inside`]). A long copy never writes to a later region, no matter how long it takes; a
//! short one does so only if its thread was stopped between two instructions for the whole grace
//! period.

use super::inside::RegionId;
use crate::job::Job;
use core::time::Duration;
use std::{collections::VecDeque, time::Instant};

/// Time during which an extent is not reused: a few scheduling rounds on a machine with ten times
/// more ranks than CPUs.
pub(crate) const GRACE: Duration = Duration::from_millis(20);

/// Items that become free in the order in which they were retired.
#[derive(Debug)]
pub(crate) struct Retired<T> {
    waiting: VecDeque<Waiting<T>>,
}

#[derive(Debug)]
struct Waiting<T> {
    id: RegionId,
    until: Instant,
    what: T,
}

impl<T> Default for Retired<T> {
    fn default() -> Self {
        Retired { waiting: VecDeque::new() }
    }
}

impl<T> Retired<T> {
    /// Retires an item that was just deregistered as `id`.
    pub(crate) fn retire(&mut self, id: RegionId, what: T) {
        // D2; D1 was the deregistration.
        super::inside::barrier();
        self.waiting.push_back(Waiting { id, until: Instant::now() + GRACE, what });
    }

    /// Passes all items that may be reused to `free`.
    pub(crate) fn reclaim(&mut self, job: &Job, free: impl FnMut(T)) {
        if !self.waiting.is_empty() {
            self.reclaim_at(Instant::now(), |id| job.is_inside(id), free);
        }
    }

    fn reclaim_at(&mut self, now: Instant, is_inside: impl Fn(RegionId) -> bool, mut free: impl FnMut(T)) {
        let due = self.waiting.partition_point(|waiting| waiting.until <= now);
        let mut held = VecDeque::new();
        for waiting in self.waiting.drain(..due) {
            // D3.
            if is_inside(waiting.id) { held.push_back(waiting) } else { free(waiting.what) }
        }
        held.append(&mut self.waiting);
        self.waiting = held;
    }

    /// Returns the time at which the last retired item will be due, unless it has passed.
    pub(crate) fn until(&self) -> Option<Instant> {
        self.waiting.back().map(|last| last.until).filter(|&until| until > Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdma_fabric::{Rank, RegionKey};

    #[test]
    fn neither_young_nor_used_extents_are_freed() {
        let id = |index| RegionId::new(Rank::new(1), RegionKey { index, generation: 1 });
        let mut retired = Retired::default();
        (0..3).for_each(|index| retired.retire(id(index), index));
        let freed = |retired: &mut Retired<u32>, now, inside: Option<RegionId>| {
            let mut freed = Vec::new();
            retired.reclaim_at(now, |id| Some(id) == inside, |index| freed.push(index));
            freed
        };
        let late = Instant::now() + GRACE;
        assert!(freed(&mut retired, late - GRACE, None).is_empty());
        assert_eq!(freed(&mut retired, late, Some(id(1))), [0, 2]);
        assert!(freed(&mut retired, late, Some(id(1))).is_empty());
        retired.retire(id(3), 3);
        assert_eq!(freed(&mut retired, late + 2 * GRACE, None), [1, 3]);
        assert!(retired.until().is_none());
    }
}
