//! The value of every cell after a reflect: the reference algorithm, cell by cell.

use crate::arrays::{Array, Line};
use xmp_reflect::{Corners, Shadow, Widths, plan::ALL};

/// The value of a cell that was never written.
pub(crate) const UNTOUCHED: i64 = -1;

/// The role of a cell in one dimension at its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cell {
    /// The node's own element with this index.
    Own(i64),
    /// Shadow that receives the element with this index.
    Filled(i64),
    /// Shadow that receives nothing.
    Kept,
}

/// An array, the arguments of a reflect of it, and the values of its cells before and after.
#[derive(Debug)]
pub(crate) struct Expected {
    pub(crate) lines: Vec<Line>,
    /// Extents of the node set, and whether the array is replicated along them.
    nodes: Vec<(usize, bool)>,
    widths: Vec<Widths>,
    corners: Corners,
}

impl Expected {
    pub(crate) fn new(array: &Array, widths: &[Widths], corners: Corners) -> Expected {
        let lines = array.lines();
        let replicated = |along| lines.iter().all(|line: &Line| line.along != Some(along));
        let nodes = array.nodes.iter().enumerate().map(|(along, extent)| (*extent, replicated(along))).collect();
        Expected { lines, nodes, widths: widths.to_vec(), corners }
    }

    /// The number of cells of a node along each dimension.
    pub(crate) fn extents(&self, coordinates: &[usize]) -> Vec<usize> {
        self.lines.iter().map(|line| line.cells(at(line, coordinates))).collect()
    }

    /// The value of a cell that the node owns, different for every element and replica; `None` in
    /// the shadow.
    pub(crate) fn own(&self, coordinates: &[usize], local: &[usize]) -> Option<i64> {
        let index = self.own_index(coordinates, local)?;
        Some(self.value(coordinates, &index))
    }

    /// The index of the element in one of the node's own cells.
    pub(crate) fn own_index(&self, coordinates: &[usize], local: &[usize]) -> Option<Vec<i64>> {
        let each = self.lines.iter().zip(local);
        each.map(|(line, local)| line.own(at(line, coordinates), *local)).collect()
    }

    /// The value with which a cell of the shadow is filled; `None` for all others.
    pub(crate) fn filled(&self, coordinates: &[usize], local: &[usize]) -> Option<i64> {
        let (mut index, mut shadows) = (Vec::new(), 0);
        for ((line, local), widths) in self.lines.iter().zip(local).zip(&self.widths) {
            match cell(line, at(line, coordinates), *local, widths) {
                Cell::Own(at) => index.push(at),
                Cell::Filled(at) => {
                    index.push(at);
                    shadows += 1;
                }
                Cell::Kept => return None,
            }
        }
        let wanted = match self.corners {
            Corners::With => shadows > 0,
            Corners::Orthogonal => shadows == 1,
            Corners::Carried => unreachable!("compared with reflects of all dimensions"),
        };
        wanted.then(|| self.value(coordinates, &index))
    }

    /// The value of an element at the owner nearest to a node.
    fn value(&self, coordinates: &[usize], index: &[i64]) -> i64 {
        let mut value = 0;
        for (line, index) in self.lines.iter().zip(index) {
            value = value * (line.bounds.end - line.bounds.start) + index - line.bounds.start;
        }
        for ((extent, replicated), at) in self.nodes.iter().zip(coordinates) {
            if *replicated {
                value = value * *extent as i64 + *at as i64;
            }
        }
        value
    }
}

/// The coordinate of a node along a dimension.
pub(crate) fn at(line: &Line, coordinates: &[usize]) -> usize {
    line.along.map_or(0, |along| coordinates[along])
}

fn cell(line: &Line, at: usize, local: usize, widths: &Widths) -> Cell {
    if let Some(index) = line.own(at, local) {
        return Cell::Own(index);
    }
    match line.shadow {
        Shadow::Full if widths.lo == ALL => Cell::Filled(line.bounds.start + local as i64),
        Shadow::Full => Cell::Kept,
        Shadow::Width { lo, hi } => {
            let (from_first, owned) = (local as i64 - lo as i64, line.owned[at].len() as i64);
            let (below, above) = (widths.lo.min(lo) as i64, widths.hi.min(hi) as i64);
            if from_first < -below || from_first >= owned + above {
                return Cell::Kept;
            }
            let (index, len) = (line.first[at] + from_first, line.bounds.end - line.bounds.start);
            if line.bounds.contains(&index) {
                Cell::Filled(index)
            } else if widths.periodic && len > 0 {
                Cell::Filled(line.bounds.start + (index - line.bounds.start).rem_euclid(len))
            } else {
                Cell::Kept
            }
        }
    }
}
