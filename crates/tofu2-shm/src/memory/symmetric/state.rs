//! A rank's state of symmetric memory: the allocations in use and in progress, and the order of its
//! calls.

use super::super::{
    allocator::Allocator, heap::Extent, inside::RegionId, layout, mapping::Mapping, regions, retired::Retired,
};
use crate::{
    endpoint::Endpoint,
    job::Job,
    waiting::{WaitsFor, wait},
};
use rdma_fabric::{AccessPolicy, FabricError, Rank, RegionKey};
use std::collections::{HashMap, VecDeque};
use tofu2_job::available::Left;

pub(super) const WORDS: usize = layout::SYMMETRIC_SLOTS / 64;

/// One rank's view of symmetric memory; everything but `dropped`, `retired`, `lacking`, `tickets`
/// and `under_way` is the same on all ranks.
#[derive(Debug, Default)]
pub(crate) struct Symmetric {
    /// Extents of the table entries in use, and whether their bytes are kept apart.
    pub(super) live: HashMap<usize, (Extent, bool)>,
    /// Entries that must not be reused.
    pub(super) worn_out: Vec<usize>,
    /// Entries in use whose part this rank has dropped and no operation is inside any longer.
    pub(super) dropped: [u64; WORDS],
    /// Entries in use whose part this rank has dropped, before they move to `dropped`.
    pub(super) retired: Retired<usize>,
    /// The memory that is left on this rank's machine, if that is too little for its ranks, so that
    /// this rank promises nothing at present. Determined before any rank takes its part.
    pub(super) lacking: Option<Left>,
    /// Number of phases arrived at.
    pub(super) phase: u64,
    /// The allocation that has started and has not completed.
    pub(super) under_way: Option<AllocationState>,
    /// Calls of this rank in the order of their first poll; the first may continue.
    tickets: VecDeque<u64>,
    next_ticket: u64,
}

#[derive(Debug)]
pub(super) enum AllocationState {
    /// Waiting for the end of the last freed region's grace period, to propose again.
    Settling { asked: Asked },
    /// Arrived at phase 1.
    Proposed { asked: Asked },
    /// Arrived at phase 2.
    Placed { asked: Asked, extent: Extent, key: RegionKey, failure: Option<FabricError> },
}

/// The request, which must be the same on all ranks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) bytes: usize,
    /// The terms of a locked region; otherwise 0.
    pub(super) terms: [u64; 3],
}

impl Asked {
    /// Returns whether only the handles that allocate the region can access it.
    pub(super) fn is_locked(&self) -> bool {
        self.terms != [0; 3]
    }

    /// Returns whether references to the region may exist, so that its bytes are kept apart from
    /// all others.
    pub(super) fn is_apart(&self) -> bool {
        AccessPolicy::terms_allow_references(self.terms)
    }

    /// Returns the words that the ranks compare, each with its offset in a side.
    pub(super) fn words(&self) -> [(usize, u64); 4] {
        let [first, second, third] = self.terms;
        let terms = layout::SIDE_TERMS;
        [(layout::SIDE_BYTES, self.bytes as u64), (terms, first), (terms + 8, second), (terms + 16, third)]
    }
}

/// Gives an extent back to the heap.
pub(super) fn give_back(allocator: &mut Allocator, extent: Extent, is_apart: bool) {
    if is_apart { allocator.heap.give_back_locked(extent) } else { allocator.heap.give_back_symmetric(extent) }
}

impl Symmetric {
    /// Ends this rank's registration under `key`.
    pub(crate) fn drop_part(&mut self, segment: &Mapping, me: Rank, key: RegionKey) {
        let index = key.index as usize;
        if !regions::deregister(segment, index) {
            self.worn_out.push(index);
        }
        self.retired.retire(RegionId::new(me, key), index);
    }

    /// Marks as dropped the entries that no operation is inside any longer.
    pub(super) fn settle(&mut self, job: &Job) {
        let dropped = &mut self.dropped;
        self.retired.reclaim(job, |index| dropped[index / 64] |= 1 << (index % 64));
    }

    /// Returns the extent of this rank's part under `key`, unless the region was freed.
    pub(crate) fn extent(&self, key: RegionKey) -> Option<Extent> {
        self.live.get(&(key.index as usize)).map(|(extent, _)| *extent)
    }

    pub(super) fn free_slot(&self) -> Option<usize> {
        regions::SYMMETRIC.clone().find(|index| !self.live.contains_key(index) && !self.worn_out.contains(index))
    }
}

/// A call's place in the rank's own queue of symmetric allocations.
pub(super) struct Turn<'a> {
    endpoint: &'a Endpoint,
    ticket: u64,
}

impl<'a> Turn<'a> {
    pub(super) async fn wait(endpoint: &'a Endpoint) -> Result<Self, FabricError> {
        let turn = {
            let symmetric = &mut endpoint.allocator().symmetric;
            let ticket = symmetric.next_ticket;
            symmetric.next_ticket += 1;
            symmetric.tickets.push_back(ticket);
            Turn { endpoint, ticket }
        };
        wait::until_ready(endpoint, WaitsFor::Allocation, || {
            Ok(endpoint.allocator().symmetric.tickets.front() == Some(&turn.ticket))
        })
        .await?;
        Ok(turn)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.endpoint.allocator().symmetric.tickets.retain(|&ticket| ticket != self.ticket);
    }
}
