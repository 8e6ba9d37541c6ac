//! A layout as it travels to another member.

use super::{Layout, MOST_DIMS};

impl Layout {
    /// Words of a layout.
    pub const WORDS: usize = 2 + 2 * MOST_DIMS;

    /// The layout as plain words, for exchange through registered memory.
    pub fn to_words(&self) -> [u64; Layout::WORDS] {
        let mut words = [0; Layout::WORDS];
        (words[0], words[1]) = (self.offset, self.run);
        for (pair, (count, stride)) in words[2..].chunks_exact_mut(2).zip(self.dims) {
            (pair[0], pair[1]) = (count, stride);
        }
        words
    }

    /// The inverse of [`Layout::to_words`]; `None` for words that it never makes. What this returns never overflows.
    pub fn from_words(words: [u64; Layout::WORDS]) -> Option<Layout> {
        let mut dims = [(1, 0); MOST_DIMS];
        for (dim, pair) in dims.iter_mut().zip(words[2..].chunks_exact(2)) {
            *dim = (pair[0], pair[1]);
        }
        let layout = Layout::strided(words[0], words[1], &dims).ok()?;
        (layout.to_words() == words).then_some(layout)
    }
}
