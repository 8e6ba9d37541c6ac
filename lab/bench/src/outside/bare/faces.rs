//! Faces of the ranks' fields: equal blocks at equal distances.

#![allow(unsafe_code)]

use super::{
    Bare,
    copies::{How, copy},
};

/// Equal blocks of a field, at equal distances, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Face {
    pub(crate) count: usize,
    pub(crate) len: usize,
    pub(crate) stride: usize,
}

impl Bare {
    /// Copies the blocks of a face from one rank's field to another's, each given by the rank and
    /// the offset of the first block.
    pub(crate) fn copy_face(&self, to: (usize, usize), from: (usize, usize), face: Face) {
        for block in 0..face.count {
            let skip = block * face.stride;
            let (to, from) = (self.block(to.0, to.1 + skip, face.len), self.block(from.0, from.1 + skip, face.len));
            // SAFETY: `len` bytes each, which don't overlap in this shape; the flags determine
            // their owner.
            unsafe { copy(to, from, face.len, How::Memcpy) };
        }
    }

    /// Fills a face of the rank's own field.
    pub(crate) fn fill_face(&self, me: usize, offset: usize, face: Face, value: u8) {
        for block in 0..face.count {
            let start = self.block(me, offset + block * face.stride, face.len);
            // SAFETY: `len` bytes; by the flags, they are this rank's.
            unsafe { start.write_bytes(value, face.len) };
        }
    }

    /// Sums the words of a face of the rank's own field.
    pub(crate) fn sum_face(&self, me: usize, offset: usize, face: Face) -> u64 {
        let block = |block: usize| {
            let start = self.block(me, offset + block * face.stride, face.len).cast::<u64>();
            // SAFETY: aligned, as faces are made of words, and `len` bytes; by the flags, they are
            // this rank's.
            let words = unsafe { core::slice::from_raw_parts(start, face.len / 8) };
            words.iter().fold(0u64, |sum, word| sum.wrapping_add(*word))
        };
        (0..face.count).map(block).fold(0, u64::wrapping_add)
    }
}
