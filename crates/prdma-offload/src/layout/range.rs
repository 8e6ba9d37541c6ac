//! Contiguous bytes.

use super::Layout;

impl Layout {
    /// `len` bytes from `start` on, both of memory that exists.
    pub(crate) fn range(start: u64, len: u64) -> Layout {
        Layout::strided(start, len, &[]).unwrap_or(Layout::nothing())
    }

    /// The first `len` bytes.
    pub(crate) fn first(len: u64) -> Layout {
        Layout::range(0, len)
    }
}
