//! The distribution of the indices of one dimension over the nodes along it.
//!
//! Bounds, those of a template included, have at most `isize::MAX` indices, and there are at most as
//! many nodes. So lengths and numbers of chunks, which are counted from the template's lower bound,
//! and numbers of nodes are below 2^63, and products of two of them fit into `i128`.

use super::dimension::count;
use core::ops::Range;

/// The assignment of indices to coordinates. The indices and bounds are stored by the owner of this
/// value; every queried index is within them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Spread {
    /// Every node has all indices.
    Whole,
    /// Chunks of equal length, assigned to the nodes in turn: blocks, and chunks of a cyclic
    /// distribution.
    Dealt {
        /// The first index of chunk 0, at or below the lower bound.
        first: i64,
        /// The number of indices in a chunk; at least 1, and at most the template's.
        chunk: i64,
        /// If no node has more than one chunk: the number of a chunk such that each node has one
        /// of this and the next ones, as many as there are nodes. They cover all indices; some may
        /// lie beyond the bounds, and are empty.
        once: Option<i64>,
    },
    /// Blocks between cuts in ascending order, of which there is one more than there are nodes: the
    /// first is the lower bound, the last the upper bound.
    Listed(Box<[i64]>),
}

impl Spread {
    /// Returns the spread of chunks over indices within `bounds`, not empty, the first chunk at
    /// their start.
    pub(super) fn dealt(bounds: &Range<i64>, chunk: usize, nodes: usize) -> Spread {
        let extent = count(bounds) as i64;
        // One chunk has all indices, no matter how long; or one node has all chunks.
        let chunk = if nodes == 1 { extent } else { i64::try_from(chunk).unwrap_or(extent).min(extent) };
        let once = i128::from(chunk).saturating_mul(nodes as i128) >= i128::from(extent);
        Spread::Dealt { first: bounds.start, chunk, once: once.then_some(0) }
    }

    /// Returns the spread of indices within `bounds`, not empty, if index `i` belongs to the node
    /// to which `i + offset` belongs here; `None` if that can't be expressed.
    pub(super) fn shifted(&self, bounds: &Range<i64>, offset: i64, nodes: usize) -> Option<Spread> {
        Some(match self {
            Spread::Whole => Spread::Whole,
            Spread::Dealt { first, chunk, once } => {
                let first = first.checked_sub(offset)?;
                let (lowest, highest) = chunks_of(bounds, first, *chunk);
                let once = once.or((highest.saturating_sub(lowest) < nodes as i64).then_some(lowest));
                Spread::Dealt { first, chunk: *chunk, once }
            }
            Spread::Listed(cuts) => {
                let cut = |cut: &i64| cut.saturating_sub(offset).clamp(bounds.start, bounds.end);
                Spread::Listed(cuts.iter().map(cut).collect())
            }
        })
    }

    /// Returns the coordinate of the node that owns an index; 0 if all nodes do.
    pub(super) fn owner(&self, index: i64, nodes: usize) -> usize {
        match self {
            Spread::Whole => 0,
            // There is a node.
            Spread::Dealt { first, chunk, .. } => {
                chunk_of(index, *first, *chunk).checked_rem(nodes as i64).unwrap_or(0) as usize
            }
            // The first cut is the lower bound.
            Spread::Listed(cuts) => cuts.partition_point(|cut| *cut <= index).saturating_sub(1),
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
                // Chunks beyond the bounds have numbers that may be beyond those of `i64`.
                let once = i128::from((*once)?);
                Some(chunk_at(numbered(once, at, nodes), *first, *chunk, bounds))
            }
            Spread::Listed(cuts) => Some(cuts[at]..cuts[at.saturating_add(1)]),
        }
    }

    /// Returns the pieces of indices within `bounds` that a node has, ascending, none empty, none
    /// next to another.
    pub(super) fn runs(&self, at: usize, nodes: usize, bounds: &Range<i64>) -> Vec<Range<i64>> {
        if let Some(block) = self.block(at, nodes, bounds) {
            return if block.is_empty() { Vec::new() } else { vec![block] };
        }
        let Spread::Dealt { first, chunk, .. } = self else { return Vec::new() };
        let (lowest, highest) = chunks_of(bounds, *first, *chunk);
        let mine = numbered(lowest.into(), at, nodes);
        (mine..=highest.into()).step_by(nodes).map(|number| chunk_at(number, *first, *chunk, bounds)).collect()
    }

    /// Returns how many of a node's indices, counted from chunk 0, are below `index`: indices
    /// before the bounds are included.
    #[expect(clippy::arithmetic_side_effects, reason = "products of two numbers below 2^63; the divisors are not 0")]
    pub(super) fn count_below(&self, index: i64, at: usize, nodes: usize) -> i64 {
        let Spread::Dealt { first, chunk, .. } = self else { return 0 };
        let (below, chunk, round) = (i128::from(index) - i128::from(*first), i128::from(*chunk), nodes as i128);
        let rest = (below % (chunk * round) - at as i128 * chunk).clamp(0, chunk);
        (below / (chunk * round) * chunk + rest) as i64
    }

    /// Returns the index of a node before which it has `count` others, counted from chunk 0. The
    /// node must have so many.
    #[expect(clippy::arithmetic_side_effects, reason = "products of two numbers below 2^63; the divisors are not 0")]
    pub(super) fn index_after(&self, count: i64, at: usize, nodes: usize) -> i64 {
        let Spread::Dealt { first, chunk, .. } = self else { return count };
        let number = i128::from(count / chunk) * nodes as i128 + at as i128;
        (i128::from(*first) + number * i128::from(*chunk) + i128::from(count % chunk)) as i64
    }
}

/// Returns the lowest number from `lowest` on of a chunk that is dealt to a node.
#[expect(clippy::arithmetic_side_effects, reason = "sums of numbers below 2^63; there is a node")]
fn numbered(lowest: i128, at: usize, nodes: usize) -> i128 {
    lowest + (at as i128 - lowest).rem_euclid(nodes as i128)
}

/// Returns the number of the chunk that has an index at or above `first`.
#[expect(clippy::arithmetic_side_effects, reason = "a difference of two `i64`; a chunk has an index")]
fn chunk_of(index: i64, first: i64, chunk: i64) -> i64 {
    ((i128::from(index) - i128::from(first)) / i128::from(chunk)) as i64
}

/// Returns the numbers of the chunks that have the first and the last index of bounds, which are not
/// empty.
fn chunks_of(bounds: &Range<i64>, first: i64, chunk: i64) -> (i64, i64) {
    (chunk_of(bounds.start, first, chunk), chunk_of(bounds.end.saturating_sub(1), first, chunk))
}

/// Returns the indices of a chunk that are within `bounds`.
#[expect(clippy::arithmetic_side_effects, reason = "below the sum of two products of two numbers below 2^63")]
fn chunk_at(number: i128, first: i64, chunk: i64, bounds: &Range<i64>) -> Range<i64> {
    let cut = |number: i128| {
        let cut = i128::from(first) + number * i128::from(chunk);
        cut.clamp(bounds.start.into(), bounds.end.into()) as i64
    };
    cut(number)..cut(number + 1)
}
