//! Where the bytes of a block are: what MPI calls a datatype with its count and displacement (MPI 4.1, chapter 5).
//!
//! A [`Layout`] is an arithmetic description that fits a few words, whatever it covers: contiguous memory, a vector
//! (`MPI_Type_vector`), a subarray (`MPI_Type_create_subarray`) of up to five dimensions. There are no indexed types.
//!
//! Two layouts are equal if and only if they name the same bytes in the same order: every constructor yields the normal
//! form, in which runs are as long as can be, then inner dimensions as long as can be, and nothing counts to one.
//!
//! [`pieces`] says how the bytes of one layout are moved to those of another with few commands of a network interface.

mod build;
mod error;
mod overlap;
mod pack;
mod parts;
mod pieces;
mod range;
mod runs;
mod words;

pub use error::LayoutError;
pub use pieces::{Piece, count_blocks, pieces};
pub use runs::Runs;

/// The most distances of a layout.
pub const MOST_DIMS: usize = 4;

/// Bytes of a buffer in the order in which they are sent: runs of equal length at nested, equal distances.
///
/// The order is that of nested loops, the last dimension innermost. Contiguous memory has no dimension, a column of a
/// matrix one, a face of a four-dimensional array up to three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Where the first run starts, in bytes from the buffer's start; 0 if there are no bytes.
    pub(crate) offset: u64,
    /// Bytes of a run; 0 if there are no bytes. The innermost distance, if any, is another.
    pub(crate) run: u64,
    /// How many, and from start to start in bytes; outermost first. Those after `used` are `(1, 0)`. Counts of the
    /// others are 2 or more, and no distance is that of the next inner one times its count.
    pub(crate) dims: [(u64, u64); MOST_DIMS],
    pub(crate) used: u8,
}

impl Layout {
    /// No bytes.
    pub const fn nothing() -> Layout {
        Layout { offset: 0, run: 0, dims: [(1, 0); MOST_DIMS], used: 0 }
    }

    /// How many bytes are sent, counting again those that are sent again.
    pub fn bytes(&self) -> u64 {
        self.run * self.count()
    }

    /// How many runs; 0 if there are no bytes.
    pub fn count(&self) -> u64 {
        if self.run == 0 { 0 } else { self.dims().iter().map(|(count, _)| count).product() }
    }

    /// Where the last byte ends, in bytes from the buffer's start; 0 if there are no bytes.
    pub fn end(&self) -> u64 {
        self.offset + self.dims().iter().map(|(count, stride)| (count - 1) * stride).sum::<u64>() + self.run
    }

    /// Whether all bytes are in one run, or there are none.
    pub fn is_contiguous(&self) -> bool {
        self.used == 0
    }

    /// Whether all bytes are in a buffer of `len` bytes.
    pub fn inside(&self, len: u64) -> bool {
        self.end() <= len
    }

    /// The runs in order, each with its offset and length in bytes.
    pub fn runs(&self) -> Runs {
        Runs::new(*self)
    }

    /// Those in use, outermost first.
    pub(crate) fn dims(&self) -> &[(u64, u64)] {
        &self.dims[..usize::from(self.used)]
    }
}
