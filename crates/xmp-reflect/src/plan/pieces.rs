//! One dimension of an exchange: the owners of the cells of a node's shadow.

use super::widths::{Corners, Update};
use crate::mapping::{Dimension, count};
use core::ops::Range;

/// Cells of one dimension at the node that receives them, and the same cells at their owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// The coordinate of the node that receives them.
    pub(super) taker: usize,
    /// The taker's first local index.
    pub(super) start: usize,
    /// Cells; at least 1.
    pub(super) len: usize,
    /// The coordinate of the node that owns them.
    pub(super) owner: usize,
    /// The owner's first local index.
    pub(super) from: usize,
    /// Where the taker has them: −1 below its own cells, 1 above; 0 if taker and owner are the same
    /// and no shadow of this dimension is updated.
    pub(super) side: i8,
}

/// Returns all pieces that the node at a coordinate has: its own cells and the updated ones of its
/// shadow, disjoint.
pub(super) fn pieces(dim: &Dimension, at: usize, update: &Update, corners: Corners) -> Vec<Piece> {
    let mut pieces = beside(dim, at, update, corners);
    pieces.extend(shadow(dim, at, update));
    pieces
}

/// Returns the pieces, of any node along the dimension, whose cells the node at a coordinate owns:
/// the inverse of [`pieces`]. Shadows of other dimensions are adjacent to own cells, so own cells
/// are included.
pub(super) fn pieces_given(dim: &Dimension, at: usize, update: &Update, corners: Corners) -> Vec<Piece> {
    let mut given = beside(dim, at, update, corners);
    for taker in 0..dim.nodes() {
        match update {
            Update::Nothing => {}
            Update::Layers { .. } => {
                given.extend(shadow(dim, taker, update).into_iter().filter(|piece| piece.owner == at))
            }
            Update::Full if taker == at => {}
            // Its piece of this owner is a whole run: the others need not be inspected.
            Update::Full => given.extend(dim.runs(at).into_iter().map(|run| full(dim, taker, at, run))),
        }
    }
    given
}

/// Returns the cells to which shadows of other dimensions are adjacent: the node's own or, if
/// shadows are carried along, all.
fn beside(dim: &Dimension, at: usize, update: &Update, corners: Corners) -> Vec<Piece> {
    let piece = |(start, len)| Piece { taker: at, start, len, owner: at, from: start, side: 0 };
    let cells = match (corners, update) {
        (Corners::Carried, Update::Nothing) => {
            [(0, dim.allocated(at))].into_iter().filter(|(_, len)| *len > 0).collect()
        }
        _ => dim.owned_cells(at),
    };
    cells.into_iter().map(piece).collect()
}

/// Returns the updated pieces of shadow of the node at a coordinate.
#[expect(
    clippy::arithmetic_side_effects,
    reason = "sums of indices and numbers of cells, which are below 2^64, in `i128`"
)]
fn shadow(dim: &Dimension, taker: usize, update: &Update) -> Vec<Piece> {
    match update {
        Update::Nothing => Vec::new(),
        Update::Full => {
            let others = (0..dim.nodes()).filter(|owner| *owner != taker);
            let runs = |owner| dim.runs(owner).into_iter().map(move |run| full(dim, taker, owner, run));
            others.flat_map(runs).collect()
        }
        Update::Layers { lo, hi, periodic } => {
            let block = dim.block(taker).expect("layers are of blocks");
            let (block, below) = (i128::from(block.start)..i128::from(block.end), dim.layers_below() as i128);
            let local = |index: i128| (index - block.start + below) as usize;
            let layers = [(-1, block.start - *lo as i128..block.start), (1, block.end..block.end + *hi as i128)];
            let mut pieces = Vec::new();
            for (side, layers) in layers {
                cut(dim, layers, *periodic, |index, owner, from, len| {
                    pieces.push(Piece { taker, start: local(index), len, owner, from, side });
                });
            }
            pieces
        }
    }
}

/// Returns the piece of a full shadow that is a run of another node.
fn full(dim: &Dimension, taker: usize, owner: usize, run: Range<i64>) -> Piece {
    let start = count(&(dim.bounds().start..run.start));
    let below = dim.lowest(taker).is_some_and(|lowest| run.start < lowest);
    let side = if below { -1 } else { 1 };
    Piece { taker, start, len: count(&run), owner, from: start, side }
}

/// Cuts layers of indices, possibly beyond the bounds, where their owner changes. Calls back with
/// the first index, the owner, the owner's local index and the number of cells.
#[expect(
    clippy::arithmetic_side_effects,
    reason = "sums of indices and numbers of cells, which are below 2^64, in `i128`"
)]
fn cut(dim: &Dimension, layers: Range<i128>, periodic: bool, mut piece: impl FnMut(i128, usize, usize, usize)) {
    let bounds = i128::from(dim.bounds().start)..i128::from(dim.bounds().end);
    if bounds.is_empty() {
        return;
    }
    let (mut at, end) = if periodic {
        (layers.start, layers.end)
    } else {
        (layers.start.max(bounds.start), layers.end.min(bounds.end))
    };
    while at < end {
        let index = bounds.start + (at - bounds.start).rem_euclid(bounds.end - bounds.start);
        let owner = dim.owner(index as i64);
        let block = dim.block(owner).expect("layers are of blocks");
        let len = (i128::from(block.end) - index).min(end - at);
        assert!(len > 0, "index {index} is not in its owner's block {block:?}");
        let from = (index - i128::from(block.start)) as usize + dim.layers_below();
        piece(at, owner, from, len as usize);
        at += len;
    }
}
