//! The cells that can be computed while an exchange is in progress.

use super::{
    PlanError, Widths,
    widths::{Update, resolve},
};
use crate::mapping::{Mapping, Section};

/// A node's own cells, divided by whether a stencil of given widths around them reads the shadow.
/// Sections are disjoint, none is empty, and together they are all own cells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// Cells around which all cells within the widths are the node's own: they can be computed
    /// while the shadow is being updated.
    pub inner: Vec<Section>,
    /// All other own cells, including those at the array's bounds.
    pub boundary: Vec<Section>,
}

impl Split {
    /// Divides the cells of one node by these widths, one for each dimension of the array.
    ///
    /// # Errors
    /// As [`Plan::new`](super::Plan::new).
    pub fn new(mapping: &Mapping, node: usize, widths: &[Widths]) -> Result<Split, PlanError> {
        let part = mapping.part(node)?;
        let updates = resolve(mapping, widths)?;
        let owned: Vec<_> = part.dims().map(|(dim, at)| dim.owned_cells(at)).collect();
        let cuts: Vec<_> = owned.iter().zip(&updates).map(|(owned, update)| cut(owned, update)).collect();
        // Inner in all dimensions so far, boundary in the next one, either in those after it.
        let mut product: Vec<_> = cuts.iter().map(|(inner, _)| inner.clone()).collect();
        let inner = Section::products(&product);
        let mut boundary = Vec::new();
        for dim in (0..product.len()).rev() {
            product[dim].clone_from(&cuts[dim].1);
            boundary.extend(Section::products(&product));
            product[dim].clone_from(&owned[dim]);
        }
        Ok(Split { inner, boundary })
    }
}

/// Intervals of local indices: the start of each, and its cells.
type Intervals = Vec<(usize, usize)>;

/// Cuts intervals of own cells of one dimension into inner ones and others.
fn cut(owned: &Intervals, update: &Update) -> (Intervals, Intervals) {
    let (lo, hi) = match *update {
        Update::Nothing => (0, 0),
        Update::Layers { lo, hi, .. } => (lo, hi),
        // Every cell is equally far from the shadow: the stencil reads the whole dimension.
        Update::Full => return (Vec::new(), owned.clone()),
    };
    let (mut inner, mut boundary) = (Vec::new(), Vec::new());
    for (start, len) in owned {
        // One after the other: their lengths add up to `len`.
        let below = lo.min(*len);
        let above = hi.min(len.saturating_sub(below));
        let between = len.saturating_sub(below).saturating_sub(above);
        let first = start.saturating_add(below);
        let parts = [(first, between), (*start, below), (first.saturating_add(between), above)];
        for (part, interval) in parts.into_iter().enumerate().filter(|(_, (_, len))| *len > 0) {
            if part == 0 { inner.push(interval) } else { boundary.push(interval) }
        }
    }
    (inner, boundary)
}
