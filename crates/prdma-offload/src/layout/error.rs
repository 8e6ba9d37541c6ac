//! Why there is no such layout, or no such transfer.

use super::MOST_DIMS;

/// A layout that is impossible, or does not fit what it is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// An offset, or the number of bytes, is 2^64 or more.
    #[error("the layout has bytes beyond 2^64")]
    Overflow,
    /// It needs more distances than a layout has.
    #[error("the layout needs more than {MOST_DIMS} distances")]
    TooManyDims,
    /// Sizes, subsizes and starts of a subarray differ in number.
    #[error("a subarray of {sizes} sizes, {subsizes} subsizes and {starts} starts")]
    Dimensions {
        /// How many sizes.
        sizes: usize,
        /// How many subsizes.
        subsizes: usize,
        /// How many starts.
        starts: usize,
    },
    /// The subarray is not inside the array.
    #[error(
        "elements {start}..{end} of dimension {dim} are outside its {size}",
        end = .start.saturating_add(*.subsize)
    )]
    OutsideArray {
        /// Which dimension.
        dim: usize,
        /// The subarray's first element there.
        start: usize,
        /// The subarray's elements there.
        subsize: usize,
        /// The array's elements there.
        size: usize,
    },
    /// A byte is named twice, and can't be received twice.
    #[error("runs of {run} bytes overlap each other: the layout can be sent, but not received")]
    OverlapsItself {
        /// Bytes of a run.
        run: u64,
    },
    /// The layout's bytes are not all in the buffer.
    #[error("the layout ends at byte {end} of a buffer of {len}")]
    OutsideBuffer {
        /// Where the layout ends.
        end: u64,
        /// Bytes of the buffer.
        len: u64,
    },
    /// Two layouts, or a layout and packed bytes, are not of one length.
    #[error("{from} bytes cannot be moved to the place of {at}")]
    Lengths {
        /// Bytes there are.
        from: u64,
        /// Bytes there is room for.
        at: u64,
    },
    /// Blocks of no bytes move nothing.
    #[error("bytes are to be moved by blocks of at most 0")]
    NoLength,
}
