//! One node's part of an array.

use super::{Dimension, Mapping, Section, Shadow};
use core::ops::Range;

/// One node's part of an array: the elements that it owns, and the cells that it allocates for them
/// and for its shadows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    mapping: &'a Mapping,
    node: usize,
    /// Of the node, in the node set.
    coordinates: Vec<usize>,
    /// Cells along each dimension of the array, shadow included.
    extents: Vec<usize>,
}

impl<'a> Part<'a> {
    pub(super) fn new(mapping: &'a Mapping, node: usize, coordinates: Vec<usize>) -> Part<'a> {
        let mut part = Part { mapping, node, coordinates, extents: Vec::new() };
        part.extents = part.dims().map(|(dim, at)| dim.allocated(at)).collect();
        part
    }

    /// Returns the node's number.
    pub fn node(&self) -> usize {
        self.node
    }

    /// Returns the node's coordinates in the node set.
    pub fn coordinates(&self) -> &[usize] {
        &self.coordinates
    }

    /// Returns the mapping of the array.
    pub fn mapping(&self) -> &'a Mapping {
        self.mapping
    }

    /// Returns the indices of a dimension that the node owns, possibly none; `None` if nodes may
    /// own several pieces of it.
    ///
    /// # Panics
    /// If there is no such dimension.
    pub fn block(&self, dim: usize) -> Option<Range<i64>> {
        self.dim(dim).block(self.at(dim))
    }

    /// Returns the runs of indices of a dimension that the node owns, ascending and as long as
    /// possible.
    ///
    /// # Panics
    /// If there is no such dimension.
    pub fn runs(&self, dim: usize) -> Vec<Range<i64>> {
        self.dim(dim).runs(self.at(dim))
    }

    /// Returns the indices of some of the node's cells along a dimension, by the local index of the
    /// first and their number, as runs. Cells without an index are left out.
    pub(crate) fn runs_of(&self, dim: usize, start: usize, cells: usize) -> Vec<Range<i64>> {
        let mut runs: Vec<Range<i64>> = Vec::new();
        let indices = (start..start.saturating_add(cells)).filter_map(|cell| self.dim(dim).index(self.at(dim), cell));
        for index in indices {
            match runs.last_mut() {
                Some(run) if run.end == index => run.end = index.saturating_add(1),
                _ => runs.push(index..index.saturating_add(1)),
            }
        }
        runs
    }

    /// Returns, for each dimension of which the node's cells have consecutive indices, the index of
    /// the first cell; `None` if there is another dimension, or a cell without an index.
    pub(crate) fn origins(&self) -> Option<Box<[i64]>> {
        let origin = |(dim, at): (&Dimension, usize)| {
            let is_linear = dim.is_contiguous() || dim.shadow == Shadow::Full;
            let last = dim.allocated(at).checked_sub(1)?;
            dim.index(at, last)?;
            dim.index(at, 0).filter(|_| is_linear)
        };
        self.dims().map(origin).collect()
    }

    /// Returns the number of indices of a dimension that the node owns.
    ///
    /// # Panics
    /// If there is no such dimension.
    pub fn owned(&self, dim: usize) -> usize {
        self.dim(dim).owned(self.at(dim))
    }

    /// Returns the number of elements that the node owns.
    pub fn elements(&self) -> usize {
        self.dims().map(|(dim, at)| dim.owned(at)).product()
    }

    /// Returns the number of cells that the node allocates along each dimension, shadow included.
    pub fn extents(&self) -> &[usize] {
        &self.extents
    }

    /// Returns the number of cells that the node allocates, shadow included.
    pub fn cells(&self) -> usize {
        self.extents.iter().product()
    }

    /// Returns the distance between neighbours along each dimension in the node's memory, in
    /// elements, if it allocates no more than the [extents](Part::extents).
    pub fn strides(&self) -> Vec<usize> {
        self.mapping.order().strides(&self.extents).expect("checked when the mapping was made")
    }

    /// Returns whether the node owns an element.
    pub fn owns(&self, index: &[i64]) -> bool {
        index.len() == self.mapping.dims() && self.dims().zip(index).all(|((dim, at), index)| dim.owns(at, *index))
    }

