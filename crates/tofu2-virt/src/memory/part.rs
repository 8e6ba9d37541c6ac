//! The storage of one rank's part of a region: nothing, single pages, or all of it.
//!
//! Protocols of many ranks have an area for each possible peer and use few of them, so a large part
//! takes memory by pages of [`Pages::page_words`] words, until the whole part costs little more.

use super::{
    loan::Words,
    pages::{Pages, SHARE, Store},
    storage::Stored,
};
use bytemuck::{cast_slice, cast_slice_mut};
use std::sync::Arc;

/// The words that are stored. Others are zero.
#[derive(Debug, Default)]
pub(super) enum Part {
    #[default]
    Blank,
    /// Sorted by number.
    Pages(Vec<Page>),
    Whole(Box<[u64]>),
    /// All words, which the program of the rank may read, too, and which are therefore copied before a write.
    Shared(Words),
}

/// A page that is stored, by its slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    slot: u32,
    number: u16,
}

#[inline]
fn find(pages: &[Page], number: u16) -> Result<usize, usize> {
    pages.binary_search_by_key(&number, |page| page.number)
}

impl Part {
    pub(super) fn is_blank(&self) -> bool {
        matches!(self, Part::Blank)
    }

    /// Returns a word, if it is stored.
    #[inline]
    pub(super) fn word<'a>(&'a self, sizes: Pages, store: &'a Store, at: usize) -> Option<&'a u64> {
        match self {
            Part::Blank => None,
            Part::Whole(words) => words.get(at),
            Part::Shared(words) => words.get(at),
            Part::Pages(pages) => {
                let (number, word) = sizes.place(at);
                store.page(sizes, pages[find(pages, number).ok()?].slot).get(word)
            }
        }
    }

