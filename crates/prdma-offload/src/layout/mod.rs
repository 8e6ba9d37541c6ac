//! Where the bytes of a block are.

/// The most distances of a layout.
pub const MOST_DIMS: usize = 4;

/// Bytes of a buffer in the order in which they are sent: runs of equal length at nested, equal distances.
///
/// The order is that of nested loops, the last dimension innermost. Contiguous memory has no dimension, a column of a matrix one, a face of a
/// four-dimensional array up to three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Where the first run starts, in bytes from the buffer's start.
    pub(crate) offset: u64,
    /// Bytes of a run.
    pub(crate) run: u64,
    /// How many, and from start to start in bytes; outermost first. Those after `used` are `(1, 0)`.
    pub(crate) dims: [(u64, u64); MOST_DIMS],
    pub(crate) used: u8,
}
