//! The oracle: a sequential readers-writer table.

use super::{LockCall, RANKS};
use rma_lock::Fairness;
use std::collections::VecDeque;

/// The state of a rank: its hold or its wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Hold {
    #[default]
    Nothing,
    Shared,
    Exclusive,
    WaitsShared,
    WaitsExclusive,
}

/// A rank in the queue, which contains readers only if all ranks enter in order of arrival.
#[derive(Debug)]
struct Waiting {
    rank: usize,
    writes: bool,
    /// Whether it gave up; it keeps its place.
    gave_up: bool,
}

/// One table, no concurrency.
#[derive(Debug)]
pub(super) struct Table {
    fairness: Fairness,
    pub(super) holds: [Hold; RANKS],
    queue: VecDeque<Waiting>,
    pub(super) gave_up: [u32; RANKS],
}

impl Table {
    pub(super) fn new(fairness: Fairness) -> Self {
        Table { fairness, holds: Default::default(), queue: VecDeque::new(), gave_up: [0; RANKS] }
    }

    pub(super) fn any(&self, hold: Hold) -> bool {
        self.holds.contains(&hold)
    }

    pub(super) fn call(&mut self, rank: usize, call: LockCall) {
        let written = self.any(Hold::Exclusive);
        let free = !written && !self.any(Hold::Shared) && self.queue.is_empty();
        let lets_readers_in = !written && (self.fairness == Fairness::ReadersFirst || self.queue.is_empty());
        self.holds[rank] = match call {
            LockCall::Read | LockCall::ReadOrDrop | LockCall::TryRead if lets_readers_in => Hold::Shared,
            LockCall::Read | LockCall::ReadOrDrop => {
                if self.fairness == Fairness::Fifo {
                    self.queue.push_back(Waiting { rank, writes: false, gave_up: false });
                }
                Hold::WaitsShared
            }
            LockCall::Write | LockCall::WriteOrDrop | LockCall::TryWrite if free => Hold::Exclusive,
            LockCall::Write | LockCall::WriteOrDrop => {
                self.queue.push_back(Waiting { rank, writes: true, gave_up: false });
                Hold::WaitsExclusive
            }
            LockCall::TryRead | LockCall::TryWrite => Hold::Nothing,
        };
    }

    pub(super) fn release(&mut self, rank: usize) {
        self.holds[rank] = Hold::Nothing;
        self.pass_on();
    }

    pub(super) fn give_up(&mut self, rank: usize) {
        self.holds[rank] = Hold::Nothing;
        for waiting in self.queue.iter_mut().filter(|waiting| waiting.rank == rank) {
            waiting.gave_up = true;
        }
        self.gave_up[rank] += 1;
    }

    fn let_readers_in(&mut self) {
        for hold in &mut self.holds {
            if *hold == Hold::WaitsShared {
                *hold = Hold::Shared;
            }
        }
    }

    fn first_to_go_on(&mut self, shared: bool) -> Option<Waiting> {
        let goes_on = self.queue.front().is_some_and(|first| !shared || !first.writes);
        if goes_on { self.queue.pop_front() } else { None }
    }

    /// Admits the next ranks after one has left.
    fn pass_on(&mut self) {
        while !self.any(Hold::Exclusive) {
            match self.fairness {
                Fairness::ReadersFirst => self.let_readers_in(),
                Fairness::WritersFirst if self.queue.is_empty() => self.let_readers_in(),
                _ => {}
            }
            let shared = self.any(Hold::Shared);
            match self.first_to_go_on(shared) {
                Some(Waiting { gave_up: true, .. }) => {}
                Some(Waiting { rank, writes, .. }) => {
                    self.holds[rank] = if writes { Hold::Exclusive } else { Hold::Shared };
                }
                None => break,
            }
        }
        if self.queue.is_empty() && !self.any(Hold::Exclusive) && !self.any(Hold::Shared) {
            self.gave_up = [0; RANKS];
        }
    }
}
