//! Pages of one size, in which the parts of a region are stored of which little is written.
//!
//! Pages of all parts share chunks, so a page takes neither an allocation nor the allocator's header.

use super::storage::Stored;

/// The smallest page, in words: a cache line, since protocols give each line one writer.
pub(super) const PAGE: usize = 8;
/// The number of pages of a part is at most this, so that finding one stays cheap.
const MOST_PAGES: usize = 2048;
/// Parts of at most this many words are stored as a whole.
const SMALL: usize = 64;
/// A part becomes whole when one word in `SHARE` is used, or written at once.
pub(super) const SHARE: usize = 2;
/// The words of a chunk, unless a page has more.
const CHUNK: usize = 2048;

/// The sizes of the parts of a region, in words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pages {
    pub(super) words: usize,
    /// The binary logarithm of the words of a page.
    shift: u32,
}

impl Pages {
    /// Divides parts of `words` words.
    pub(super) fn of(words: usize) -> Self {
        if words <= SMALL {
            return Pages::whole(words);
        }
        Pages { words, shift: words.div_ceil(MOST_PAGES).max(PAGE).next_power_of_two().ilog2() }
    }

    /// Divides parts of any number of words that share a [`Store`] into the smallest pages, unless they
    /// would be too many.
    #[inline]
    pub(super) fn smallest(words: usize) -> Self {
        if words <= SMALL || words > MOST_PAGES * PAGE {
            return Pages::whole(words);
        }
        Pages { words, shift: PAGE.ilog2() }
    }

    /// For a part of `words` words that is stored as a whole, once it is written.
    #[inline]
    pub(super) fn whole(words: usize) -> Self {
        Pages { words, shift: usize::BITS - 1 }
    }

    pub(super) fn is_whole(self) -> bool {
        self.shift == usize::BITS - 1
    }

    pub(super) fn page_words(self) -> usize {
        1 << self.shift
    }

    /// Returns the number of the page of a word, and the word in it.
    pub(super) fn place(self, word: usize) -> (u16, usize) {
        ((word >> self.shift) as u16, word & (self.page_words() - 1))
    }

    /// The binary logarithm of the pages of a chunk.
    fn chunk_shift(self) -> u32 {
        CHUNK.ilog2().saturating_sub(self.shift)
    }

    /// Returns the chunk of a slot, and the first word of the slot in it.
    fn slot(self, slot: u32) -> (usize, usize) {
        let chunk = self.chunk_shift();
        ((slot >> chunk) as usize, (slot as usize & ((1 << chunk) - 1)) << self.shift)
    }
}

/// Pages of one size, of many parts.
#[derive(Debug, Default)]
pub(super) struct Store {
    chunks: Vec<Box<[u64]>>,
    /// The number of slots that have ever been in use.
    slots: u32,
    free: Vec<u32>,
}

impl Store {
    #[inline]
    pub(super) fn page(&self, sizes: Pages, slot: u32) -> &[u64] {
        let (chunk, first) = sizes.slot(slot);
        &self.chunks[chunk][first..first + sizes.page_words()]
    }

    #[inline]
    pub(super) fn page_mut(&mut self, sizes: Pages, slot: u32) -> &mut [u64] {
        let (chunk, first) = sizes.slot(slot);
        &mut self.chunks[chunk][first..first + sizes.page_words()]
    }

    /// Takes a page of zeros. Returns its slot.
    pub(super) fn take(&mut self, sizes: Pages, stored: &mut Stored) -> u32 {
        if let Some(slot) = self.free.pop() {
            stored.add(sizes.page_words());
            self.page_mut(sizes, slot).fill(0);
            return slot;
        }
        let slot = self.slots;
        if sizes.slot(slot).0 == self.chunks.len() {
            let words = sizes.page_words() << sizes.chunk_shift();
            stored.check(words);
            self.chunks.push(vec![0; words].into_boxed_slice());
        }
        stored.add(sizes.page_words());
        self.slots += 1;
        slot
    }

    pub(super) fn give(&mut self, sizes: Pages, slot: u32, stored: &mut Stored) {
        stored.subtract(sizes.page_words());
        self.free.push(slot);
    }
}