    /// Returns the local indices of a cell, owned or in the shadow; `None` if the node doesn't have
    /// it. In shadows beyond the array's bounds, indices are continued: the layer below index 0 has
    /// index −1, even if a periodic reflect fills it with other elements.
    pub fn local(&self, index: &[i64]) -> Option<Vec<usize>> {
        if index.len() != self.mapping.dims() {
            return None;
        }
        self.dims().zip(index).map(|((dim, at), index)| dim.local(at, *index)).collect()
    }

    /// Returns the indices of a cell, the inverse of [`Part::local`]; `None` if there is no such
    /// cell.
    pub fn index(&self, local: &[usize]) -> Option<Vec<i64>> {
        if local.len() != self.mapping.dims() {
            return None;
        }
        self.dims().zip(local).map(|((dim, at), local)| dim.index(at, *local)).collect()
    }

    /// Calls `visit` with the local indices and the indices of each cell of a section that is inside
    /// the node's cells. Cells of a shadow beyond the range of `i64` have no index, and are left out.
    pub(crate) fn each(&self, section: &Section, mut visit: impl FnMut(&[usize], &[i64])) {
        let along = self.dims().zip(section.starts.iter().zip(&section.extents));
        let along: Vec<(usize, Vec<Option<i64>>)> = along
            .map(|((dim, at), (start, extent))| {
                (*start, (0..*extent).map(|cell| dim.index(at, start.saturating_add(cell))).collect())
            })
            .collect();
        let mut index = vec![0; along.len()];
        section.each(|cell| {
            let mut dims = index.iter_mut().zip(&along).zip(cell);
            let has_index = dims.all(|((index, (start, along)), at)| match along[at.abs_diff(*start)] {
                Some(known) => {
                    *index = known;
                    true
                }
                None => false,
            });
            if has_index {
                visit(cell, &index);
            }
        });
    }

    /// Returns the cells beyond the array's bounds as sections, disjoint and none empty. Only nodes
    /// at the edge of the array have such cells. A periodic reflect overwrites them; any other
    /// reflect leaves them as set by the program
    /// ([`Array::fill_boundary`](crate::Array::fill_boundary)).
    pub fn boundary_sections(&self) -> Vec<Section> {
        let mut sections = Vec::new();
        let mut rest = Section { starts: vec![0; self.extents.len()], extents: self.extents.clone() };
        for (along, (dim, at)) in self.dims().enumerate() {
            let is_inside = |cell: &usize| dim.index(at, *cell).is_some_and(|index| dim.bounds.contains(&index));
            let len = self.extents[along];
            let low = (0..len).find(is_inside).unwrap_or(len);
            let high = (low..len).rev().find(is_inside).map_or(len, |last| last.saturating_add(1));
            for outside in [0..low, high..len] {
                let mut section = rest.clone();
                (section.starts[along], section.extents[along]) = (outside.start, outside.len());
                sections.push(section);
            }
            (rest.starts[along], rest.extents[along]) = (low, (low..high).len());
        }
        sections.retain(|section| !section.is_empty());
        sections
    }

    /// Returns the owned cells as sections, disjoint and none empty: one, or none, unless a
    /// dimension has a full shadow and nodes own several pieces of it.
    pub fn owned_sections(&self) -> Vec<Section> {
        let owned: Vec<_> = self.dims().map(|(dim, at)| dim.owned_cells(at)).collect();
        Section::products(&owned)
    }

    /// Returns the dimensions of the array, each with the node's coordinate along it.
    pub(crate) fn dims(&self) -> impl Iterator<Item = (&'a Dimension, usize)> {
        self.mapping.dimensions().iter().map(|dim| (dim, self.at_of(dim)))
    }

    fn dim(&self, dim: usize) -> &'a Dimension {
        &self.mapping.dimensions()[dim]
    }

    fn at(&self, dim: usize) -> usize {
        self.at_of(self.dim(dim))
    }

    /// Returns the node's coordinate along a dimension; 0 if it isn't distributed.
    fn at_of(&self, dim: &Dimension) -> usize {
        dim.along().map_or(0, |along| self.coordinates[along])
    }
}
