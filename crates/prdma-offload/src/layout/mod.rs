//! The locations of the bytes of a block: a datatype with its count and displacement in MPI (MPI
//! 4.1, chapter 5).
//!
//! A [`Layout`] is an arithmetic description that fits in a few words, regardless of the number of
//! bytes: contiguous memory, a vector (`MPI_Type_vector`), a subarray (`MPI_Type_create_subarray`)
//! of up to eight dimensions. There are no indexed types.
//!
//! Two layouts are equal if and only if they describe the same bytes in the same order: every
//! constructor yields the normal form, in which runs are as long as possible, then inner dimensions
//! are as long as possible, and no dimension has a count of one.
//!
//! [`pieces()`] computes how to move the bytes of one layout to those of another with few commands
//! of a network interface.

mod build;
mod overlap;
mod pieces;
mod runs;

pub use pieces::{Piece, count_blocks, pieces};
pub use runs::Runs;

use core::ops::Range;

/// The largest number of distances of a layout.
pub const MOST_DIMS: usize = 7;

/// Bytes of a buffer in the order in which they are sent: runs of equal length at nested, equal
/// distances.
///
/// The order is that of nested loops, the last dimension innermost. Contiguous memory has no
/// dimension, a column of a matrix has one, and a face of a four-dimensional array up to three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// The start of the first run, in bytes from the buffer's start; 0 if there are no bytes.
    pub(crate) offset: u64,
    /// Bytes of a run; 0 if there are no bytes. The innermost distance, if any, differs from it.
    pub(crate) run: u64,
    /// The count of each dimension, and its distance from start to start in bytes; outermost first.
    /// Entries after `used` are `(1, 0)`. All other counts are 2 or more, and no distance equals
    /// that of the next inner dimension times its count.
    pub(crate) dims: [(u64, u64); MOST_DIMS],
    pub(crate) used: u8,
}

impl Layout {
    /// Returns the layout of no bytes.
    pub const fn nothing() -> Layout {
        Layout { offset: 0, run: 0, dims: [(1, 0); MOST_DIMS], used: 0 }
    }

    /// Returns the number of bytes sent; bytes that are sent repeatedly count each time.
    pub fn bytes(&self) -> u64 {
        self.run * self.count()
    }

    /// Returns the number of runs; 0 if there are no bytes.
    pub fn count(&self) -> u64 {
        if self.run == 0 { 0 } else { self.dims().iter().map(|(count, _)| count).product() }
    }

    /// Returns the end of the last byte, in bytes from the buffer's start; 0 if there are no bytes.
    pub fn end(&self) -> u64 {
        self.offset + self.dims().iter().map(|(count, stride)| (count - 1) * stride).sum::<u64>() + self.run
    }

    /// Returns whether all bytes are in one run, or there are none.
    pub fn is_contiguous(&self) -> bool {
        self.used == 0
    }

    /// Returns whether all bytes are in a buffer of `len` bytes.
    pub fn inside(&self, len: u64) -> bool {
        self.end() <= len
    }

    /// Returns the runs in order, each with its offset and length in bytes.
    pub fn runs(&self) -> Runs {
        Runs::new(*self)
    }

    /// Returns the runs with these numbers, counted from 0, in order; those that exist.
    pub(crate) fn runs_in(&self, numbers: Range<u64>) -> Runs {
        Runs::range(*self, numbers)
    }

    /// Returns the distances in use, outermost first.
    pub(crate) fn dims(&self) -> &[(u64, u64)] {
        &self.dims[..usize::from(self.used)]
    }
}

impl Layout {
    /// Returns the layout of `len` bytes starting at `start`, which must be valid for existing
    /// memory.
    pub(crate) fn range(start: u64, len: u64) -> Layout {
        Layout::strided(start, len, &[]).unwrap_or(Layout::nothing())
    }

    /// Returns the layout of the first `len` bytes.
    pub(crate) fn first(len: u64) -> Layout {
        Layout::range(0, len)
    }
}

impl Layout {
    /// Returns the number of units that a cut divides: counts of the outermost distance or, if the
    /// bytes are contiguous, elements of this many bytes.
    pub(crate) fn divisible(&self, element: u64) -> u64 {
        self.dims().first().map_or(self.run / element.max(1), |(count, _)| *count)
    }

    /// Cuts the layout into this many partitions, in order and of equal size; `None` if it can't be
    /// divided evenly.
    pub(crate) fn cut(&self, partitions: u64, element: u64) -> Option<Vec<Layout>> {
        let many = self.divisible(element);
        if partitions == 0 || !many.is_multiple_of(partitions) {
            return None;
        }
        let each = many / partitions;
        let partition = |at: u64| match self.dims().split_first() {
            None => Layout::strided(self.offset + at * each * element, each * element, &[]),
            Some(((_, stride), inner)) => {
                let dims: Vec<_> = [(each, *stride)].into_iter().chain(inner.iter().copied()).collect();
                Layout::strided(self.offset + at * each * stride, self.run, &dims)
            }
        };
        (0..partitions).map(|at| partition(at).ok()).collect()
    }
}

