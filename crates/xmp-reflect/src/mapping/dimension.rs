//! One dimension of a mapped array. A node's part of it depends on one coordinate of the node only,
//! so all queries of an array are answered for each dimension separately.

use super::{Shadow, spread::Spread};
use core::ops::Range;

/// One dimension of an array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Dimension {
    /// In order, and with no more indices than `isize` counts.
    pub(super) bounds: Range<i64>,
    /// The dimension of the node set over which it is distributed.
    pub(super) along: Option<usize>,
    /// Nodes along that dimension; 1 if it is not distributed.
    pub(super) nodes: usize,
    /// The distribution of the indices within the bounds; `Whole` if there are none.
    pub(super) spread: Spread,
    /// Has layers only if each node has its indices in one piece.
    pub(super) shadow: Shadow,
}

/// Returns the number of indices of a range that is in order.
pub(crate) fn count(range: &Range<i64>) -> usize {
    range.end.abs_diff(range.start) as usize
}

impl Dimension {
    pub(crate) fn bounds(&self) -> &Range<i64> {
        &self.bounds
    }

    pub(crate) fn along(&self) -> Option<usize> {
        self.along
    }

    /// Returns the number of nodes along the dimension; 1 if it is not distributed.
    pub(crate) fn nodes(&self) -> usize {
        self.nodes
    }

    /// Returns the number of indices.
    pub(crate) fn len(&self) -> usize {
        count(&self.bounds)
    }

    pub(crate) fn is_contiguous(&self) -> bool {
        self.spread.is_contiguous()
    }

    /// Returns the coordinate that owns an index within the bounds.
    pub(crate) fn owner(&self, index: i64) -> usize {
        self.spread.owner(index, self.nodes)
    }

    /// Returns whether the node at a coordinate owns an index.
    pub(super) fn owns(&self, at: usize, index: i64) -> bool {
        self.bounds.contains(&index) && self.owner(index) == at
    }

    /// Returns the indices that the node at a coordinate owns, if each node's are in one piece.
    pub(crate) fn block(&self, at: usize) -> Option<Range<i64>> {
        self.spread.block(at, self.nodes, &self.bounds)
    }

    /// Returns the maximal runs of indices that the node at a coordinate owns, ascending.
    pub(crate) fn runs(&self, at: usize) -> Vec<Range<i64>> {
        self.spread.runs(at, self.nodes, &self.bounds)
    }

    /// Returns the lowest index that the node at a coordinate owns.
    pub(crate) fn lowest(&self, at: usize) -> Option<i64> {
        match self.block(at) {
            Some(block) => Some(block.start).filter(|_| !block.is_empty()),
            None => {
                let before = self.spread.count_below(self.bounds.start, at, self.nodes);
                Some(self.spread.index_after(before, at, self.nodes)).filter(|index| *index < self.bounds.end)
            }
        }
    }

    /// Returns the number of indices that the node at a coordinate owns.
    pub(crate) fn owned(&self, at: usize) -> usize {
        match self.block(at) {
            Some(block) => count(&block),
            None => {
                let below = |index| self.spread.count_below(index, at, self.nodes);
                count(&(below(self.bounds.start)..below(self.bounds.end)))
            }
        }
    }

    /// Returns the number of layers that are allocated below the owned cells.
    pub(crate) fn layers_below(&self) -> usize {
        match self.shadow {
            Shadow::Width { lo, .. } => lo,
            Shadow::Full => 0,
        }
    }

    /// Returns the number of cells that the node at a coordinate allocates, which was found to fit
    /// when the mapping was made.
    pub(crate) fn allocated(&self, at: usize) -> usize {
        match self.shadow {
            Shadow::Width { lo, hi } => lo.saturating_add(self.owned(at)).saturating_add(hi),
            Shadow::Full => self.len(),
        }
    }

    /// Returns the largest number of cells that a node allocates; `None` if it can't be counted.
    pub(super) fn most_allocated(&self) -> Option<usize> {
        match self.shadow {
            Shadow::Width { lo, hi } => {
                let owned = (0..self.nodes).map(|at| self.owned(at)).max().unwrap_or(0);
                lo.checked_add(owned)?.checked_add(hi)
            }
            Shadow::Full => Some(self.len()),
        }
    }

    /// Returns the local intervals, start and length, that the node at a coordinate owns:
    /// ascending, none empty, none next to another.
    pub(crate) fn owned_cells(&self, at: usize) -> Vec<(usize, usize)> {
        match self.shadow {
            Shadow::Width { lo, .. } => {
                let owned = self.owned(at);
                if owned == 0 { Vec::new() } else { vec![(lo, owned)] }
            }
            Shadow::Full => {
                let cells = |run: Range<i64>| (count(&(self.bounds.start..run.start)), count(&run));
                self.runs(at).into_iter().map(cells).collect()
            }
        }
    }

    /// Returns the local index of an index at a coordinate; `None` if it is not allocated there.
    /// Indices beyond the bounds are those of the shadows there.
    pub(crate) fn local(&self, at: usize, index: i64) -> Option<usize> {
        match (self.shadow, self.block(at)) {
            (Shadow::Full, _) => self.bounds.contains(&index).then(|| count(&(self.bounds.start..index))),
            (Shadow::Width { lo, .. }, Some(block)) => {
                let local = i128::from(index).saturating_sub(block.start.into()).saturating_add(lo as i128);
                usize::try_from(local).ok().filter(|local| *local < self.allocated(at))
            }
            (Shadow::Width { .. }, None) => {
                let below = |index| self.spread.count_below(index, at, self.nodes);
                self.owns(at, index).then(|| count(&(below(self.bounds.start)..below(index))))
            }
        }
    }

    /// Returns the index of a local index at a coordinate; `None` if it isn't allocated. In shadows
    /// beyond the bounds, indices are continued.
    pub(crate) fn index(&self, at: usize, local: usize) -> Option<i64> {
        if local >= self.allocated(at) {
            return None;
        }
        match (self.shadow, self.block(at)) {
            (Shadow::Full, _) => self.bounds.start.checked_add_unsigned(local as u64),
            (Shadow::Width { lo, .. }, Some(block)) => {
                i64::try_from(i128::from(block.start).saturating_add(local as i128).saturating_sub(lo as i128)).ok()
            }
            (Shadow::Width { .. }, None) => {
                let before = self.spread.count_below(self.bounds.start, at, self.nodes);
                Some(self.spread.index_after(before.checked_add_unsigned(local as u64)?, at, self.nodes))
            }
        }
    }
}
