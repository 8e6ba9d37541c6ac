//! Boxes of cells.

use core::fmt;

/// A box of cells of one node's part of an array, in local indices: its start, and its number of
/// cells along each dimension. Fortran calls this an array section, and MPI a subarray.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Section {
    /// The lowest local index along each dimension.
    pub starts: Vec<usize>,
    /// The number of cells along each dimension; as many as there are starts.
    pub extents: Vec<usize>,
}

impl Section {
    /// Returns the products of one interval of each dimension, a start and a number of cells, in
    /// lexicographic order.
    pub(crate) fn products(intervals: &[Vec<(usize, usize)>]) -> Vec<Section> {
        let mut all = vec![Section { starts: Vec::new(), extents: Vec::new() }];
        for dim in intervals {
            let longer = |shorter: Section| {
                dim.iter().map(move |(start, extent)| {
                    let mut section = shorter.clone();
                    section.starts.push(*start);
                    section.extents.push(*extent);
                    section
                })
            };
            all = all.into_iter().flat_map(longer).collect();
        }
        all
    }

    /// Returns the number of cells, or `usize::MAX` if there are more.
    pub fn cells(&self) -> usize {
        self.extents.iter().fold(1, |cells: usize, extent| cells.saturating_mul(*extent))
    }

    /// Returns whether the section has no cells.
    pub fn is_empty(&self) -> bool {
        self.extents.contains(&0)
    }

    /// Returns whether the section has the cell at these local indices.
    pub fn contains(&self, cell: &[usize]) -> bool {
        let mut dims = cell.iter().zip(self.starts.iter().zip(&self.extents));
        cell.len() == self.starts.len()
            && dims.all(|(at, (start, extent))| at.checked_sub(*start).is_some_and(|beyond| beyond < *extent))
    }

    /// Returns the local indices of all cells, the last dimension fastest, except for cells beyond
    /// `usize::MAX`, which no memory has. [`Section::each`] does not allocate a vector for each
    /// cell.
    pub fn iter(&self) -> impl Iterator<Item = Vec<usize>> {
        let lasts = self.lasts();
        let mut next = (!self.is_empty()).then(|| self.starts.clone());
        core::iter::from_fn(move || {
            let cell = next.take()?;
            let mut after = cell.clone();
            next = self.step(&mut after, &lasts).then_some(after);
            Some(cell)
        })
    }

    /// Calls `visit` with the local indices of each cell that [`Section::iter`] returns, in the same
    /// order.
    pub fn each(&self, mut visit: impl FnMut(&[usize])) {
        if self.is_empty() {
            return;
        }
        let lasts = self.lasts();
        let mut cell = self.starts.clone();
        loop {
            visit(&cell);
            if !self.step(&mut cell, &lasts) {
                return;
            }
        }
    }

    /// Returns the highest local index along each dimension of a section that is not empty.
    fn lasts(&self) -> Vec<usize> {
        let dims = self.starts.iter().zip(&self.extents);
        dims.map(|(start, extent)| start.saturating_add(extent.saturating_sub(1))).collect()
    }

    /// Moves on to the next cell; returns false after the last one.
    fn step(&self, cell: &mut [usize], lasts: &[usize]) -> bool {
        for (at, (start, last)) in cell.iter_mut().zip(self.starts.iter().zip(lasts)).rev() {
            if *at < *last {
                *at = at.saturating_add(1);
                return true;
            }
            *at = *start;
        }
        false
    }
}

impl fmt::Display for Section {
    /// Writes extents and starts: `2 x 8 at (0, 1)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |of: &[usize], between: &str| of.iter().map(usize::to_string).collect::<Vec<_>>().join(between);
        write!(f, "{} at ({})", list(&self.extents, " x "), list(&self.starts, ", "))
    }
}
