//! Private memory of the bare forms.

use core::ops::Range;

/// The number of bytes in a page.
const PAGE: usize = 4096;

/// Words that start at a page boundary. If a copy's destination lies a few bytes after its source,
/// modulo the page size, string moves of some processors take five times as long; a limit must not
/// depend on the address that the allocator happened to return.
#[derive(Debug)]
pub struct Buffer {
    memory: Vec<u64>,
    words: Range<usize>,
}

impl Buffer {
    /// Allocates `words` words, each 1.
    pub fn new(words: usize) -> Self {
        let memory = vec![1; words + PAGE / 8];
        let start = memory.as_ptr().align_offset(PAGE);
        Buffer { words: start..start + words, memory }
    }

    /// Returns the words.
    pub fn words(&mut self) -> &mut [u64] {
        &mut self.memory[self.words.clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_start_at_a_page() {
        for words in [1, 8192, 100_000] {
            let mut buffer = Buffer::new(words);
            assert_eq!(buffer.words().len(), words);
            assert_eq!(buffer.words().as_ptr().addr() % PAGE, 0);
        }
    }
}
