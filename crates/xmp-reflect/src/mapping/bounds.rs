//! Bounds of templates and arrays.

use core::{ops::Range, slice};

/// The bounds of a template or an array, a half-open range for each dimension: an array or a slice
/// of ranges, or a single range for one dimension.
pub trait Bounds {
    /// Returns the ranges.
    fn ranges(&self) -> &[Range<i64>];
}

impl Bounds for [Range<i64>] {
    fn ranges(&self) -> &[Range<i64>] {
        self
    }
}

impl<const N: usize> Bounds for [Range<i64>; N] {
    fn ranges(&self) -> &[Range<i64>] {
        self
    }
}

impl Bounds for Vec<Range<i64>> {
    fn ranges(&self) -> &[Range<i64>] {
        self
    }
}

impl Bounds for Range<i64> {
    fn ranges(&self) -> &[Range<i64>] {
        slice::from_ref(self)
    }
}
