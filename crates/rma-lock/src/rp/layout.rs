//! Where the lock's words stand in its symmetric region: the home words on one cache line; on the next, what belongs to the
//! rank itself, the published words and three queue nodes. The fourth, which only a rank with as many waiting acquisitions
//! needs, has the rest of the first line.

use rdma_fabric::{Rank, RegionKey, RemoteAddr};

/// Queue nodes per rank and lock.
pub(super) const NODES: usize = 4;

const LINE: u64 = 64;
const PUBLISHED: u64 = LINE;
const NODE: u64 = 16;
const FIRST_NODE: u64 = PUBLISHED + 16;
const LAST_NODE: u64 = LINE - NODE;
pub(super) const LOCK_BYTES: usize = 2 * LINE as usize;
const _: () = assert!(FIRST_NODE + (NODES as u64 - 1) * NODE <= LOCK_BYTES as u64);

/// The words at the home.
#[derive(Clone, Copy)]
pub(super) enum Home {
    Count = 0,
    Readers = 8,
    Tail = 16,
    Head = 24,
}
const _: () = assert!(Home::Head as u64 + 8 <= LAST_NODE);

/// The words of a node. Two, because two different ranks write them.
#[derive(Clone, Copy)]
pub(super) enum Part {
    Wake = 0,
    Next = 8,
}

pub(super) fn home(rank: Rank, region: RegionKey, word: Home) -> RemoteAddr {
    RemoteAddr { rank, region, offset: word as u64 }
}

pub(super) fn published(rank: Rank, region: RegionKey, lane: usize) -> RemoteAddr {
    RemoteAddr { rank, region, offset: PUBLISHED + 8 * lane as u64 }
}

pub(super) fn node(rank: Rank, region: RegionKey, slot: usize, part: Part) -> RemoteAddr {
    let start = if slot == NODES - 1 { LAST_NODE } else { FIRST_NODE + slot as u64 * NODE };
    RemoteAddr { rank, region, offset: start + part as u64 }
}
