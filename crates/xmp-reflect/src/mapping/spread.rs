//! The distribution of the indices of one dimension over the nodes along it.

use core::ops::Range;

/// The assignment of indices to coordinates. The owner keeps the indices and bounds; every queried
/// index is within them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Spread {
    /// Every node has all indices.
    Whole,
    /// Chunks of equal length, dealt to the nodes in turn: blocks, and chunks of a cyclic
    /// distribution.
    Dealt {
        /// The first index of chunk 0, at or below the lower bound.
        first: i64,
        /// Indices of a chunk; at least 1, and at most the template's.
        chunk: i64,
        /// If no node has more than one chunk: the number of a chunk such that each node has one
        /// of this and the next ones, as many as there are nodes. They cover all indices; some may
        /// lie beyond the bounds, and are empty.
        once: Option<i64>,
    },
    /// Blocks between cuts in ascending order, one more than there are nodes: the first is the
    /// lower bound, the last the upper bound.
    Listed(Box<[i64]>),
}

impl Spread {
    /// Returns the spread of chunks over indices within `bounds`, not empty, the first chunk at
    /// their start.
    pub(super) fn dealt(bounds: &Range<i64>, chunk: usize, nodes: usize) -> Spread {
        let extent = bounds.end - bounds.start;
        // All indices in one chunk, of any length; and one node has all chunks.
        let chunk = if nodes == 1 { extent } else { i64::try_from(chunk).unwrap_or(extent).min(extent) };
        let once = i128::from(chunk) * nodes as i128 >= i128::from(extent);
        Spread::Dealt { first: bounds.start, chunk, once: once.then_some(0) }
    }

    /// Returns the spread of indices within `bounds`, not empty, if index `i` belongs to whom
    /// `i + offset` belongs to here; `None` if that can't be expressed.
    pub(super) fn shifted(&self, bounds: &Range<i64>, offset: i64, nodes: usize) -> Option<Spread> {
        Some(match self {
            Spread::Whole => Spread::Whole,
            Spread::Dealt { first, chunk, once } => {
                let first = first.checked_sub(offset)?;
                let (lowest, highest) =
                    (chunk_of(bounds.start, first, *chunk), chunk_of(bounds.end - 1, first, *chunk));
                let once = once.or((highest - lowest < nodes as i64).then_some(lowest));
                Spread::Dealt { first, chunk: *chunk, once }
            }
            Spread::Listed(cuts) => {
                let cut =
                    |cut: &i64| (i128::from(*cut) - i128::from(offset)).clamp(bounds.start.into(), bounds.end.into());
                Spread::Listed(cuts.iter().map(|at| cut(at) as i64).collect())
            }
        })
    }

    /// Returns the coordinate of the node that owns an index; 0 if all nodes do.
    pub(super) fn owner(&self, index: i64, nodes: usize) -> usize {
        match self {
            Spread::Whole => 0,
            Spread::Dealt { first, chunk, .. } => (chunk_of(index, *first, *chunk) % nodes as i64) as usize,
            Spread::Listed(cuts) => cuts.partition_point(|cut| *cut <= index) - 1,
        }
    }

    /// Returns whether each node has its indices in one piece.
    pub(super) fn is_contiguous(&self) -> bool {
        !matches!(self, Spread::Dealt { once: None, .. })
    }

    /// Returns the indices within `bounds` that a node has in one piece, possibly none; `None` if
    /// some node has several pieces.
    pub(super) fn block(&self, at: usize, nodes: usize, bounds: &Range<i64>) -> Option<Range<i64>> {
        match self {
            Spread::Whole => Some(bounds.clone()),
            Spread::Dealt { first, chunk, once } => {
                let once = (*once)?;
                let number = once + (at as i64 - once).rem_euclid(nodes as i64);
                Some(chunk_at(number, *first, *chunk, bounds))
            }
            Spread::Listed(cuts) => Some(cuts[at]..cuts[at + 1]),
        }
    }

    /// Returns the pieces of indices within `bounds` that a node has, ascending, none empty, none
    /// next to another.
    pub(super) fn runs(&self, at: usize, nodes: usize, bounds: &Range<i64>) -> Vec<Range<i64>> {
        if let Some(block) = self.block(at, nodes, bounds) {
            return if block.is_empty() { Vec::new() } else { vec![block] };
        }
        let Spread::Dealt { first, chunk, .. } = self else { return Vec::new() };
        let (lowest, highest) = (chunk_of(bounds.start, *first, *chunk), chunk_of(bounds.end - 1, *first, *chunk));
        let mine = lowest + (at as i64 - lowest).rem_euclid(nodes as i64);
        (mine..=highest).step_by(nodes).map(|number| chunk_at(number, *first, *chunk, bounds)).collect()
    }

    /// Returns the number of a node's indices that are below `index`, counted from chunk 0: indices
    /// before the bounds are included.
    pub(super) fn count_below(&self, index: i64, at: usize, nodes: usize) -> i64 {
        let Spread::Dealt { first, chunk, .. } = self else { return 0 };
        let (below, chunk, round) = (i128::from(index) - i128::from(*first), i128::from(*chunk), nodes as i128);
        let rest = (below % (chunk * round) - at as i128 * chunk).clamp(0, chunk);
        (below / (chunk * round) * chunk + rest) as i64
    }

    /// Returns the index of a node before which it has `count` others, counted from chunk 0.
    pub(super) fn index_after(&self, count: i64, at: usize, nodes: usize) -> i64 {
        let Spread::Dealt { first, chunk, .. } = self else { return count };
        let number = i128::from(count / chunk) * nodes as i128 + at as i128;
        (i128::from(*first) + number * i128::from(*chunk) + i128::from(count % chunk)) as i64
    }
}

/// Returns the number of the chunk that has an index at or above `first`.
fn chunk_of(index: i64, first: i64, chunk: i64) -> i64 {
    ((i128::from(index) - i128::from(first)) / i128::from(chunk)) as i64
}

/// Returns the indices of a chunk that are within `bounds`.
fn chunk_at(number: i64, first: i64, chunk: i64, bounds: &Range<i64>) -> Range<i64> {
    let cut = |number: i128| {
        let cut = i128::from(first) + number * i128::from(chunk);
        cut.clamp(bounds.start.into(), bounds.end.into()) as i64
    };
    cut(number.into())..cut(i128::from(number) + 1)
}
