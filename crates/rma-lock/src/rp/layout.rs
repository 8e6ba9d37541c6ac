//! Where the lock's words stand in its symmetric region: the home words on one cache line, the published word and the
//! queue nodes, which belong to the rank itself, on the next.

use rdma_fabric::{Rank, RegionKey, RemoteAddr};

/// Queue nodes per rank and lock: acquisitions of one rank that may wait at the same time.
pub(super) const NODES: usize = 3;

const LINE: u64 = 64;
const PUBLISHED: u64 = LINE;
const FIRST_NODE: u64 = PUBLISHED + 16;
const NODE: u64 = 16;
pub(super) const LOCK_BYTES: usize = 2 * LINE as usize;
const _: () = assert!(FIRST_NODE + NODES as u64 * NODE <= LOCK_BYTES as u64);

/// The words at the home.
#[derive(Clone, Copy)]
pub(super) enum Home {
    Count = 0,
    Readers = 8,
    Tail = 16,
    Head = 24,
}

/// The words of a node. Two, because two different ranks write them.
#[derive(Clone, Copy)]
pub(super) enum Part {
    Wake = 0,
    Next = 8,
}

pub(super) fn home(rank: Rank, region: RegionKey, word: Home) -> RemoteAddr {
    RemoteAddr { rank, region, offset: word as u64 }
}

pub(super) fn published(rank: Rank, region: RegionKey) -> RemoteAddr {
    RemoteAddr { rank, region, offset: PUBLISHED }
}

pub(super) fn node(rank: Rank, region: RegionKey, slot: usize, part: Part) -> RemoteAddr {
    RemoteAddr { rank, region, offset: FIRST_NODE + slot as u64 * NODE + part as u64 }
}
