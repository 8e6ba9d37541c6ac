//! Storage of one rank's counters and events.

use crate::{
    counts::{RankCounts, WaitKind},
    event::{Event, Events},
};
use rdma_fabric::{Deps, Notice, Rank};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The record of one rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankRecord {
    /// The rank.
    pub rank: u32,
    /// Its counters.
    pub counts: RankCounts,
    /// Its latest events, if a trace is wanted.
    pub events: Option<Events>,
}

impl RankRecord {
    /// Counts a wait from `begin_ps` to `end_ps`.
    pub(crate) fn waited(&mut self, kind: WaitKind, peer: Option<u32>, begin_ps: u64, end_ps: u64) {
        let ns = end_ps.saturating_sub(begin_ps) / 1000;
        self.counts.with(peer).waits.note(ns);
        self.counts.waits.entry(kind).or_default().note(ns);
    }

    pub(crate) fn happened(&mut self, event: Event) {
        if let Some(events) = &mut self.events {
            events.push(event);
        }
    }
}

/// One rank's record while it is being written. Clones share the record.
#[derive(Clone, Debug)]
pub struct Recorder(Arc<Mutex<RankRecord>>);

impl Recorder {
    /// Creates an empty record that keeps the latest `events` events, or none if `None`.
    pub fn new(rank: Rank, events: Option<usize>) -> Self {
        let record = RankRecord { rank: rank.number(), counts: RankCounts::default(), events: events.map(Events::new) };
        Recorder(Arc::new(Mutex::new(record)))
    }

    /// Returns the record as it is now.
    pub fn record(&self) -> RankRecord {
        self.lock().clone()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, RankRecord> {
        // Nothing panics while the lock is held, and each counter is consistent by itself.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a notice that was taken. Returns its number among its poster's notices.
    pub(crate) fn taken(&self, notice: &Notice) -> u64 {
        self.lock().counts.taken(notice.from.number())
    }
}

/// Returns the rank that a wait depends on, if it depends on exactly one.
pub(crate) fn only(deps: &Deps<'_>) -> Option<u32> {
    match *deps {
        Deps::One(rank) | Deps::Ranks(&[rank]) | Deps::Step { writer: rank, .. } => Some(rank.number()),
        Deps::All | Deps::Ranks(_) => None,
    }
}