    /// Returns the bytes from `offset` on, at most `len`, that are stored together, or that are not
    /// stored, and their number.
    #[inline]
    pub(super) fn run<'a>(
        &'a self,
        sizes: Pages,
        store: &'a Store,
        offset: usize,
        len: usize,
    ) -> (Option<&'a [u8]>, usize) {
        match self {
            Part::Blank => (None, len),
            Part::Whole(words) => (Some(&cast_slice(words)[offset..offset + len]), len),
            Part::Shared(words) => (Some(&cast_slice(words)[offset..offset + len]), len),
            Part::Pages(pages) => {
                let (number, word) = sizes.place(offset / 8);
                let start = 8 * word + offset % 8;
                let len = len.min(8 * sizes.page_words() - start);
                let page = find(pages, number).ok().map(|at| store.page(sizes, pages[at].slot));
                (page.map(|page| &cast_slice(page)[start..start + len]), len)
            }
        }
    }

    /// Returns the bytes from `offset` on, at most `len` and at least one, to be written.
    #[inline]
    pub(super) fn run_mut<'a>(
        &'a mut self,
        sizes: Pages,
        store: &'a mut Store,
        offset: usize,
        len: usize,
        stored: &mut Stored,
    ) -> &'a mut [u8] {
        if !matches!(self, Part::Whole(_)) {
            let used = len.div_ceil(8) + self.pages() * sizes.page_words();
            if matches!(self, Part::Shared(_)) || used.saturating_mul(SHARE) > sizes.words || sizes.is_whole() {
                self.make_whole(sizes, store, stored);
            }
        }
        match self {
            Part::Whole(words) => &mut cast_slice_mut(words)[offset..offset + len],
            _ => {
                let (number, word) = sizes.place(offset / 8);
                let start = 8 * word + offset % 8;
                let len = len.min(8 * sizes.page_words() - start);
                let slot = self.slot(sizes, store, number, stored);
                &mut cast_slice_mut(store.page_mut(sizes, slot))[start..start + len]
            }
        }
    }

    fn pages(&self) -> usize {
        match self {
            Part::Pages(pages) => pages.len(),
            _ => 0,
        }
    }

    /// Returns the slot of a page of a part that is not whole.
    fn slot(&mut self, sizes: Pages, store: &mut Store, number: u16, stored: &mut Stored) -> u32 {
        let mut first = Vec::new();
        let pages = match self {
            Part::Pages(pages) => pages,
            _ => &mut first,
        };
        let at = match find(pages, number) {
            Ok(at) => return pages[at].slot,
            Err(at) => at,
        };
        if pages.len() == pages.capacity() {
            pages.reserve_exact((pages.len() / 4).max(4));
        }
        let slot = store.take(sizes, stored);
        pages.insert(at, Page { slot, number });
        if !first.is_empty() {
            *self = Part::Pages(first);
        }
        slot
    }

    #[cold]
    fn make_whole(&mut self, sizes: Pages, store: &mut Store, stored: &mut Stored) {
        if let Part::Shared(words) = self {
            let words = std::mem::take(words);
            if Arc::strong_count(&words) > 1 {
                // The copy that is lent no longer counts.
                stored.check(words.len());
            }
            *self = Part::Whole(Arc::unwrap_or_clone(words));
            return;
        }
        let mut words = stored.zeroed(sizes.words);
        if let Part::Pages(pages) = self {
            for Page { slot, number } in pages {
                let start = usize::from(*number) * sizes.page_words();
                let len = sizes.page_words().min(sizes.words - start);
                words[start..start + len].copy_from_slice(&store.page(sizes, *slot)[..len]);
                store.give(sizes, *slot, stored);
            }
        }
        *self = Part::Whole(words);
    }

    /// Returns the words, to be read as they are now; `None` if a copy of `len` bytes takes less.
    pub(super) fn share(&mut self, sizes: Pages, store: &mut Store, len: usize, stored: &mut Stored) -> Option<Words> {
        if len.div_ceil(8).saturating_mul(SHARE) < sizes.words {
            return None;
        }
        match self {
            Part::Shared(words) => return Some(Arc::clone(words)),
            Part::Whole(_) => {}
            Part::Blank => {
                stored.check(sizes.words);
                return Some(Arc::new(vec![0; sizes.words].into_boxed_slice()));
            }
            Part::Pages(_) => self.make_whole(sizes, store, stored),
        }
        if let Part::Whole(words) = self {
            *self = Part::Shared(Arc::new(std::mem::take(words)));
        }
        self.share(sizes, store, len, stored)
    }

    /// Moves the words out, and leaves nothing. They still count as stored.
    pub(super) fn take(&mut self, sizes: Pages, store: &mut Store, stored: &mut Stored) -> Words {
        if !matches!(self, Part::Whole(_)) {
            self.make_whole(sizes, store, stored);
        }
        match std::mem::take(self) {
            Part::Whole(words) => Arc::new(words),
            _ => Words::default(),
        }
    }

    /// Puts back words that were [taken](Part::take).
    pub(super) fn put_back(&mut self, words: Words) {
        *self = Part::Whole(Arc::unwrap_or_clone(words));
    }

    /// Frees the storage.
    pub(super) fn clear(&mut self, sizes: Pages, store: &mut Store, stored: &mut Stored) {
        match std::mem::take(self) {
            Part::Blank => {}
            Part::Pages(pages) => pages.iter().for_each(|page| store.give(sizes, page.slot, stored)),
            Part::Whole(mut words) => stored.drop(&mut words),
            Part::Shared(words) => stored.subtract(words.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::pages::PAGE, *};
    use proptest::prelude::*;

    fn read(part: &Part, store: &Store, sizes: Pages, offset: usize, len: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < len {
            let (run, n) = part.run(sizes, store, offset + bytes.len(), len - bytes.len());
            match run {
                Some(run) => bytes.extend_from_slice(run),
                None => bytes.resize(bytes.len() + n, 0),
            }
        }
        bytes
    }

    proptest! {
        /// Parts of any size read as flat memory does, whether or not they have become whole, and take
        /// nothing when they are cleared. Shared words do not change, and taken words may be written.
        #[test]
        fn like_flat_memory(words in 1usize..5000, writes in prop::collection::vec((any::<u64>(), any::<u64>(), 1u8..), 1..60)) {
            let (sizes, mut store, mut stored) = (Pages::of(words), Store::default(), Stored::default());
            let (mut part, mut flat) = (Part::default(), vec![0u8; 8 * words]);
            let mut shared = Vec::new();
            for (at, len, value) in writes {
                let lent = value % 16;
                if lent == 1 || lent == 2 {
                    let len = if lent == 1 { flat.len() } else { 1 };
                    shared.extend(part.share(sizes, &mut store, len, &mut stored).map(|words| (words, flat.clone())));
                    prop_assert!(lent == 2 || shared.last().is_some_and(|(_, then)| *then == flat));
                }
                if lent == 3 {
                    let mut taken = part.take(sizes, &mut store, &mut stored);
                    prop_assert_eq!((stored.now, cast_slice::<_, u8>(&taken)), (flat.len(), &flat[..]));
                    cast_slice_mut::<_, u8>(Arc::get_mut(&mut taken).unwrap())[0] = value;
                    flat[0] = value;
                    part.put_back(taken);
                }
                let at = at as usize % flat.len();
                let len = 1 + len as usize % (flat.len() - at).min(700);
                let mut done = 0;
                while done < len {
                    let run = part.run_mut(sizes, &mut store, at + done, len - done, &mut stored);
                    run.fill(value);
                    done += run.len();
                }
                flat[at..at + len].fill(value);
                prop_assert_eq!(&part.word(sizes, &store, at / 8).copied().unwrap_or(0).to_ne_bytes()[..], &flat[at / 8 * 8..][..8]);
            }
            prop_assert_eq!(read(&part, &store, sizes, 0, flat.len()), flat);
            prop_assert!(shared.iter().all(|(words, then)| cast_slice::<_, u8>(words) == &then[..]));
            part.clear(sizes, &mut store, &mut stored);
            prop_assert_eq!(stored.now, 0);
        }
    }

    #[test]
    fn few_words_take_few_pages() {
        let (sizes, mut store, mut stored) = (Pages::of(13_000), Store::default(), Stored::default());
        let mut part = Part::default();
        for peer in 0..4 {
            part.run_mut(sizes, &mut store, 3200 * peer, 8, &mut stored).fill(1);
        }
        assert_eq!(stored.now, 4 * 8 * PAGE);
    }
}
