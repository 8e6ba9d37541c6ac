//! Direct accesses inside a place, by offset: for callers that keep one place for a whole region
//! and would otherwise create another one for each access.
//!
//! # Safety
//! The guarantees of [`Place::mapped`], for bytes that are checked against its length and
//! generation in the same call.

use super::{Place, SHORT};
use crate::{Amo, access};
use core::sync::atomic::Ordering::Acquire;

impl Place {
    /// Returns the address of the `len` bytes `offset` bytes into this place, if they are inside
    /// and may be accessed directly.
    #[inline(always)]
    fn direct(&self, offset: usize, len: usize) -> Option<*mut u8> {
        (self.contains(offset, len) && self.is_live()).then(|| self.start.as_ptr().wrapping_add(offset))
    }

    /// Returns whether the place's bytes may be accessed directly.
    #[inline(always)]
    fn is_live(&self) -> bool {
        // SAFETY: kept by `keep_alive`, or a static. Acquire: pairs with the release with which the
        // region was registered.
        unsafe { self.live.as_ref() }.load(Acquire) == u64::from(self.expected as u32)
    }

    /// Returns the address of a word of `width` bytes, if it is also aligned, here and in its
    /// region.
    #[inline(always)]
    fn direct_word(&self, offset: usize, width: usize) -> Option<*mut u8> {
        self.direct_words(offset, width, 1)
    }

    /// Returns the address of `count` words of `width` bytes, if they are also aligned.
    #[inline(always)]
    fn direct_words(&self, offset: usize, width: usize, count: usize) -> Option<*mut u8> {
        let word = self.direct(offset, width * count)?;
        ((word.addr() | (self.offset as usize + offset)) & (width - 1) == 0).then_some(word)
    }

    /// Loads consecutive words of 8 bytes, each like [`Place::load`].
    #[inline(always)]
    pub(crate) fn load_words_at<const N: usize>(&self, offset: usize) -> Option<[u64; N]> {
        let first = self.direct_words(offset, 8, N)?;
        // SAFETY: `N` aligned words, all checked above.
        Some(core::array::from_fn(|n| unsafe { access::load(first.wrapping_add(8 * n), 8) }))
    }

    /// Stores consecutive words of 8 bytes, in their order, each like [`Place::store`].
    #[inline(always)]
    pub(crate) fn store_words_at<const N: usize>(&self, offset: usize, words: [u64; N]) -> Option<()> {
        let first = self.direct_words(offset, 8, N)?;
        for (n, word) in words.into_iter().enumerate() {
            // SAFETY: `N` aligned words, all checked above.
            unsafe { access::store(first.wrapping_add(8 * n), 8, word) };
        }
        Some(())
    }

    /// Prefetches the cache line of a byte that will soon be written, if it is mapped.
    #[inline(always)]
    pub(crate) fn expect_store_at(&self, offset: usize) {
        if let Some(byte) = self.direct(offset, 1) {
            access::expect_store(byte);
        }
    }

    /// Returns whether a word of `width` bytes, 4 or 8, may be accessed directly now.
    #[inline(always)]
    pub(crate) fn admits_word_at(&self, offset: usize, width: usize) -> bool {
        self.direct_word(offset, width).is_some()
    }

    /// Loads a word's bits, as [`Place::load`].
    #[inline(always)]
    pub(crate) fn load_at(&self, offset: usize, width: usize) -> Option<u64> {
        let word = self.direct_word(offset, width)?;
        // SAFETY: `width` aligned bytes, all checked above.
        Some(unsafe { access::load(word, width) })
    }

    /// Stores a word's low bits, as [`Place::store`].
    #[inline(always)]
    pub(crate) fn store_at(&self, offset: usize, width: usize, bits: u64) -> Option<()> {
        let word = self.direct_word(offset, width)?;
        // SAFETY: `width` aligned bytes, all checked above.
        unsafe { access::store(word, width, bits) };
        Some(())
    }

