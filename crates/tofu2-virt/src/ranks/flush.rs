//! Puts of each rank that are not yet known to be visible.

use super::Ranks;
use rdma_fabric::{FabricError, Result};

/// The puts of one rank, by target.
#[derive(Debug, Default)]
pub(super) struct Unflushed {
    /// Sorted by target.
    targets: Vec<Target>,
    all: Tally,
}

#[derive(Debug, Default)]
struct Tally {
    /// The number of puts that are not yet visible.
    pending: u32,
    /// The time at which the poster knows that all other puts are visible, in picoseconds.
    known_at: u64,
    /// The lanes that wait, in a flush, for the last put.
    waiting: Waiting,
}

/// The lanes that wait in flushes of a poster's puts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Waiting {
    #[default]
    Nobody,
    Poster,
    /// Another lane of its rank, to which a flush was passed.
    Others,
}

/// The time to wake flushes of a poster's puts, in picoseconds, and whether to wake other lanes of
/// its rank as well.
pub(crate) type Wake = (u64, bool);

#[derive(Debug)]
struct Target {
    rank: u32,
    tally: Tally,
    /// The first error since the last flush.
    error: Option<Box<FabricError>>,
}

/// The state of a flush.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FlushState {
    /// Every put is known to be visible or has failed. Holds the first error since the last flush.
    Complete(Result<()>),
    /// The poster will know at this time, in picoseconds, that every put is visible.
    KnownAt(u64),
    /// Puts are in flight. The event that makes the last one visible wakes the rank.
    Pending,
}

impl Tally {
    /// Counts a put as visible, which the poster can know at `known_at`. Returns the time to wake a
    /// flush.
    fn arrived(&mut self, known_at: u64) -> Option<Wake> {
        self.pending = self.pending.saturating_sub(1);
        self.known_at = self.known_at.max(known_at);
        if self.pending > 0 {
            return None;
        }
        let waiting = core::mem::take(&mut self.waiting);
        (waiting > Waiting::Nobody).then_some((self.known_at, waiting == Waiting::Others))
    }

    fn flush(&mut self, who: Waiting, now: u64) -> FlushState {
        if self.pending > 0 {
            self.waiting = self.waiting.max(who);
            FlushState::Pending
        } else if now < self.known_at {
            FlushState::KnownAt(self.known_at)
        } else {
            FlushState::Complete(Ok(()))
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
                    // Forget settled targets before growing.
                    self.targets.retain(|t| t.tally.pending > 0 || t.tally.known_at > now || t.error.is_some());
                    at = self.targets.partition_point(|t| t.rank < target);
                }
                self.targets.insert(at, Target { rank: target, tally, error: None });
            }
        }
    }

    /// Records that a put has taken effect, or failed, at its target. Returns the times at which to
    /// wake flushes.
    fn arrived(&mut self, target: u32, known_at: u64, error: Option<FabricError>) -> [Option<Wake>; 2] {
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

    fn is_flushed(&self, now: u64) -> bool {
        self.all.pending == 0 && self.all.known_at <= now && self.targets.iter().all(|target| target.error.is_none())
    }

    /// Returns the state of a flush of the puts to one target, or to all. Takes the errors when the
    /// flush has completed.
    fn flush(&mut self, target: Option<u32>, who: Waiting, now: u64) -> FlushState {
        let state = match target {
            None => self.all.flush(who, now),
            Some(target) => match self.targets.binary_search_by_key(&target, |t| t.rank) {
                Ok(at) => self.targets[at].tally.flush(who, now),
                Err(_) => FlushState::Complete(Ok(())),
            },
        };
        if state != FlushState::Complete(Ok(())) {
            return state;
        }
        let mut first = None;
        for entry in self.targets.iter_mut().filter(|t| target.is_none_or(|rank| rank == t.rank)) {
            let error = entry.error.take();
            first = first.or(error);
        }
        FlushState::Complete(first.map_or(Ok(()), |error| Err(*error)))
    }
}

impl Ranks {
    /// Records that the rank has posted a put to `target`.
    pub(crate) fn put_posted(&mut self, rank: u32, target: u32, now: u64) {
        self.at(rank).extra().unflushed.posted(target, now);
    }

    /// Records that a put has taken effect, or failed, at its target, which its poster can know at
    /// `known_at`. Returns the times at which to wake flushes of the poster.
    pub(crate) fn put_arrived(
        &mut self,
        rank: u32,
        target: u32,
        known_at: u64,
        error: Option<FabricError>,
    ) -> [Option<Wake>; 2] {
        let extra = self.at(rank).existing();
        extra.map_or([None; 2], |extra| extra.unflushed.arrived(target, known_at, error))
    }

    /// Returns whether a flush of all puts of the rank completes immediately and has no error to
    /// report.
    #[inline]
    pub(crate) fn is_flushed(&self, rank: u32, now: u64) -> bool {
        self.states[rank as usize].extra.as_deref().is_none_or(|extra| extra.unflushed.is_flushed(now))
    }

    /// Returns the state of a flush of the puts by `poster` to one target, or to all, for which
    /// `lane` waits.
    pub(crate) fn flush(&mut self, [poster, lane]: [u32; 2], target: Option<u32>, now: u64) -> FlushState {
        let who = if lane == poster { Waiting::Poster } else { Waiting::Others };
        let extra = self.at(poster).existing();
        extra.map_or(FlushState::Complete(Ok(())), |extra| extra.unflushed.flush(target, who, now))
    }
}
