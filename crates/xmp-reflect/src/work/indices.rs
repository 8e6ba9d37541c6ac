//! Sets of indices that one node iterates over.

#![deny(clippy::arithmetic_side_effects)]

use crate::mapping::{MappingError, Order, Part, Template, count};
use core::ops::Range;

/// The iterations of a loop nest of `N` loops that one node executes, as indices: disjoint boxes,
/// none of them empty.
///
/// ```
/// use xmp_reflect::{Align, Format, Nodes, Order, Template};
///
/// # fn main() -> Result<(), xmp_reflect::MappingError> {
/// let nodes = Nodes::new(&[2, 2], Order::LastFastest)?;                                     // nodes p(2, 2)
/// let template = Template::new(&[0..4, 0..6], &[Format::Block, Format::Cyclic], &nodes)?;   // distribute t(block, cyclic) onto p
/// // loop (i, j) on t(i, j), do i = 1, 2, do j = 0, 5: at node p(1, 1)
/// let iterations = template.indices(3)?.within([1..3, 0..6]);
/// assert_eq!(iterations.iter().collect::<Vec<_>>(), [[2, 1], [2, 3], [2, 5]]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Indices<const N: usize> {
    boxes: Vec<[Range<i64>; N]>,
    /// The innermost loop.
    order: Order,
}

impl<const N: usize> Indices<N> {
    /// Returns the products of one range of each dimension.
    pub(super) fn products(ranges: &[Vec<Range<i64>>; N], order: Order) -> Self {
        let mut boxes = vec![[const { Range { start: 0, end: 0 } }; N]];
        for (dim, ranges) in ranges.iter().enumerate() {
            let with = |of: [Range<i64>; N]| {
                ranges.iter().filter(|range| !range.is_empty()).map(move |range| {
                    let mut of = of.clone();
                    of[dim] = range.clone();
                    of
                })
            };
            boxes = boxes.into_iter().flat_map(with).collect();
        }
        Indices { boxes, order }
    }

    /// Adds the indices of another set, which has none of these.
    pub(super) fn extend(&mut self, others: Self) {
        self.boxes.extend(others.boxes);
    }

    /// Returns those of the indices that are within these bounds of the loops.
    #[must_use]
    pub fn within(mut self, bounds: [Range<i64>; N]) -> Self {
        for of in &mut self.boxes {
            for (range, bounds) in of.iter_mut().zip(&bounds) {
                *range = range.start.max(bounds.start)..range.end.min(bounds.end);
            }
        }
        self.boxes.retain(|of| of.iter().all(|range| !range.is_empty()));
        self
    }

    /// Returns the number of indices.
    pub fn len(&self) -> usize {
        let all = |of: &[Range<i64>; N]| of.iter().map(count).fold(1, usize::saturating_mul);
        self.boxes.iter().map(all).fold(0, usize::saturating_add)
    }

    /// Returns whether there are no indices.
    pub fn is_empty(&self) -> bool {
        self.boxes.is_empty()
    }

    /// Returns the boxes: a range of each loop.
    pub fn boxes(&self) -> &[[Range<i64>; N]] {
        &self.boxes
    }

    /// Returns the indices box by box, with the dimension that is fastest in memory innermost.
    pub fn iter(&self) -> IndicesIter<'_, N> {
        IndicesIter { boxes: self.boxes.iter(), current: None, order: self.order }
    }
}

impl<'a, const N: usize> IntoIterator for &'a Indices<N> {
    type Item = [i64; N];
    type IntoIter = IndicesIter<'a, N>;

    fn into_iter(self) -> IndicesIter<'a, N> {
        self.iter()
    }
}

/// The iterator of [`Indices::iter`].
#[derive(Clone, Debug)]
pub struct IndicesIter<'a, const N: usize> {
    boxes: core::slice::Iter<'a, [Range<i64>; N]>,
    /// A box, and its next index.
    current: Option<(&'a [Range<i64>; N], [i64; N])>,
    order: Order,
}

impl<const N: usize> IndicesIter<'_, N> {
    /// Moves an index to the next one of its box; returns false after the last one.
    fn step(order: Order, of: &[Range<i64>; N], index: &mut [i64; N]) -> bool {
        for turn in 0..N {
            let dim = match order {
                Order::FirstFastest => turn,
                Order::LastFastest => N.saturating_sub(turn).saturating_sub(1),
            };
            // Below the end of the range, so there is a next number.
            index[dim] = index[dim].saturating_add(1);
            if index[dim] < of[dim].end {
                return true;
            }
            index[dim] = of[dim].start;
        }
        false
    }
}

impl<const N: usize> Iterator for IndicesIter<'_, N> {
    type Item = [i64; N];

    #[inline]
    fn next(&mut self) -> Option<[i64; N]> {
        if self.current.is_none() {
            let of = self.boxes.next()?;
            self.current = Some((of, core::array::from_fn(|dim| of[dim].start)));
        }
        let (of, index) = self.current.as_mut()?;
        let now = *index;
        if !Self::step(self.order, of, index) {
            self.current = None;
        }
        Some(now)
    }
}

impl Part<'_> {
    /// Returns the indices of the elements that the node owns: the iterations of `loop (i, j) on
    /// a(i, j)`.
    ///
    /// # Errors
    /// [`MappingError::Loops`] if the number of loops is not that of the dimensions.
    pub fn indices<const N: usize>(&self) -> Result<Indices<N>, MappingError> {
        let ranges = self.dims().map(|(dim, at)| dim.runs(at)).collect();
        Ok(Indices::products(&loops(ranges)?, self.mapping().order()))
    }
}

impl Template {
    /// Returns the indices of the template that a node owns: the iterations of `loop (i, j) on t(i,
    /// j)`, the last loop innermost. Those of a loop nest that is shifted, or has fewer loops than
    /// the template has dimensions, are those of an array that is [aligned](Template::align) in the
    /// same way.
    ///
    /// # Errors
    /// [`MappingError::NoSuchNode`]; [`MappingError::Loops`] if the number of loops is not that of
    /// the dimensions.
    pub fn indices<const N: usize>(&self, node: usize) -> Result<Indices<N>, MappingError> {
        Ok(Indices::products(&loops(self.runs(node)?)?, Order::LastFastest))
    }
}

/// Returns the ranges of as many loops as there are dimensions.
fn loops<const N: usize>(ranges: Vec<Vec<Range<i64>>>) -> Result<[Vec<Range<i64>>; N], MappingError> {
    ranges.try_into().map_err(|ranges: Vec<_>| MappingError::Loops { loops: N, dims: ranges.len() })
}
