//! Direct copies of short blocks at equal distances.
//!
//! # Safety
//! The guarantees of [`Place::mapped`]. Both places are as long as the extent of all blocks, and
//! each check of the generations admits copies of at most [`SHORT`] bytes in total, like a single
//! direct access.

use super::{Place, SHORT};
use crate::{Blocks, access};
use core::sync::atomic::{AtomicU64, Ordering::Acquire};

/// Two mapped places of the same layout, between which blocks are copied.
struct Cursor<'a> {
    to: *mut u8,
    from: *const u8,
    /// Bytes from one block to the next.
    stride: usize,
    /// The words that determine whether both places may be accessed, and the generations that they
    /// must hold.
    lives: [(&'a AtomicU64, u64); 2],
}

impl Cursor<'_> {
    /// Copies the next `count` blocks of `len` bytes, which are at most [`SHORT`] bytes in total;
    /// `None` if the places may not be accessed.
    ///
    /// # Safety
    /// The bytes of these blocks are inside the places.
    #[inline(always)]
    unsafe fn copy(&mut self, len: usize, count: usize) -> Option<()> {
        let [here, there] = self.lives;
        // Acquire: as in `Place::objection`.
        if (here.0.load(Acquire) ^ here.1) | (there.0.load(Acquire) ^ there.1) != 0 {
            return None;
        }
        for _ in 0..count {
            // SAFETY: inside, as guaranteed by the caller; they may be accessed, by the check
            // above.
            unsafe { access::copy_between(self.to, self.from, len) };
            (self.to, self.from) = (self.to.wrapping_add(self.stride), self.from.wrapping_add(self.stride));
        }
        Some(())
    }

    /// Copies `count` blocks of `len` bytes, 1 to [`SHORT`].
    ///
    /// # Safety
    /// The bytes of all blocks are inside the places.
    #[inline(always)]
    unsafe fn copy_all(mut self, len: usize, count: usize) -> Option<()> {
        let together = SHORT / len;
        // SAFETY: guaranteed by the caller.
        unsafe {
            for _ in 0..count / together {
                self.copy(len, together)?;
            }
            self.copy(len, count % together)
        }
    }
}

impl Place {
    /// Returns the word that determines whether the place may be accessed, and the value that it
    /// must hold.
    #[inline(always)]
    fn life(&self) -> (&AtomicU64, u64) {
        // SAFETY: kept by `keep_alive`, or a static.
        (unsafe { self.live.as_ref() }, u64::from(self.expected as u32))
    }

    /// Fills blocks of `len` bytes, 1 to [`SHORT`], from those of another place, without waking the
    /// owner. Returns `None` if that is not, or no longer, possible directly; some blocks may then
    /// have been copied.
    pub(crate) fn copy_blocks_from(&self, from: &Place, len: usize, blocks: Blocks) -> Option<()> {
        let extent = blocks.extent(len)?;
        if len == 0 || len > SHORT || self.objection(extent) | from.objection(extent) != 0 {
            return None;
        }
        let (to, lives) = (self.start.as_ptr(), [self, from].map(Place::life));
        let cursor = Cursor { to, from: from.start.as_ptr(), stride: blocks.stride as usize, lives };
        let count = blocks.count as usize;
        // A separate loop for each of the usual lengths, so that the length isn't tested for each
        // block.
        //
        // SAFETY: both places have `extent` bytes, checked above, and no block ends behind them.
        unsafe {
            match len {
                8 => cursor.copy_all(8, count),
                16 => cursor.copy_all(16, count),
                32 => cursor.copy_all(32, count),
                64 => cursor.copy_all(64, count),
                _ => cursor.copy_all(len, count),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rank, RegionKey, RemoteAddr, provider::KeepAlive};
    use core::{
        ptr::NonNull,
        sync::atomic::{AtomicU32, Ordering::Release},
    };
    use std::sync::Arc;

    const BYTES: usize = 1024;

    /// A region's memory.
    struct Memory {
        words: [AtomicU64; BYTES / 8],
        live: AtomicU64,
        doorbell: AtomicU32,
    }

    /// A region whose bytes contain their offset plus `more`.
    fn mapped(more: usize) -> (Place, Arc<Memory>) {
        let word = |at: usize| u64::from_ne_bytes(core::array::from_fn(|byte| (8 * at + byte + more) as u8));
        let words = core::array::from_fn(|at| AtomicU64::new(word(at)));
        let memory = Arc::new(Memory { words, live: AtomicU64::new(7), doorbell: AtomicU32::new(0) });
        let addr = RemoteAddr { rank: Rank::new(0), region: RegionKey { index: 0, generation: 7 }, offset: 0 };
        let (live, doorbell) = (NonNull::from(&memory.live), NonNull::from(&memory.doorbell));
        let start = NonNull::from(&memory.words).cast();
        // SAFETY: all of it is kept by the keep-alive.
        (unsafe { Place::mapped(start, BYTES, live, doorbell, addr, KeepAlive::new(memory.clone())) }, memory)
    }

    fn bytes(place: &Place) -> Vec<u8> {
        (0..BYTES / SHORT)
            .flat_map(|at| {
                let mut part = [0; SHORT];
                place.copy_out_at(at * SHORT, &mut part).expect("mapped");
                part
            })
            .collect()
    }

    #[test]
    fn blocks_are_copied_and_nothing_else() {
        for len in 1..=SHORT {
            for (count, gap, at, from) in [(1, 5, 0, 7), (2, 0, 3, 3), (3, 1, 8, 0), (9, 2, 1, 2), (13, 0, 0, 1)] {
                let (stride, (to, _), (source, _)) = (len + gap, mapped(0), mapped(100));
                let blocks = Blocks { count: count as u32, stride: stride as u64 };
                let extent = blocks.extent(len).expect("small");
                let part = |place: &Place, at| place.part(at, extent).expect("inside");
                assert_eq!(part(&to, at).copy_blocks_from(&part(&source, from), len, blocks), Some(()));
                let (mut want, have) = (bytes(&mapped(0).0), bytes(&source));
                for first in (0..count).map(|block| block * stride) {
                    want[at + first..][..len].copy_from_slice(&have[from + first..][..len]);
                }
                assert_eq!(bytes(&to), want, "{blocks:?} of {len} bytes");
            }
        }
    }

    #[test]
    fn what_does_not_fit_or_is_gone_is_not_copied() {
        let ((to, memory), (from, _)) = (mapped(0), mapped(100));
        let copied = |to: &Place, from: &Place, len, count, stride| {
            to.copy_blocks_from(from, len, Blocks { count, stride }).is_some()
        };
        assert!(copied(&to, &from, 16, 8, 144), "they extend over all");
        let short = from.part(0, BYTES - 1).expect("inside");
        assert!(!copied(&to, &short, 16, 8, 144) && !copied(&short, &to, 16, 8, 144));
        for (len, count, stride) in [(16, 9, 144), (16, 7, 144), (SHORT + 1, 8, 137), (0, 9, 128), (16, 0, 144)] {
            assert!(!copied(&to, &from, len, count, stride), "{count} of {len}, {stride} apart");
        }
        for (count, stride) in [(u32::MAX, u64::MAX), (2, u64::MAX - 15), (2, u64::MAX)] {
            assert!(!copied(&to, &from, 16, count, stride), "{count}, {stride} apart");
        }
        assert!(!copied(&to.clone().hidden(), &from, 16, 8, 144) && !copied(&to, &from.clone().hidden(), 16, 8, 144));
        memory.live.store(8, Release);
        assert!(!copied(&to, &from, 16, 8, 144) && !copied(&from, &to, 16, 8, 144));
    }
}
