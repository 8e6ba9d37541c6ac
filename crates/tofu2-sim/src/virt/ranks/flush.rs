//! Which puts of a rank are not yet known to be visible.

use super::Ranks;
use rdma_fabric::{FabricError, Result};

/// Puts of one rank, by target.
#[derive(Debug, Default)]
pub(super) struct Unflushed {
    /// Sorted by target.
    targets: Vec<Target>,
    all: Tally,
}

#[derive(Debug, Default)]
struct Tally {
    /// Puts that are not visible.
    pending: u32,
    /// When the poster knows of all others that they are, in picoseconds.
    known_at: u64,
    /// A flush waits for the last one.
    waiting: bool,
}

#[derive(Debug)]
struct Target {
    rank: u32,
    tally: Tally,
    /// The first error since the last flush.
    error: Option<Box<FabricError>>,
}

/// How a flush stands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FlushState {
    /// Everything is visible and known to be, or failed: with the first error since the last flush.
    Over(Result<()>),
    /// It will be known at this time, in picoseconds.
    KnownAt(u64),
    /// Puts are under way. The event that makes the last one visible wakes the rank.
    Pending,
}

impl Tally {
    /// One put is visible, which the poster can know at `known_at`; returns when to wake a flush.
    fn arrived(&mut self, known_at: u64) -> Option<u64> {
        self.pending = self.pending.saturating_sub(1);
        self.known_at = self.known_at.max(known_at);
        (self.pending == 0 && core::mem::take(&mut self.waiting)).then_some(self.known_at)
    }

    fn flush(&mut self, now: u64) -> FlushState {
        if self.pending > 0 {
            self.waiting = true;
            FlushState::Pending
        } else if now < self.known_at {
            FlushState::KnownAt(self.known_at)
        } else {
            FlushState::Over(Ok(()))
        }
    }
}

impl Unflushed {
    fn posted(&mut self, target: u32, now: u64) {
        self.all.pending += 1;
        match self.targets.binary_search_by_key(&target, |t| t.rank) {
            Ok(at) => self.targets[at].tally.pending += 1,
            Err(at) => {
                let tally = Tally { pending: 1, ..Tally::default() };
                let mut at = at;
                if self.targets.len() == self.targets.capacity() {
                    // Forget what is settled before growing.
                    self.targets.retain(|t| t.tally.pending > 0 || t.tally.known_at > now || t.error.is_some());
                    at = self.targets.partition_point(|t| t.rank < target);
                }
                self.targets.insert(at, Target { rank: target, tally, error: None });
            }
        }
    }

    /// A put has taken effect, or failed, at its target. Returns the times at which to wake
    /// flushes.
    fn arrived(&mut self, target: u32, known_at: u64, error: Option<FabricError>) -> [Option<u64>; 2] {
        let one = match self.targets.binary_search_by_key(&target, |t| t.rank) {
            Ok(at) => {
                let target = &mut self.targets[at];
                if target.error.is_none() {
                    target.error = error.map(Box::new);
                }
                target.tally.arrived(known_at)
            }
            Err(_) => None,
        };
        [one, self.all.arrived(known_at)]
    }

    /// How a flush of the puts to a target, or to all, stands. Takes the errors when it is over.
    fn flush(&mut self, target: Option<u32>, now: u64) -> FlushState {
        let state = match target {
            None => self.all.flush(now),
            Some(target) => match self.targets.binary_search_by_key(&target, |t| t.rank) {
                Ok(at) => self.targets[at].tally.flush(now),
                Err(_) => FlushState::Over(Ok(())),
            },
        };
        if state != FlushState::Over(Ok(())) {
            return state;
        }
        let mut first = None;
        for entry in self.targets.iter_mut().filter(|t| target.is_none_or(|rank| rank == t.rank)) {
            let error = entry.error.take();
            first = first.or(error);
        }
        FlushState::Over(first.map_or(Ok(()), |error| Err(*error)))
    }
}

impl Ranks {
    /// A put to `target` was posted, of which the rank does not know yet that it is visible.
    pub(crate) fn put_posted(&mut self, rank: u32, target: u32, now: u64) {
        self.at(rank).extra().unflushed.posted(target, now);
    }

    /// A put has taken effect, or failed, at its target, as its poster can know at `known_at`.
    /// Returns the times at which to wake flushes of the poster.
    pub(crate) fn put_arrived(
        &mut self,
        rank: u32,
        target: u32,
        known_at: u64,
        error: Option<FabricError>,
    ) -> [Option<u64>; 2] {
        let extra = self.at(rank).existing();
        extra.map_or([None; 2], |extra| extra.unflushed.arrived(target, known_at, error))
    }

    /// How a flush of the rank's puts to a target, or to all, stands.
    pub(crate) fn flush(&mut self, rank: u32, target: Option<u32>, now: u64) -> FlushState {
        let extra = self.at(rank).existing();
        extra.map_or(FlushState::Over(Ok(())), |extra| extra.unflushed.flush(target, now))
    }
}