    /// Changes a word, as [`Place::modify`].
    #[inline(always)]
    pub(crate) fn modify_at(&self, offset: usize, width: usize, amo: Amo<u64>) -> Option<u64> {
        let word = self.direct_word(offset, width)?;
        // SAFETY: `width` aligned bytes, all checked above.
        Some(unsafe { access::rmw(word, width, amo) })
    }

    /// Changes a word, as [`Place::modify_at`], and stores its previous bits at `own_offset` in another place, as
    /// [`Place::store_at`]. Returns `None`, with no effect, unless both words may be accessed; otherwise, whether
    /// the other place was still registered after the change, and the bits are stored.
    #[inline(always)]
    pub(crate) fn modify_into_at(
        &self,
        offset: usize,
        (own, own_offset): (&Place, usize),
        width: usize,
        amo: Amo<u64>,
    ) -> Option<bool> {
        let (to, word) = (own.direct_word(own_offset, width)?, self.direct_word(offset, width)?);
        // SAFETY: `width` aligned bytes, all checked above.
        let before = unsafe { access::rmw(word, width, amo) };
        let stays = own.is_live();
        if stays {
            // SAFETY: as above; bounds and alignment do not change.
            unsafe { access::store(to, width, before) };
        }
        Some(stays)
    }

    /// Fills a part of the place from `bytes`, as [`Place::copy_in`].
    #[inline(always)]
    pub(crate) fn copy_in_at(&self, offset: usize, bytes: &[u8]) -> Option<()> {
        if bytes.len() > SHORT {
            return None;
        }
        let to = self.direct(offset, bytes.len())?;
        // SAFETY: both sides have `bytes.len()` bytes, checked above.
        unsafe { access::copy_in(to, bytes.as_ptr(), bytes.len()) };
        Some(())
    }

    /// Fills `bytes` from a part of the place, as [`Place::copy_out`].
    #[inline(always)]
    pub(crate) fn copy_out_at(&self, offset: usize, bytes: &mut [u8]) -> Option<()> {
        if bytes.len() > SHORT {
            return None;
        }
        let from = self.direct(offset, bytes.len())?;
        // SAFETY: both sides have `bytes.len()` bytes, checked above.
        unsafe { access::copy_out(bytes.as_mut_ptr(), from, bytes.len()) };
        Some(())
    }

    /// Copies `len` bytes, at most [`SHORT`], from `from_offset` bytes into another place, as
    /// [`Place::copy_from`].
    #[inline(always)]
    pub(crate) fn copy_at(&self, offset: usize, from: &Place, from_offset: usize, len: usize) -> Option<()> {
        if len > SHORT {
            return None;
        }
        let (to, from) = (self.direct(offset, len)?, from.direct(from_offset, len)?);
        // SAFETY: both sides have `len` bytes, checked above.
        unsafe { if len == 8 { access::copy_between(to, from, 8) } else { copy_short(to, from, len) } };
        Some(())
    }
}

