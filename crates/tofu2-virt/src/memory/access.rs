//! Reading and writing registered memory.

use super::{super::prefetch::prefetch, Loc, Memory, SYMMETRIC};
use bytemuck::{cast_slice, cast_slice_mut};

/// Transfers longer than this, in bytes, are searched for zeros, so that long sparse ones take no
/// memory.
pub(crate) const SPARSE: usize = 64 << 10;

/// Returns whether all bytes are zero.
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    bytes.chunks(4096).all(|chunk| chunk.iter().fold(0, |all, byte| all | byte) == 0)
}

impl Memory {
    /// Returns the words that hold a rank's part, if they were ever written, and the index at which
    /// it begins.
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

    /// Loads a word of 4 or 8 bytes, zero-extended. The place must be live and aligned.
    #[inline]
    pub(crate) fn load(&self, loc: &Loc) -> u64 {
        if let Some(program) = self.program(loc) {
            let (mut word, mut half) = ([0; 8], [0; 4]);
            if loc.len == 8 {
                program.read(loc.offset, &mut word);
                return u64::from_ne_bytes(word);
            }
            program.read(loc.offset, &mut half);
            return u32::from_ne_bytes(half).into();
        }
        let Some((words, first)) = self.words(loc) else { return 0 };
        let at = first + (loc.offset as usize >> 3);
        if loc.len == 8 {
            words[at]
        } else {
            u64::from(cast_slice::<u64, u32>(&words[at..=at])[loc.offset as usize >> 2 & 1])
        }
    }

    /// Stores a word of 4 or 8 bytes. The place must be live and aligned.
    #[inline]
    pub(crate) fn store(&mut self, loc: &Loc, value: u64) {
        if let Some(program) = self.program(loc) {
            if loc.len == 8 {
                program.write(loc.offset, &value.to_ne_bytes());
            } else {
                program.write(loc.offset, &(value as u32).to_ne_bytes());
            }
            return;
        }
        let (words, first) = self.words_mut(loc);
        let at = first + (loc.offset as usize >> 3);
        if loc.len == 8 {
            words[at] = value;
        } else {
            cast_slice_mut::<u64, u32>(&mut words[at..=at])[loc.offset as usize >> 2 & 1] = value as u32;
        }
    }

    /// Copies into a live place of the rank that writes.
    #[inline]
    pub(crate) fn write_own(&mut self, loc: &Loc, from: &[u8]) {
        if loc.index & SYMMETRIC != 0 {
            self.own = (loc.index, loc.offset);
        }
        self.copy_in(loc, from);
    }

    /// Prefetches the memory that a rank will write if it acts like the rank before it.
    #[inline]
    pub(crate) fn prefetch(&self, rank: u32) {
        let (index, offset) = self.own;
        if let Some((words, first)) = self.symmetric.get((index & !SYMMETRIC) as usize).and_then(|it| it.words(rank))
            && let Some(word) = words.get(first + (offset as usize >> 3))
        {
            prefetch(word);
        }
    }

    /// Copies out of a live place; `into` has the same length.
    pub(crate) fn copy_out(&self, loc: &Loc, into: &mut [u8]) {
        if let Some(program) = self.program(loc) {
            return program.read(loc.offset, into);
        }
        match self.words(loc) {
            None => into.fill(0),
            Some((words, first)) => {
                let start = first * 8 + loc.offset as usize;
                copy(into, &cast_slice::<u64, u8>(words)[start..start + into.len()]);
            }
        }
    }

    /// Returns up to 8 bytes of a live place as the first bytes of a word.
    #[inline]
    pub(crate) fn short(&self, loc: &Loc) -> u64 {
        let mut word = [0; 8];
        self.copy_out(loc, &mut word[..loc.len as usize]);
        u64::from_ne_bytes(word)
    }

    /// Returns a copy of a live place. Bytes that were never written take no memory in the copy
    /// either.
    pub(crate) fn copied(&self, loc: &Loc) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.append_to(loc, &mut bytes);
        bytes
    }

    /// Appends the bytes of a live place to `into`.
    pub(crate) fn append_to(&self, loc: &Loc, into: &mut Vec<u8>) {
        let len = loc.len as usize;
        if let Some(program) = self.program(loc) {
            let before = into.len();
            into.resize(before + len, 0);
            return program.read(loc.offset, &mut into[before..]);
        }
        match self.words(loc) {
            // The system zeroes these pages lazily; none is touched.
            None if into.is_empty() && len > SPARSE => *into = vec![0; len],
            None => into.resize(into.len() + len, 0),
            Some((words, first)) => {
                let start = first * 8 + loc.offset as usize;
                into.extend_from_slice(&cast_slice::<u64, u8>(words)[start..start + len]);
            }
        }
    }

    /// Copies into a live place; `from` has the same length. Writing many zeros over bytes that
    /// were never written changes nothing and takes no memory.
    pub(crate) fn copy_in(&mut self, loc: &Loc, from: &[u8]) {
        if let Some(program) = self.program(loc) {
            return program.write(loc.offset, from);
        }
        let nothing = from.is_empty() || (from.len() > SPARSE && self.words(loc).is_none() && is_zero(from));
        if !nothing {
            let (words, first) = self.words_mut(loc);
            let start = first * 8 + loc.offset as usize;
            copy(&mut cast_slice_mut::<u64, u8>(words)[start..start + from.len()], from);
        }
    }
}

/// Copies between slices of equal length; a word is copied in one move.
#[inline]
fn copy(into: &mut [u8], from: &[u8]) {
    match (<&mut [u8; 8]>::try_from(&mut *into), <&[u8; 8]>::try_from(from)) {
        (Ok(into), Ok(from)) => *into = *from,
        _ => into.copy_from_slice(from),
    }
}
