//! The storage of one rank's part of a region: nothing, single pages, or all of it.
//!
//! Protocols of many ranks have an area for each possible peer and use few of them, so a large part
//! takes memory by pages of [`Pages::page_words`] words, until the whole part costs little more.

use super::storage::Stored;
use bytemuck::{cast_slice, cast_slice_mut};

/// The smallest page, in words.
const PAGE: usize = 32;
/// The number of pages of a part is at most this, so that finding one stays cheap.
const MOST_PAGES: usize = 1024;
/// A part becomes whole when one word in `SHARE` is used, or written at once.
const SHARE: usize = 8;

/// The sizes of the parts of a region, in words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pages {
    words: usize,
    /// The binary logarithm of the words of a page.
    shift: u32,
}

impl Pages {
    /// Divides parts of `words` words.
    pub(super) fn of(words: usize) -> Self {
        if words <= SHARE * PAGE {
            return Pages::whole(words);
        }
        Pages { words, shift: words.div_ceil(MOST_PAGES).max(PAGE).next_power_of_two().ilog2() }
    }

    /// For a part of `words` words that is stored as a whole, once it is written.
    #[inline]
    pub(super) fn whole(words: usize) -> Self {
        Pages { words, shift: usize::BITS - 1 }
    }

    fn is_whole(self) -> bool {
        self.shift == usize::BITS - 1
    }

    fn page_words(self) -> usize {
        1 << self.shift
    }

    /// Returns the page of a word, and the word in it.
    fn place(self, word: usize) -> (u32, usize) {
        ((word >> self.shift) as u32, word & (self.page_words() - 1))
    }
}

/// The words that are stored. Others are zero.
#[derive(Debug, Default)]
pub(super) enum Part {
    #[default]
    Blank,
    /// Sorted by number.
    Pages(Vec<Page>),
    Whole(Box<[u64]>),
}

#[derive(Debug)]
pub(super) struct Page {
    number: u32,
    words: Box<[u64]>,
}

fn find(pages: &[Page], number: u32) -> Result<usize, usize> {
    pages.binary_search_by_key(&number, |page| page.number)
}

impl Part {
    pub(super) fn is_blank(&self) -> bool {
        matches!(self, Part::Blank)
    }

    /// Returns a word, if it is stored.
    #[inline]
    pub(super) fn word(&self, sizes: Pages, at: usize) -> Option<&u64> {
        match self {
            Part::Blank => None,
            Part::Whole(words) => words.get(at),
            Part::Pages(pages) => {
                let (number, word) = sizes.place(at);
                pages[find(pages, number).ok()?].words.get(word)
            }
        }
    }

    /// Returns the bytes from `offset` on, at most `len`, that are stored together, or that are not
    /// stored, and their number.
    #[inline]
    pub(super) fn run(&self, sizes: Pages, offset: usize, len: usize) -> (Option<&[u8]>, usize) {
        match self {
            Part::Blank => (None, len),
            Part::Whole(words) => (Some(&cast_slice(words)[offset..offset + len]), len),
            Part::Pages(pages) => {
                let (number, word) = sizes.place(offset / 8);
                let start = 8 * word + offset % 8;
                let len = len.min(8 * sizes.page_words() - start);
                let page = find(pages, number).ok().map(|at| &pages[at]);
                (page.map(|page| &cast_slice(&page.words)[start..start + len]), len)
            }
        }
    }

    /// Returns the bytes from `offset` on, at most `len` and at least one, to be written.
    #[inline]
    pub(super) fn run_mut(&mut self, sizes: Pages, offset: usize, len: usize, stored: &mut Stored) -> &mut [u8] {
        if !matches!(self, Part::Whole(_)) {
            let used = len.div_ceil(8) + self.pages() * sizes.page_words();
            if used.saturating_mul(SHARE) > sizes.words || sizes.is_whole() {
                self.make_whole(sizes, stored);
            }
        }
        match self {
            Part::Whole(words) => &mut cast_slice_mut(words)[offset..offset + len],
            _ => {
                let (number, word) = sizes.place(offset / 8);
                let start = 8 * word + offset % 8;
                let len = len.min(8 * sizes.page_words() - start);
                &mut cast_slice_mut(self.page(sizes, number, stored))[start..start + len]
            }
        }
    }

    fn pages(&self) -> usize {
        match self {
            Part::Pages(pages) => pages.len(),
            _ => 0,
        }
    }

    /// Returns a page of a part that is not whole.
    fn page(&mut self, sizes: Pages, number: u32, stored: &mut Stored) -> &mut [u64] {
        if self.is_blank() {
            *self = Part::Pages(Vec::new());
        }
        let Part::Pages(pages) = self else { return &mut [] };
        let at = find(pages, number).unwrap_or_else(|at| {
            if pages.len() == pages.capacity() {
                pages.reserve_exact(pages.len().max(2));
            }
            pages.insert(at, Page { number, words: stored.zeroed(sizes.page_words()) });
            at
        });
        &mut pages[at].words
    }

    #[cold]
    fn make_whole(&mut self, sizes: Pages, stored: &mut Stored) {
        let mut words = stored.zeroed(sizes.words);
        if let Part::Pages(pages) = self {
            for Page { number, words: page } in pages {
                let start = *number as usize * sizes.page_words();
                let len = page.len().min(sizes.words - start);
                words[start..start + len].copy_from_slice(&page[..len]);
                stored.drop(page);
            }
        }
        *self = Part::Whole(words);
    }

    /// Frees the storage.
    pub(super) fn clear(&mut self, stored: &mut Stored) {
        match std::mem::take(self) {
            Part::Blank => {}
            Part::Pages(pages) => pages.into_iter().for_each(|mut page| stored.drop(&mut page.words)),
            Part::Whole(mut words) => stored.drop(&mut words),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(part: &Part, sizes: Pages, offset: usize, len: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < len {
            let (run, n) = part.run(sizes, offset + bytes.len(), len - bytes.len());
            match run {
                Some(run) => bytes.extend_from_slice(run),
                None => bytes.resize(bytes.len() + n, 0),
            }
        }
        bytes
    }

    proptest! {
        /// Parts of any size read as flat memory does, whether or not they have become whole, and take
        /// nothing when they are cleared.
        #[test]
        fn like_flat_memory(words in 1usize..5000, writes in prop::collection::vec((any::<u64>(), any::<u64>(), 1u8..), 1..60)) {
            let (sizes, mut stored) = (Pages::of(words), Stored::default());
            let (mut part, mut flat) = (Part::default(), vec![0u8; 8 * words]);
            for (at, len, value) in writes {
                let at = at as usize % flat.len();
                let len = 1 + len as usize % (flat.len() - at).min(700);
                let mut done = 0;
                while done < len {
                    let run = part.run_mut(sizes, at + done, len - done, &mut stored);
                    run.fill(value);
                    done += run.len();
                }
                flat[at..at + len].fill(value);
                prop_assert_eq!(&part.word(sizes, at / 8).copied().unwrap_or(0).to_ne_bytes()[..], &flat[at / 8 * 8..][..8]);
            }
            prop_assert_eq!(read(&part, sizes, 0, flat.len()), flat);
            part.clear(&mut stored);
            prop_assert_eq!(stored.now, 0);
        }
    }

    #[test]
    fn few_words_take_few_pages() {
        let (sizes, mut stored) = (Pages::of(13_000), Stored::default());
        let mut part = Part::default();
        for peer in 0..4 {
            part.run_mut(sizes, 3200 * peer, 8, &mut stored).fill(1);
        }
        assert_eq!(stored.now, 4 * 8 * PAGE);
    }
}
