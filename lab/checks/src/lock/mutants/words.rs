//! The words that all locks with queues have at a rank, as laid out by `src/queue/layout.rs`.

use explore::View;
use rdma_fabric::{Amo, Rank, RemoteAddr};
use std::ops::Range;

/// The state of a wake word whose waiter was granted the lock.
const GRANTED: u64 = 1;
/// The state of a wake word whose waiter has given up.
const ABANDONED: u64 = 2;
/// The mark that a rank leaves in the next word of a node that it gives up, for a successor that
/// has yet to arrive.
pub(super) const PASSED: u64 = u64::MAX;

/// The number of a node's turns, after which they repeat.
const TURNS: u64 = 16;

/// The offsets of the queue nodes, in which wake and next words alternate.
const NODES: [Range<u64>; 2] = [48..64, 80..128];

/// The offsets of the words at the home; any holder or waiter is visible in one of them.
const AT_HOME: Range<u64> = 0..24;

/// The offsets of the two words that a rank publishes, whose sum is zero when it is idle. (Here one
/// thread uses both, so each is zero.)
const PUBLISHED: Range<u64> = 64..80;

/// The bit that the simulators set in the keys of symmetric regions; the explorer and loom count
/// them from 0.
const SYMMETRIC: u32 = 1 << 31;

/// Returns whether `addr` is in the job's first symmetric region.
pub(in crate::lock) fn in_lock(addr: RemoteAddr) -> bool {
    addr.region.index & !SYMMETRIC == 0
}

/// Returns whether `addr` is the lock's word at `offset`.
pub(in crate::lock) fn word(addr: RemoteAddr, offset: u64) -> bool {
    in_lock(addr) && addr.offset == offset
}

/// Returns the lock's words from byte `start` to byte `end` in a state of the explorer, in the form
/// that [`assert_idle`] takes: rank, cell counted from `start`, value.
pub(in crate::lock) fn lock_words<'a>(
    view: &'a View<'_>,
    start: u64,
    end: u64,
) -> impl Iterator<Item = (usize, usize, u64)> + 'a {
    let words = view.words().filter(move |(addr, _)| in_lock(*addr) && (start..end).contains(&addr.offset));
    words.map(move |(addr, value)| (addr.rank.index(), ((addr.offset - start) / 8) as usize, value))
}

fn in_node(offset: u64) -> bool {
    NODES.iter().any(|nodes| nodes.contains(&offset))
}

/// Returns whether `addr` is the wake word of a node.
pub(in crate::lock) fn wake_word(addr: RemoteAddr) -> bool {
    in_lock(addr) && in_node(addr.offset) && addr.offset.is_multiple_of(16)
}

/// Returns whether `amo` is meant to wake a waiter.
pub(super) fn wakes(addr: RemoteAddr, amo: Amo<u64>) -> bool {
    wake_word(addr) && matches!(amo, Amo::CompareSwap { new, .. } if new & 0xff == GRANTED)
}

/// Returns whether `addr` is the next word of a node.
pub(super) fn next_word(addr: RemoteAddr) -> bool {
    in_lock(addr) && in_node(addr.offset) && addr.offset % 16 == 8
}

/// Returns the atomic that wakes the node identified by `bits`, if that node waits. `addr` is a
/// word of the same lock.
pub(super) fn wake(addr: RemoteAddr, bits: u64) -> (RemoteAddr, Amo<u64>) {
    let (slot, rank, turn) = (bits & 3, (bits as u32) << 4 >> 6, bits >> 28);
    let offset = if slot == 3 { NODES[0].start } else { NODES[1].start + 16 * slot };
    let blocked = turn << 48;
    let granted = Amo::CompareSwap { expected: blocked, new: blocked | GRANTED };
    (RemoteAddr { rank: Rank::new(rank - 1), offset, ..addr }, granted)
}

/// Returns the atomic that prepares a node for its next turn, if `old`, found in its wake word,
/// means that its waiter has given up.
pub(super) fn ready(addr: RemoteAddr, old: u64) -> Option<(RemoteAddr, Amo<u64>)> {
    (old & 0xff == ABANDONED).then(|| (addr, Amo::Swap((((old >> 48) + 1) % TURNS) << 48)))
}

/// Asserts that a lock is idle, given its words as rank, cell and value. The lock's home is rank 0
/// and its words start at cell 0.
///
/// # Panics
/// If a word shows a holder or a waiter of the lock.
pub fn assert_idle(words: impl IntoIterator<Item = (usize, usize, u64)>) {
    for (rank, cell, value) in words {
        let offset = cell as u64 * 8;
        let left = match offset {
            _ if AT_HOME.contains(&offset) => rank == 0,
            _ if PUBLISHED.contains(&offset) => value != 0,
            _ if !in_node(offset) => false,
            _ if offset.is_multiple_of(16) => value & 0xff != 0,
            _ => value == PASSED,
        };
        assert!(!left, "residue: byte {offset} of rank {rank}'s part of the lock holds {value:#x}");
    }
}
