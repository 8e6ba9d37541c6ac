//! The contiguous runs of a layout, one after another.

use super::{Layout, MOST_DIMS};
use core::{iter::FusedIterator, ops::Range};

/// The runs of a [`Layout`] in order: offset and length of each, in bytes.
#[derive(Clone, Debug)]
pub struct Runs {
    layout: Layout,
    /// The start of the next run.
    at: u64,
    /// The index of the next run in each dimension.
    index: [u64; MOST_DIMS],
    left: u64,
}

impl Runs {
    pub(super) fn new(layout: Layout) -> Runs {
        Runs { at: layout.offset, index: [0; MOST_DIMS], left: layout.count(), layout }
    }

    /// Returns the runs with these numbers, counted from 0; those that exist.
    pub(super) fn range(layout: Layout, numbers: Range<u64>) -> Runs {
        let end = numbers.end.min(layout.count());
        let mut runs = Runs { left: end.saturating_sub(numbers.start), ..Runs::new(layout) };
        if runs.left == 0 {
            return runs;
        }
        let mut rest = numbers.start;
        for ((count, stride), index) in layout.dims().iter().zip(&mut runs.index).rev() {
            *index = rest % count;
            runs.at += *index * stride;
            rest /= count;
        }
        runs
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_range_of_runs_is_a_part_of_all() {
        let dims: [&[(u64, u64)]; 4] = [&[], &[(5, 32)], &[(3, 100), (4, 16)], &[(2, 900), (3, 100), (4, 16)]];
        for dims in dims {
            let layout = Layout::strided(24, 8, dims).expect("a layout");
            let all: Vec<_> = layout.runs().collect();
            let many = all.len() as u64;
            for start in 0..=many + 1 {
                for end in start..=many + 2 {
                    let part: Vec<_> = layout.runs_in(start..end).collect();
                    let wanted = &all[start.min(many) as usize..end.min(many) as usize];
                    assert_eq!(part, wanted, "{start}..{end} of {layout:?}");
                }
            }
        }
        assert_eq!(Layout::nothing().runs_in(0..1).count(), 0);
    }
}
