//! The hash table of `acp::Map` over bare memory: the limit imposed by its layout, its hash and its
//! locks.
//!
//! Slots, elements, heaps and their marks are those of `acp`, for keys and values of 8 bytes.
//! Values read from memory are not checked, and no rank dies.

use crate::outside::bare::Bare;
use acp::TableRef;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Bytes from one rank's slots to the next one's; its heap is in between.
const PART_BYTES: usize = Bare::CELL_BYTES / 4;
/// Bytes of a slot: lock, head, tail, count.
const SLOT_BYTES: usize = 32;
/// The first block of a heap: before it are the lock, the first and the last free block, and a
/// fence.
const FIRST: usize = 32;
/// Bytes of an element: next, previous, size of the rest, key size, key, value.
const ELEMENT_BYTES: usize = 48;
/// The number of polls of a lock before a rank yields its core.
const SPIN_LIMIT: u32 = 100;

/// One rank's view of a table over up to four ranks. Addresses are offsets of cells.
pub(super) struct BareTable<'a> {
    bare: &'a Bare,
    /// The value of a lock that this rank holds.
    holding: u64,
    /// The numbers of ranks and slots.
    at: TableRef,
}

impl<'a> BareTable<'a> {
    /// Initialises `me`'s part of the table at `at`. No rank may use the table before all have done
    /// so.
    pub(super) fn new(bare: &'a Bare, me: usize, at: TableRef) -> Self {
        let table = BareTable { bare, holding: me as u64 + 1, at };
        table.clear(me);
        table
    }

    /// Empties a rank's part, which no rank may use at the same time.
    pub(super) fn clear(&self, rank: usize) {
        let heap = self.heap(rank);
        for slot in (rank * PART_BYTES..heap).step_by(8) {
            self.set(slot, 0);
        }
        let bytes = (rank + 1) * PART_BYTES - heap;
        let all = mark(FIRST, bytes - 8 - FIRST, false);
        for (at, word) in [(8, FIRST as u64), (16, FIRST as u64), (24, mark(24, 8, true)), (FIRST, all)] {
            self.set(heap + at, word);
        }
        for (at, word) in [(FIRST + 8, 0), (FIRST + 16, 0), (bytes - 16, all), (bytes - 8, mark(bytes - 8, 8, true))] {
            self.set(heap + at, word);
        }
    }

    /// Returns the number of elements, while no rank changes it.
    pub(super) fn len(&self) -> u64 {
        let slots =
            (0..self.at.ranks as usize).flat_map(|rank| (rank * PART_BYTES..self.heap(rank)).step_by(SLOT_BYTES));
        slots.map(|slot| self.get(slot + 24)).sum()
    }

    /// Inserts a key with a value; returns whether it is new.
    #[inline]
    pub(super) fn insert(&self, key: u64, value: u64) -> bool {
        let (rank, slot) = self.at.place_of(&key.to_ne_bytes());
        let slot = rank * PART_BYTES + slot as usize * SLOT_BYTES;
        self.lock(slot);
        let (head, tail, count) = (self.get(slot + 8), self.get(slot + 16), self.get(slot + 24));
        let mut next = head as usize;
        while next != 0 {
            if self.get(next + 24) == 8 && self.get(next + 32) == key {
                self.unlock(slot);
                return false;
            }
            next = self.get(next) as usize;
        }
        let element = self.allocate(self.heap(rank));
        for (word, value) in [0, tail, 24, 8, key, value].into_iter().enumerate() {
            self.set(element + 8 * word, value);
        }
        self.set(if tail == 0 { slot + 8 } else { tail as usize }, element as u64);
        self.set(slot + 16, element as u64);
        self.set(slot + 24, count + 1);
        self.unlock(slot);
        true
    }

    /// Returns the value of a key.
    #[inline]
    pub(super) fn lookup(&self, key: u64) -> Option<u64> {
        let (rank, slot) = self.at.place_of(&key.to_ne_bytes());
        let slot = rank * PART_BYTES + slot as usize * SLOT_BYTES;
        self.lock(slot);
        let mut next = self.get(slot + 8) as usize;
        while next != 0 && (self.get(next + 24) != 8 || self.get(next + 32) != key) {
            next = self.get(next) as usize;
        }
        let found = (next != 0).then(|| self.get(next + 40));
        self.unlock(slot);
        found
    }

    /// Takes an element's bytes from the end of the first free block that is large enough.
    #[inline]
    fn allocate(&self, heap: usize) -> usize {
        const NEED: usize = ELEMENT_BYTES + 16;
        self.lock(heap);
        let mut at = self.get(heap + 8) as usize;
        let (start, size) = loop {
            assert_ne!(at, 0, "the heap has room for all");
            let size = (self.get(heap + at) as u32 >> 1) as usize * 8;
            if size >= NEED + 32 {
                break (at, size - NEED);
            }
            at = self.get(heap + at + 8) as usize;
        };
        let (rest, taken) = (mark(start, size, false), mark(start + size, NEED, true));
        self.set(heap + start, rest);
        self.set(heap + start + size - 8, rest);
        self.set(heap + start + size, taken);
        self.set(heap + start + size + NEED - 8, taken);
        self.unlock(heap);
        heap + start + size + 8
    }

    fn heap(&self, rank: usize) -> usize {
        rank * PART_BYTES + self.at.slots as usize * SLOT_BYTES
    }

    #[inline(always)]
    fn get(&self, cell: usize) -> u64 {
        self.bare.cell(cell).load(Relaxed)
    }

    #[inline(always)]
    fn set(&self, cell: usize, value: u64) {
        self.bare.cell(cell).store(value, Relaxed);
    }

    #[inline(always)]
    fn lock(&self, word: usize) {
        let word = self.bare.cell(word);
        let mut looks = 0;
        // Acquire: pairs with the release in `unlock`.
        while word.compare_exchange(0, self.holding, Acquire, Relaxed).is_err() {
            looks += 1;
            if looks < SPIN_LIMIT { core::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }

    #[inline(always)]
    fn unlock(&self, word: usize) {
        self.bare.cell(word).store(0, Release);
    }
}

/// Returns the word at both ends of a block.
#[inline(always)]
fn mark(start: usize, size: usize, used: bool) -> u64 {
    let hash = ((start / 8) as u32 + 1).wrapping_mul(0x9E37_79B1);
    u64::from(hash) << 32 | (size as u64 / 8) << 1 | u64::from(used)
}
