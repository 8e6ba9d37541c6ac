//! Faces of the ranks' fields: equal blocks at equal distances.

#![allow(unsafe_code)]

use super::{
    Bare,
    copies::{How, copy},
};

/// Equal blocks of a field, at equal distances, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Face {
    /// The number of blocks.
    pub count: usize,
    /// The bytes of a block.
    pub len: usize,
    /// The bytes from the start of a block to the start of the next.
    pub stride: usize,
}

/// A rank's block of a field, with as many columns along i as along j.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Elements of a column.
    pub levels: usize,
    /// Columns along i, and along j.
    pub columns: usize,
    /// Layers of shadow on each horizontal side.
    pub layers: usize,
}

impl Block {
    /// Returns the bytes of a face.
    pub const fn bytes(self) -> usize {
        self.levels * self.columns * self.layers * 8
    }

    /// Returns the faces, two of i and two of j: where each starts, and where it goes in the field
    /// of the receiving rank.
    pub fn faces(self) -> [(usize, usize, Face); 4] {
        let Block { levels, columns, layers } = self;
        let column = levels * 8;
        let row = (columns + 2 * layers) * column;
        let at = |j: usize, i: usize| j * row + i * column;
        let i_face = Face { count: columns, len: layers * column, stride: row };
        let j_face = Face { count: layers, len: columns * column, stride: row };
        let far = columns + layers;
        [
            (at(layers, layers), at(layers, far), i_face),
            (at(layers, columns), at(layers, 0), i_face),
            (at(layers, layers), at(far, layers), j_face),
            (at(columns, layers), at(0, layers), j_face),
        ]
    }
}

impl Bare {
    /// Copies the blocks of a face from one rank's field to another's, each given by the rank and
    /// the offset of the first block.
    pub fn copy_face(&self, to: (usize, usize), from: (usize, usize), face: Face) {
        for block in 0..face.count {
            let skip = block * face.stride;
            let (to, from) = (self.block(to.0, to.1 + skip, face.len), self.block(from.0, from.1 + skip, face.len));
            // SAFETY: `len` bytes each, which don't overlap in this shape; the flags determine
            // their owner.
            unsafe { copy(to, from, face.len, How::Memcpy) };
        }
    }

    /// Fills a face of the rank's own field.
    pub fn fill_face(&self, me: usize, offset: usize, face: Face, value: u8) {
        for block in 0..face.count {
            let start = self.block(me, offset + block * face.stride, face.len);
            // SAFETY: `len` bytes; by the flags, they are this rank's.
            unsafe { start.write_bytes(value, face.len) };
        }
    }

    /// Sums the words of a face of the rank's own field.
    pub fn sum_face(&self, me: usize, offset: usize, face: Face) -> u64 {
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
