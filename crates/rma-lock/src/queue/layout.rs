//! Where a lock's words stand in its memory at each rank: the words of the home on one cache line;
//! on the next, what belongs to the rank itself, the published words and three queue nodes. The
//! fourth, which only a rank with as many waiting acquisitions needs, has the rest of the first
//! line.

/// Queue nodes per rank and lock.
pub(crate) const NODES: usize = 4;

const LINE: u64 = 64;
/// Two words that a rank publishes.
pub(crate) const PUBLISHED: u64 = LINE;
const NODE: u64 = 16;
const FIRST_NODE: u64 = PUBLISHED + 16;
const LAST_NODE: u64 = LINE - NODE;

/// Bytes at each rank.
pub(crate) const LOCK_BYTES: usize = 2 * LINE as usize;
const _: () = assert!(FIRST_NODE + (NODES as u64 - 1) * NODE <= LOCK_BYTES as u64);

/// How many of them, the first ones, are the lock's own at its home.
pub(crate) const HOME_BYTES: u64 = LAST_NODE;

/// Bytes at each rank of a lock that goes on when members are lost.
pub(crate) const RECOVERABLE_BYTES: usize = LOCK_BYTES + LINE as usize;
/// There: how often the second word that a rank publishes has been changed, twice.
pub(crate) const VERSION: u64 = LOCK_BYTES as u64;
/// And a word for the recoverable lock.
pub(crate) const CLAIM: u64 = VERSION + 8;

/// The words of a node. Two, because two different ranks write them.
#[derive(Clone, Copy)]
pub(crate) enum NodeWord {
    Wake = 0,
    Next = 8,
}

pub(super) fn published(lane: usize) -> u64 {
    PUBLISHED + 8 * lane as u64
}

pub(super) fn node(slot: usize, part: NodeWord) -> u64 {
    let start = if slot == NODES - 1 { LAST_NODE } else { FIRST_NODE + slot as u64 * NODE };
    start + part as u64
}