/// Copies at most [`SHORT`] bytes: a call, since the moves of all lengths would take registers from its caller.
///
/// # Safety
/// As [`access::copy_between`].
#[inline(never)]
unsafe fn copy_short(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe { access::copy_between(to, from, len.min(SHORT)) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rank, RegionKey, RemoteAddr, provider::KeepAlive};
    use core::{
        ptr::NonNull,
        sync::atomic::{AtomicU32, AtomicU64, Ordering::Release},
    };
    use std::sync::Arc;

    /// A region's memory.
    struct Memory {
        words: [AtomicU64; 4],
        live: AtomicU64,
        doorbell: AtomicU32,
    }

    /// The last three words of a region of four, and its generation.
    fn mapped() -> (Place, Arc<Memory>) {
        let words = [1, 2, 3, 4].map(AtomicU64::new);
        let memory = Arc::new(Memory { words, live: AtomicU64::new(7), doorbell: AtomicU32::new(0) });
        let addr = RemoteAddr { rank: Rank::new(0), region: RegionKey { index: 0, generation: 7 }, offset: 8 };
        let start = NonNull::from(&memory.words[1]).cast();
        let (live, doorbell) = (NonNull::from(&memory.live), NonNull::from(&memory.doorbell));
        // SAFETY: all of it is kept by the keep-alive.
        (unsafe { Place::mapped(start, 24, live, doorbell, addr, KeepAlive::new(memory.clone())) }, memory)
    }

    #[test]
    fn accesses_stay_inside() {
        let (place, memory) = mapped();
        assert_eq!((place.load_at(0, 8), place.load_at(16, 8), place.load_at(20, 4)), (Some(2), Some(4), Some(0)));
        for (offset, width) in [(17, 8), (24, 8), (4, 8), (2, 4), (usize::MAX, 8), (usize::MAX - 7, 8)] {
            assert_eq!((place.load_at(offset, width), place.admits_word_at(offset, width)), (None, false), "{offset}");
            assert_eq!((place.store_at(offset, width, 9), place.modify_at(offset, width, Amo::Add(1))), (None, None));
        }
        assert_eq!((place.modify_at(8, 8, Amo::Add(10)), place.store_at(16, 4, 5)), (Some(3), Some(())));
        for (offset, own_offset) in [(4, 0), (0, 4), (24, 0), (0, 24), (usize::MAX, 0), (0, usize::MAX)] {
            assert_eq!(place.modify_into_at(offset, (&place, own_offset), 8, Amo::Add(1)), None);
        }
        assert_eq!(place.modify_into_at(8, (&place, 0), 8, Amo::Add(0)), Some(true));
        assert_eq!([0, 8].map(|offset| place.load_at(offset, 8)), [Some(13), Some(13)]);
        assert_eq!(place.store_at(0, 8, 2), Some(()));
        for (to, from, len) in [(1, 0, 24), (0, 1, 24), (0, 0, SHORT + 1), (0, usize::MAX, 2), (25, 0, 0)] {
            assert_eq!(place.copy_at(to, &place, from, len), None, "{to} {from} {len}");
        }
        assert_eq!((place.load_words_at::<3>(8), place.load_words_at::<2>(4)), (None, None));
        assert_eq!((place.store_words_at(16, [0, 0]), place.store_words_at(9, [0])), (None, None));
        assert_eq!((place.load_words_at(0), place.store_words_at(8, [13, 5])), (Some([2, 13, 5]), Some(())));
        let mut bytes = [0; SHORT + 1];
        for (offset, len) in [(1, 24), (24, 1), (0, SHORT + 1), (usize::MAX, 2)] {
            assert_eq!(
                (place.copy_in_at(offset, &bytes[..len]), place.copy_out_at(offset, &mut bytes[..len])),
                (None, None)
            );
        }
        assert_eq!((place.copy_at(0, &place, 8, 8), place.copy_at(24, &place, 0, 0)), (Some(()), Some(())));
        assert_eq!([0, 8, 16].map(|offset| place.load_at(offset, 8)), [Some(13), Some(13), Some(5)]);
        assert_eq!((place.copy_in_at(16, &[7; 8]), place.copy_out_at(15, &mut bytes[..9])), (Some(()), Some(())));
        assert_eq!(bytes[1..10], [7, 7, 7, 7, 7, 7, 7, 7, 0]);
        assert_eq!(place.hidden().load_at(0, 8), None);
        drop(memory);
    }

    #[test]
    fn what_is_deregistered_is_not_accessed() {
        let (place, memory) = mapped();
        memory.live.store(8, Release);
        assert_eq!((place.load_at(0, 8), place.store_at(0, 8, 1), place.copy_at(0, &place, 8, 8)), (None, None, None));
        assert_eq!(place.modify_into_at(0, (&place, 8), 8, Amo::Add(1)), None);
        assert!(!place.admits_word_at(0, 8));
    }
}
