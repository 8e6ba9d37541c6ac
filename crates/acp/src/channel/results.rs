//! The requests of a rank, and what became of them.

use crate::Result;
use std::collections::{BTreeMap, BTreeSet};

/// What became of a message that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Bytes that are in the buffer, from its start.
    pub bytes: usize,
    /// Bytes that were dropped, because the buffer was too short.
    pub dropped: u64,
}

/// What a request yields.
#[derive(Debug)]
pub(super) enum Done {
    Sent(Vec<u8>),
    Received(Vec<u8>, Arrival),
    Freed,
}

/// The requests of a rank.
#[derive(Default)]
pub(super) struct Results {
    made: u64,
    /// How many are over, the forgotten ones included.
    pub(super) finished: u64,
    over: BTreeMap<u64, Result<Done>>,
    /// Those that are not over, and whose result nobody wants.
    forgotten: BTreeSet<u64>,
}

impl Results {
    pub(super) fn begin(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    pub(super) fn finish(&mut self, request: u64, result: Result<Done>) {
        self.finished += 1;
        if !self.forgotten.remove(&request) {
            self.over.insert(request, result);
        }
    }

    pub(super) fn take(&mut self, request: u64) -> Option<Result<Done>> {
        self.over.remove(&request)
    }

    pub(super) fn is_over(&self, request: u64) -> bool {
        self.over.contains_key(&request)
    }

    /// Drops the result of a request, now or when there is one.
    pub(super) fn forget(&mut self, request: u64) {
        if self.over.remove(&request).is_none() {
            self.forgotten.insert(request);
        }
    }
}
