//! Reading and writing registered memory.

use super::{super::prefetch::prefetch, Loc, Memory, SYMMETRIC};
use bytemuck::{cast_slice, cast_slice_mut};

/// More zeros than this, in bytes, are looked for, so that long sparse transfers take no memory.
pub(crate) const SPARSE: usize = 64 << 10;

/// Whether all bytes are zero.
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    bytes.chunks(4096).all(|chunk| chunk.iter().fold(0, |all, byte| all | byte) == 0)
}

impl Memory {
    /// The words of a rank's part, if they were ever written, and where in them it begins.
    #[inline]
    fn words(&self, loc: &Loc) -> Option<(&[u64], usize)> {
        if loc.index & SYMMETRIC != 0 {
            self.symmetric[(loc.index & !SYMMETRIC) as usize].words(loc.rank)
        } else {
            let words = self.local.get(loc.rank as usize)?.as_deref()?.words(loc.index);
            (!words.is_empty()).then_some((words, 0))
        }
    }

    #[inline]
    fn words_mut(&mut self, loc: &Loc) -> (&mut [u64], usize) {
        if loc.index & SYMMETRIC != 0 {
            self.symmetric[(loc.index & !SYMMETRIC) as usize].words_mut(loc.rank, &mut self.stored)
        } else {
            let table = self.local[loc.rank as usize].as_deref_mut();
            (table.expect("a live local region has a table").words_mut(loc.index, &mut self.stored), 0)
        }
    }

    /// A word of 4 or 8 bytes, zero-extended. The place is live and aligned.
    #[inline]
    pub(crate) fn load(&self, loc: &Loc) -> u64 {
        let Some((words, first)) = self.words(loc) else { return 0 };
        let at = first + (loc.offset as usize >> 3);
        if loc.len == 8 {
            words[at]
        } else {
            u64::from(cast_slice::<u64, u32>(&words[at..=at])[loc.offset as usize >> 2 & 1])
        }
    }

    /// Stores a word of 4 or 8 bytes. The place is live and aligned.
    #[inline]
    pub(crate) fn store(&mut self, loc: &Loc, value: u64) {
        let (words, first) = self.words_mut(loc);
        let at = first + (loc.offset as usize >> 3);
        if loc.len == 8 {
            words[at] = value;
        } else {
            cast_slice_mut::<u64, u32>(&mut words[at..=at])[loc.offset as usize >> 2 & 1] = value as u32;
        }
    }

    /// A rank writes a live place of its own.
    #[inline]
    pub(crate) fn write_own(&mut self, loc: &Loc, from: &[u8]) {
        if loc.index & SYMMETRIC != 0 {
            self.own = (loc.index, loc.offset);
        }
        self.copy_in(loc, from);
    }

    /// Asks for the memory that a rank will write if it does as the one before.
    #[inline]
    pub(crate) fn prefetch(&self, rank: u32) {
        let (index, offset) = self.own;
        if let Some((words, first)) = self.symmetric.get((index & !SYMMETRIC) as usize).and_then(|it| it.words(rank))
            && let Some(word) = words.get(first + (offset as usize >> 3))
        {
            prefetch(word);
        }
    }

    /// Copies out of a live place; `into` is as long as it.
    pub(crate) fn copy_out(&self, loc: &Loc, into: &mut [u8]) {
        match self.words(loc) {
            None => into.fill(0),
            Some((words, first)) => {
                let start = first * 8 + loc.offset as usize;
                copy(into, &cast_slice::<u64, u8>(words)[start..start + into.len()]);
            }
        }
    }

    /// Up to 8 bytes of a live place, as the first of a word.
    #[inline]
    pub(crate) fn short(&self, loc: &Loc) -> u64 {
        let mut word = [0; 8];
        self.copy_out(loc, &mut word[..loc.len as usize]);
        u64::from_ne_bytes(word)
    }

    /// The bytes of a live place. Those that were never written take no memory here either.
    pub(crate) fn copied(&self, loc: &Loc) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.append_to(loc, &mut bytes);
        bytes
    }

    /// Appends the bytes of a live place to `into`.
    pub(crate) fn append_to(&self, loc: &Loc, into: &mut Vec<u8>) {
        let len = loc.len as usize;
        match self.words(loc) {
            // Zeroed by the system, not touched.
            None if into.is_empty() && len > SPARSE => *into = vec![0; len],
            None => into.resize(into.len() + len, 0),
            Some((words, first)) => {
                let start = first * 8 + loc.offset as usize;
                into.extend_from_slice(&cast_slice::<u64, u8>(words)[start..start + len]);
            }
        }
    }

    /// Copies into a live place; `from` is as long as it. Many zeros over bytes that were never
    /// written change nothing.
    pub(crate) fn copy_in(&mut self, loc: &Loc, from: &[u8]) {
        let nothing = from.is_empty() || (from.len() > SPARSE && self.words(loc).is_none() && is_zero(from));
        if !nothing {
            let (words, first) = self.words_mut(loc);
            let start = first * 8 + loc.offset as usize;
            copy(&mut cast_slice_mut::<u64, u8>(words)[start..start + from.len()], from);
        }
    }
}

/// Copies as many bytes as both have; those of a word are one move.
#[inline]
fn copy(into: &mut [u8], from: &[u8]) {
    match (<&mut [u8; 8]>::try_from(&mut *into), <&[u8; 8]>::try_from(from)) {
        (Ok(into), Ok(from)) => *into = *from,
        _ => into.copy_from_slice(from),
    }
}
