//! The requests of a rank, and their results.

use crate::Result;
use std::collections::{HashMap, HashSet};

/// The size of a received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The number of bytes stored in the buffer, from its start.
    pub bytes: usize,
    /// The number of bytes dropped because the buffer was too short.
    pub dropped: u64,
}

/// The result of a request.
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
    /// The number of finished requests, including the forgotten ones.
    pub(super) finished: u64,
    over: HashMap<u64, Result<Done>>,
    /// Unfinished requests whose results are not wanted.
    forgotten: HashSet<u64>,
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

    pub(super) fn is_complete(&self, request: u64) -> bool {
        self.over.contains_key(&request)
    }

    /// Drops the result of a request, now or once it is available.
    pub(super) fn forget(&mut self, request: u64) {
        if self.over.remove(&request).is_none() {
            self.forgotten.insert(request);
        }
    }
}
