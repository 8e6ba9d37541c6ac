//! Checks whether layouts share bytes.
//!
//! A run of one layout and one of another share a byte if their starts differ by less than a run.
//! The difference of two starts is a sum of distances, each multiplied by a factor that the counts
//! allow; so the question is whether such a sum falls within a window. Equal distances of both
//! sides form one term. Terms are tried from the longest distance on, and only with factors for
//! which the remaining terms can still reach the window: about two factors each, where every
//! distance is longer than everything inside it, as in arrays. Arrays of different shapes in the
//! same memory can take as many trials as the product of the smaller counts.

use super::{Layout, LayoutError};

/// A term of `step`, taken at least `least` and at most `most` times.
#[derive(Clone, Copy, Debug)]
struct Term {
    step: i128,
    least: i128,
    most: i128,
}

impl Layout {
    /// Returns whether a byte belongs to both layouts. Exact: interleaved columns of a matrix do
    /// not overlap.
    pub fn overlaps(&self, other: &Layout) -> bool {
        if self.run == 0 || other.run == 0 || self.end() <= other.offset || other.end() <= self.offset {
            return false;
        }
        let mut terms = Terms::default();
        for (count, stride) in self.dims() {
            terms.add(*stride, 0, *count as i128 - 1);
        }
        for (count, stride) in other.dims() {
            terms.add(*stride, 1 - *count as i128, 0);
        }
        let apart = i128::from(self.offset) - i128::from(other.offset);
        reaches(apart, terms.sorted(), (1 - i128::from(self.run), i128::from(other.run) - 1))
    }

    /// Returns the layout as one to receive into, which contains each byte only once.
    ///
    /// # Errors
    /// [`LayoutError::OverlapsItself`].
    pub fn for_receiving(self) -> Result<Layout, LayoutError> {
        let window = (1 - i128::from(self.run), i128::from(self.run) - 1);
        let dims = self.dims();
        // Two runs differ first in some dimension; by symmetry, it does not matter which of them is
        // ahead.
        let overlaps = dims.iter().enumerate().any(|(dim, (count, stride))| {
            let mut terms = Terms::default();
            for (count, stride) in &dims[dim + 1..] {
                terms.add(*stride, 1 - *count as i128, *count as i128 - 1);
            }
            terms.add(*stride, 0, *count as i128 - 2);
            *stride == 0 || reaches(i128::from(*stride), terms.sorted(), window)
        });
        if overlaps { Err(LayoutError::OverlapsItself { run: self.run }) } else { Ok(self) }
    }
}

/// Terms of different steps, none of them 0.
#[derive(Default)]
struct Terms(Vec<Term>);

impl Terms {
    fn add(&mut self, stride: u64, least: i128, most: i128) {
        let step = i128::from(stride);
        match self.0.iter_mut().find(|term| term.step == step) {
            _ if step == 0 => {}
            Some(term) => (term.least, term.most) = (term.least + least, term.most + most),
            None => self.0.push(Term { step, least, most }),
        }
    }

    /// Sorts the terms, those with the longest steps first.
    fn sorted(&mut self) -> &[Term] {
        self.0.sort_unstable_by_key(|term| core::cmp::Reverse(term.step));
        &self.0
    }
}

/// Returns whether `start` plus a multiple of each term can be in `low..=high`. Nothing here
/// overflows: every layout ends below 2^64.
fn reaches(start: i128, terms: &[Term], (low, high): (i128, i128)) -> bool {
    let Some((term, rest)) = terms.split_first() else {
        return (low..=high).contains(&start);
    };
    // All sums are congruent modulo the common divisor of all steps.
    let divisor = terms.iter().fold(0, |divisor, term| gcd(divisor, term.step));
    if low + (start - low).rem_euclid(divisor) > high {
        return false;
    }
    let (least, most) =
        rest.iter().fold((0, 0), |(least, most), term| (least + term.least * term.step, most + term.most * term.step));
    let first = term.least.max(ceiling(low - start - most, term.step));
    let last = term.most.min((high - start - least).div_euclid(term.step));
    if rest.is_empty() {
        return first <= last;
    }
    (first..=last).any(|times| reaches(start + times * term.step, rest, (low, high)))
}

fn ceiling(value: i128, step: i128) -> i128 {
    -(-value).div_euclid(step)
}

/// Returns the greatest common divisor of two numbers that are not negative.
pub(super) fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}