impl Layout {
    /// Appends the layout's bytes of the buffer `from` to `out`, in order (`MPI_Pack`).
    ///
    /// # Errors
    /// [`LayoutError::OutsideBuffer`], with `out` unchanged.
    pub fn pack(&self, from: &[u8], out: &mut Vec<u8>) -> Result<(), LayoutError> {
        self.check_inside(from.len())?;
        out.reserve(self.bytes() as usize);
        for (offset, len) in self.runs() {
            out.extend_from_slice(&from[offset as usize..][..len as usize]);
        }
        Ok(())
    }

    /// Copies `packed`, which consists of exactly the layout's bytes, to their positions in the
    /// buffer `at` (`MPI_Unpack`).
    ///
    /// # Errors
    /// [`LayoutError::OutsideBuffer`], [`LayoutError::Lengths`], with `at` unchanged.
    pub fn unpack(&self, packed: &[u8], at: &mut [u8]) -> Result<(), LayoutError> {
        self.check_inside(at.len())?;
        if packed.len() as u64 != self.bytes() {
            return Err(LayoutError::Lengths { from: packed.len() as u64, at: self.bytes() });
        }
        let mut rest = packed;
        for (offset, len) in self.runs() {
            let (run, after) = rest.split_at(len as usize);
            at[offset as usize..][..run.len()].copy_from_slice(run);
            rest = after;
        }
        Ok(())
    }

    fn check_inside(&self, len: usize) -> Result<(), LayoutError> {
        let len = len as u64;
        if self.inside(len) { Ok(()) } else { Err(LayoutError::OutsideBuffer { end: self.end(), len }) }
    }
}

impl Layout {
    /// The number of words of a layout.
    pub const WORDS: usize = 2 + 2 * MOST_DIMS;

    /// Returns the layout as plain words, for exchange through registered memory.
    pub fn to_words(&self) -> [u64; Layout::WORDS] {
        let mut words = [0; Layout::WORDS];
        (words[0], words[1]) = (self.offset, self.run);
        for (pair, (count, stride)) in words[2..].chunks_exact_mut(2).zip(self.dims) {
            (pair[0], pair[1]) = (count, stride);
        }
        words
    }

    /// Restores the layout from [`Layout::to_words`]; `None` for words that it never yields. The
    /// returned layout never overflows.
    pub fn from_words(words: [u64; Layout::WORDS]) -> Option<Layout> {
        let mut dims = [(1, 0); MOST_DIMS];
        for (dim, pair) in dims.iter_mut().zip(words[2..].chunks_exact(2)) {
            *dim = (pair[0], pair[1]);
        }
        let layout = Layout::strided(words[0], words[1], &dims).ok()?;
        (layout.to_words() == words).then_some(layout)
    }
}

/// A layout that is invalid, or does not match its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// An offset, or the number of bytes, is 2^64 or more.
    #[error("the layout has bytes beyond 2^64")]
    Overflow,
    /// The layout needs more distances than a layout can have.
    #[error("the layout needs more than {MOST_DIMS} distances")]
    TooManyDims,
    /// Sizes, subsizes and starts of a subarray differ in number.
    #[error("a subarray of {sizes} sizes, {subsizes} subsizes and {starts} starts")]
    Dimensions {
        /// The number of sizes.
        sizes: usize,
        /// The number of subsizes.
        subsizes: usize,
        /// The number of starts.
        starts: usize,
    },
    /// The subarray is not inside the array.
    #[error(
        "elements {start}..{end} of dimension {dim} are outside its {size}",
        end = .start.saturating_add(*.subsize)
    )]
    OutsideArray {
        /// The dimension.
        dim: usize,
        /// The subarray's first element in this dimension.
        start: usize,
        /// The subarray's number of elements in this dimension.
        subsize: usize,
        /// The array's number of elements in this dimension.
        size: usize,
    },
    /// The layout contains a byte twice, so it cannot be received into.
    #[error("runs of {run} bytes overlap each other: the layout can be sent, but not received")]
    OverlapsItself {
        /// Bytes of a run.
        run: u64,
    },
    /// The layout's bytes are not all in the buffer.
    #[error("the layout ends at byte {end} of a buffer of {len}")]
    OutsideBuffer {
        /// The end of the layout.
        end: u64,
        /// Bytes of the buffer.
        len: u64,
    },
    /// Two layouts, or a layout and packed bytes, differ in length.
    #[error("{from} bytes cannot be moved to the place of {at}")]
    Lengths {
        /// The number of bytes given.
        from: u64,
        /// The number of bytes that fit.
        at: u64,
    },
    /// The given maximum length of a block is 0.
    #[error("bytes are to be moved by blocks of at most 0")]
    NoLength,
}
