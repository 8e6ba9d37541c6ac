//! Where the words of the levels stand in a lock's memory at each rank, in bytes: first what a lock with queues has, then a line for each level.

use super::shape::Levels;
use crate::queue::LOCK_BYTES;

const LINE: usize = 64;

/// The words of a level.
#[derive(Clone, Copy)]
pub(super) enum Word {
    Count = 0,
    Waiting = 8,
}

pub(super) fn offset(level: usize, word: Word) -> u64 {
    (LOCK_BYTES + level * LINE) as u64 + word as u64
}

/// Bytes at each of so many ranks: as many levels as there would be if each had a node of its own.
pub(super) fn bytes(levels: Levels, members: usize) -> usize {
    LOCK_BYTES + levels.count(members) * LINE
}
