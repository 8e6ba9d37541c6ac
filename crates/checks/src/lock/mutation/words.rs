//! The words that all locks with queues have at a rank, as `src/queue/layout.rs` places them.

use explore::View;
use rdma_fabric::{Amo, Rank, RemoteAddr};
use std::ops::Range;

/// Of a wake word.
const GRANTED: u64 = 1;
/// Of a wake word: who waited has given up.
const ABANDONED: u64 = 2;
/// In a next word: who left the node has left this mark for a successor on its way.
pub(super) const PASSED: u64 = u64::MAX;

/// A node's turns, after which the first comes again.
const TURNS: u64 = 16;

/// Queue nodes: wake and next alternate.
const NODES: [Range<u64>; 2] = [48..64, 80..128];

/// At the home: whoever holds or waits is in one of them.
const AT_HOME: Range<u64> = 0..24;

/// What a rank publishes: two words, whose sum is zero when it does nothing. (Here one thread uses
/// all.)
const PUBLISHED: Range<u64> = 64..80;

/// Set in the simulators' keys of symmetric regions, which the explorer and loom count from 0.
const SYMMETRIC: u32 = 1 << 31;

/// Whether `addr` is in the job's first symmetric region.
pub(in crate::lock) fn in_lock(addr: RemoteAddr) -> bool {
    addr.region.index & !SYMMETRIC == 0
}

/// Whether `addr` is the lock's word at `offset`.
pub(in crate::lock) fn word(addr: RemoteAddr, offset: u64) -> bool {
    in_lock(addr) && addr.offset == offset
}

/// The lock's words from byte `start` to byte `end` in a state of the explorer, as [`assert_idle`]
/// takes them: rank, cell from `start`, value.
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

/// The wake word of a node in this part of the lock.
pub(in crate::lock) fn wake_word(addr: RemoteAddr) -> bool {
    in_lock(addr) && in_node(addr.offset) && addr.offset.is_multiple_of(16)
}

/// Whether `amo` is to wake a waiter.
pub(super) fn wakes(addr: RemoteAddr, amo: Amo<u64>) -> bool {
    wake_word(addr) && matches!(amo, Amo::CompareSwap { new, .. } if new & 0xff == GRANTED)
}

/// Its next word.
pub(super) fn next_word(addr: RemoteAddr) -> bool {
    in_lock(addr) && in_node(addr.offset) && addr.offset % 16 == 8
}

/// What wakes the node that `bits` name, if that waits; `addr` is a word of the same lock.
pub(super) fn wake(addr: RemoteAddr, bits: u64) -> (RemoteAddr, Amo<u64>) {
    let (slot, rank, turn) = (bits & 3, (bits as u32) << 4 >> 6, bits >> 28);
    let offset = if slot == 3 { NODES[0].start } else { NODES[1].start + 16 * slot };
    let blocked = turn << 48;
    let granted = Amo::CompareSwap { expected: blocked, new: blocked | GRANTED };
    (RemoteAddr { rank: Rank::new(rank - 1), offset, ..addr }, granted)
}

/// What readies a node for its next turn, if `old` was found in its wake word and that has been
/// given up.
pub(super) fn ready(addr: RemoteAddr, old: u64) -> Option<(RemoteAddr, Amo<u64>)> {
    (old & 0xff == ABANDONED).then(|| (addr, Amo::Swap((((old >> 48) + 1) % TURNS) << 48)))
}

/// Panics if any of these words of the lock, as rank, cell, value, says that somebody holds or
/// waits. The lock's home is rank 0 and its words start at cell 0.
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
