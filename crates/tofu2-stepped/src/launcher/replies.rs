//! The replies to one rank's requests.

use crate::wire::{Reply, Wire, encode};
use rdma_fabric::Result;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};
use tofu2_virt::program::ProgramRank;

/// What all replies contain.
#[derive(Debug)]
pub(super) struct Replies {
    program: ProgramRank,
    /// Regions that have been deregistered, of all ranks.
    deregistered: Arc<AtomicU64>,
}

impl Replies {
    pub(super) fn new(program: ProgramRank, deregistered: Arc<AtomicU64>) -> Self {
        Replies { program, deregistered }
    }

    /// Encodes a reply.
    pub(super) fn reply<T: Wire>(&self, outcome: Result<T>) -> Vec<u64> {
        encode(&Reply { lost: self.program.lost(), deregistered: self.deregistered.load(Relaxed), outcome })
    }

    /// Counts a region that has been deregistered.
    pub(super) fn deregisters(&self) {
        self.deregistered.fetch_add(1, Relaxed);
    }
}
