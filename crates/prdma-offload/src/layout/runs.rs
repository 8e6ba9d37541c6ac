//! A layout's runs, one after the other.

use super::{Layout, MOST_DIMS};
use core::iter::FusedIterator;

/// The runs of a [`Layout`] in order: offset and length of each, in bytes.
#[derive(Clone, Debug)]
pub struct Runs {
    layout: Layout,
    /// Where the next one starts.
    at: u64,
    /// Which one of each dimension that is.
    index: [u64; MOST_DIMS],
    left: u64,
}

impl Runs {
    pub(super) fn new(layout: Layout) -> Runs {
        Runs { at: layout.offset, index: [0; MOST_DIMS], left: layout.count(), layout }
    }
}

impl Iterator for Runs {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        self.left = self.left.checked_sub(1)?;
        let at = self.at;
        for ((count, stride), index) in self.layout.dims().iter().zip(&mut self.index).rev() {
            *index += 1;
            if *index < *count {
                self.at += stride;
                break;
            }
            *index = 0;
            self.at -= (count - 1) * stride;
        }
        Some((at, self.layout.run))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.left);
        (left.unwrap_or(usize::MAX), left.ok())
    }
}

impl FusedIterator for Runs {}
