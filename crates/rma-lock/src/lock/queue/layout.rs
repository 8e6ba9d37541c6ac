//! The layout of a lock's memory at each rank. The words of the home are on one cache line, and the
//! rank's own words on the next: the published words and three queue nodes. The fourth node, which
//! is only needed by a rank with four waiting acquisitions, takes the rest of the first line.

/// The number of queue nodes per rank and lock.
pub(crate) const NODES: usize = 4;

const LINE: u64 = 64;
/// The two words that a rank publishes.
pub(crate) const PUBLISHED: u64 = LINE;
const NODE: u64 = 16;
const FIRST_NODE: u64 = PUBLISHED + 16;
const LAST_NODE: u64 = LINE - NODE;

/// The number of bytes at each rank.
pub(crate) const LOCK_BYTES: usize = 2 * LINE as usize;
const _: () = assert!(FIRST_NODE + (NODES as u64 - 1) * NODE <= LOCK_BYTES as u64);

/// The number of those bytes, from the start, that are the lock's own at its home.
pub(crate) const HOME_BYTES: u64 = LAST_NODE;

/// The number of bytes at each rank of a lock that continues when members are lost.
pub(crate) const RECOVERABLE_BYTES: usize = LOCK_BYTES + LINE as usize;
/// In a recoverable lock's memory: twice the number of changes of the second word that a rank
/// publishes.
pub(crate) const VERSION: u64 = LOCK_BYTES as u64;
/// Also in a recoverable lock's memory: a word for the lock itself.
pub(crate) const CLAIM: u64 = VERSION + 8;

/// The words of a node. There are two, because two different ranks write them.
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

/// Returns the index of a word in a list of all words of a rank's nodes.
#[inline(always)]
pub(super) fn index(slot: usize, part: NodeWord) -> usize {
    2 * slot + usize::from(matches!(part, NodeWord::Next))
}
