//! Views of an array's cells.

use super::{Array, geometry::Run};
use crate::{Element, Result, Section, mapping::MOST_DIMS};
use core::ops::{Deref, DerefMut};
use prdma_offload::{Rows, RowsMut, View, ViewMut};

/// Read access to all cells of a node, shadow included. Dereferences to the memory, in which
/// [`Array::offset`] and [`Array::strides`] locate a cell.
#[derive(Debug)]
pub struct ArrayView<'a, T: Element> {
    array: &'a Array<T>,
    cells: View<'a, T>,
}

/// Read and write access to all cells of a node, shadow included.
#[derive(Debug)]
pub struct ArrayViewMut<'a, T: Element> {
    array: &'a Array<T>,
    cells: ViewMut<'a, T>,
}

/// Read access to the cells of a section, row by row: a row runs along the dimension that is
/// fastest in memory, and is identified by its indices in the other dimensions, counted from the
/// section's start, the slowest first.
#[derive(Debug)]
pub struct SectionView<'a, T: Element> {
    place: Place<'a, T>,
    rows: Rows<'a, T>,
}

/// Read and write access to the cells of a section, row by row.
#[derive(Debug)]
pub struct SectionViewMut<'a, T: Element> {
    place: Place<'a, T>,
    rows: RowsMut<'a, T>,
}

impl<T: Element> Array<T> {
    /// Borrows all cells of this node for reading.
    ///
    /// # Errors
    /// [`prdma_offload::PrdmaError::InUse`] if a reflect is updating the shadow or did not
    /// complete, or a view for writing exists.
    pub fn view(&self) -> Result<ArrayView<'_, T>> {
        Ok(ArrayView { array: self, cells: self.buffer.view(0..self.buffer.len())? })
    }

    /// Borrows all cells of this node for reading and writing.
    ///
    /// # Errors
    /// The errors of [`Array::view`], and [`prdma_offload::PrdmaError::InUse`] if a reflect is
    /// sending any of the cells, or a view for reading exists.
    pub fn view_mut(&self) -> Result<ArrayViewMut<'_, T>> {
        Ok(ArrayViewMut { array: self, cells: self.buffer.view_mut(0..self.buffer.len())? })
    }

    /// Borrows the cells of a section, given in local indices, for reading: the
    /// [inner](crate::Split::inner) ones, for instance, while a reflect is in progress.
    ///
    /// # Errors
    /// The errors of [`Array::view`], for these cells; [`crate::XmpError::OutsideCells`].
    pub fn section(&self, section: &Section) -> Result<SectionView<'_, T>> {
        self.contains(section)?;
        let Run { start, len, dims } = self.geometry.rows(section);
        let rows = self.buffer.rows(start, len, &dims)?;
        Ok(SectionView { place: Place::new(self, section), rows })
    }

    /// Borrows the cells of a section, given in local indices, for reading and writing.
    ///
    /// # Errors
    /// The errors of [`Array::view_mut`], for these cells; [`crate::XmpError::OutsideCells`].
    pub fn section_mut(&self, section: &Section) -> Result<SectionViewMut<'_, T>> {
        self.contains(section)?;
        let Run { start, len, dims } = self.geometry.rows(section);
        let rows = self.buffer.rows_mut(start, len, &dims)?;
        Ok(SectionViewMut { place: Place::new(self, section), rows })
    }
}

/// The location of a section.
#[derive(Debug)]
struct Place<'a, T: Element> {
    array: &'a Array<T>,
    starts: Box<[usize]>,
}

impl<'a, T: Element> Place<'a, T> {
    fn new(array: &'a Array<T>, section: &Section) -> Self {
        Place { array, starts: section.starts.as_slice().into() }
    }

    /// Returns the numbers of the row of a cell, of which there is one less than there are
    /// dimensions, and its place in the row.
    #[inline]
    fn find(&self, cell: &[usize]) -> ([usize; MOST_DIMS], usize) {
        let (mut row, mut at) = ([0; MOST_DIMS], 0);
        for (number, dim) in self.array.geometry.slowest_first().enumerate() {
            at = cell[dim] - self.starts[dim];
            row[number] = at;
        }
        (row, at)
    }

    /// Returns the number of numbers of a row.
    #[inline]
    fn outer(&self) -> usize {
        self.starts.len() - 1
    }
}

impl<T: Element> SectionView<'_, T> {
    /// Returns a row.
    ///
    /// # Panics
    /// There is no such row.
    #[inline]
    pub fn row(&self, at: &[usize]) -> &[T] {
        self.rows.row(at)
    }

    /// Returns a cell, given by local indices of the node. A row is faster.
    ///
    /// # Panics
    /// The cell is not in the section.
    pub fn cell(&self, cell: &[usize]) -> &T {
        let (row, at) = self.place.find(cell);
        &self.rows.row(&row[..self.place.outer()])[at]
    }
}

impl<'a, T: Element> SectionView<'a, T> {
    /// Returns the array.
    pub fn array(&self) -> &'a Array<T> {
        self.place.array
    }
}

impl<'a, T: Element> SectionViewMut<'a, T> {
    /// Returns the array.
    pub fn array(&self) -> &'a Array<T> {
        self.place.array
    }

    /// Returns a cell, given by local indices of the node, to be read. A row is faster.
    ///
    /// # Panics
    /// The cell is not in the section.
    pub fn cell(&self, cell: &[usize]) -> &T {
        let (row, at) = self.place.find(cell);
        &self.rows.row(&row[..self.place.outer()])[at]
    }
}

impl<T: Element> SectionViewMut<'_, T> {
    /// Returns a row, to be read.
    ///
    /// # Panics
    /// There is no such row.
    #[inline]
    pub fn row(&self, at: &[usize]) -> &[T] {
        self.rows.row(at)
    }

    /// Returns a row, to be written.
    ///
    /// # Panics
    /// There is no such row.
    #[inline]
    pub fn row_mut(&mut self, at: &[usize]) -> &mut [T] {
        self.rows.row_mut(at)
    }

    /// Returns a cell, given by local indices of the node. A row is faster.
    ///
    /// # Panics
    /// The cell is not in the section.
    pub fn cell_mut(&mut self, cell: &[usize]) -> &mut T {
        let (row, at) = self.place.find(cell);
        &mut self.rows.row_mut(&row[..self.place.outer()])[at]
    }
}

impl<T: Element> Deref for ArrayView<'_, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.cells
    }
}

impl<T: Element> Deref for ArrayViewMut<'_, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.cells
    }
}

impl<T: Element> DerefMut for ArrayViewMut<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.cells
    }
}

#[cfg(feature = "ndarray")]
impl<T: Element> ArrayView<'_, T> {
    /// Returns the cells as an array of `ndarray`.
    pub fn ndarray(&self) -> ndarray::ArrayViewD<'_, T> {
        ndarray::ArrayViewD::from_shape(shape(self.array), &self.cells).expect("all cells are there")
    }
}

#[cfg(feature = "ndarray")]
impl<T: Element> ArrayViewMut<'_, T> {
    /// Returns the cells as an array of `ndarray`.
    pub fn ndarray_mut(&mut self) -> ndarray::ArrayViewMutD<'_, T> {
        ndarray::ArrayViewMutD::from_shape(shape(self.array), &mut self.cells).expect("all cells are there")
    }
}

#[cfg(feature = "ndarray")]
fn shape<T: Element>(array: &Array<T>) -> ndarray::StrideShape<ndarray::IxDyn> {
    use ndarray::ShapeBuilder;
    ndarray::IxDyn(array.extents()).strides(ndarray::IxDyn(array.strides()))
}

impl<'a, T: Element> ArrayView<'a, T> {
    /// Returns the array.
    pub fn array(&self) -> &'a Array<T> {
        self.array
    }
}

impl<'a, T: Element> ArrayViewMut<'a, T> {
    /// Returns the array.
    pub fn array(&self) -> &'a Array<T> {
        self.array
    }
}
