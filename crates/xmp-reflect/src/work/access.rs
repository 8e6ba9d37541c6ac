//! Access to cells by their indices.

use super::Indices;
use crate::{
    Array, Element, PlanError, Result, Section, SectionView, SectionViewMut, Widths, XmpError, mapping::MOST_DIMS,
};
use core::ops::{Index, IndexMut};

impl<T: Element> Array<T> {
    /// Borrows for reading the smallest section that has the cells with these indices and those
    /// within the widths around them, as far as the node has them: what a stencil reads.
    ///
    /// # Errors
    /// As [`Array::section`]; [`XmpError::NotHere`] for an index of which the node has no
    /// cell; [`XmpError::Plan`] if the number of widths is not that of the dimensions.
    pub fn around<const N: usize>(&self, indices: &Indices<N>, widths: &[Widths]) -> Result<SectionView<'_, T>> {
        if widths.len() != N {
            return Err(PlanError::Widths { given: widths.len(), dims: N }.into());
        }
        let mut section = self.enclosing(indices)?;
        if !section.is_empty() {
            for (dim, widths) in widths.iter().enumerate() {
                let start = section.starts[dim];
                let end = start + section.extents[dim];
                let first = start.saturating_sub(widths.lo);
                section.extents[dim] = end.saturating_add(widths.hi).min(self.extents()[dim]) - first;
                section.starts[dim] = first;
            }
        }
        self.section(&section)
    }

    /// Borrows for reading and writing the smallest section that has the cells with these indices.
    ///
    /// # Errors
    /// As [`Array::section_mut`]; [`XmpError::NotHere`] for an index of which the node has no
    /// cell.
    pub fn at_mut<const N: usize>(&self, indices: &Indices<N>) -> Result<SectionViewMut<'_, T>> {
        self.section_mut(&self.enclosing(indices)?)
    }

    /// Returns the smallest section that has the cells with these indices: local indices ascend with
    /// indices.
    fn enclosing<const N: usize>(&self, indices: &Indices<N>) -> Result<Section> {
        let part = self.part();
        let mut ends: Option<(Vec<usize>, Vec<usize>)> = None;
        for of in indices.boxes() {
            let corner = |index: [i64; N]| {
                let nowhere = || XmpError::NotHere { node: self.node(), index: index.to_vec() };
                part.local(&index).ok_or_else(nowhere)
            };
            let first = corner(core::array::from_fn(|dim| of[dim].start))?;
            let last = corner(core::array::from_fn(|dim| of[dim].end - 1))?;
            let (low, high) = ends.get_or_insert_with(|| (first.clone(), last.clone()));
            low.iter_mut().zip(first).for_each(|(low, first)| *low = first.min(*low));
            high.iter_mut().zip(last).for_each(|(high, last)| *high = last.max(*high));
        }
        let dims = self.extents().len();
        Ok(match ends {
            None => Section { starts: vec![0; dims], extents: vec![0; dims] },
            Some((starts, ends)) => {
                let extents = starts.iter().zip(ends).map(|(start, end)| end - start + 1).collect();
                Section { starts, extents }
            }
        })
    }

    /// Returns the local indices of a cell, the first `N` of the result.
    ///
    /// # Panics
    /// The node has no such cell.
    #[inline]
    pub(crate) fn local_of<const N: usize>(&self, index: &[i64; N]) -> [usize; MOST_DIMS] {
        let mut local = [0; MOST_DIMS];
        let Some(origins) = self.origins().filter(|origins| origins.len() == N) else {
            let found = self.part().local(index).unwrap_or_else(|| self.nowhere(index));
            local[..N].copy_from_slice(&found);
            return local;
        };
        for (dim, (at, origin)) in index.iter().zip(origins).enumerate() {
            let cell = at.checked_sub(*origin).and_then(|cell| usize::try_from(cell).ok());
            local[dim] = cell.filter(|cell| *cell < self.extents()[dim]).unwrap_or_else(|| self.nowhere(index));
        }
        local
    }

    #[cold]
    fn nowhere(&self, index: &[i64]) -> ! {
        panic!("node {} has no cell for element {index:?}", self.node())
    }
}

macro_rules! index_section {
    ($($view:ident),*) => {$(
        /// The cell of an element. Panics if it is not in the section.
        impl<T: Element, const N: usize> Index<[i64; N]> for $view<'_, T> {
            type Output = T;

            #[inline]
            fn index(&self, index: [i64; N]) -> &T {
                self.cell(&self.array().local_of(&index)[..N])
            }
        }
    )*};
}
index_section!(SectionView, SectionViewMut);

impl<T: Element, const N: usize> IndexMut<[i64; N]> for SectionViewMut<'_, T> {
    #[inline]
    fn index_mut(&mut self, index: [i64; N]) -> &mut T {
        let local = self.array().local_of(&index);
        self.cell_mut(&local[..N])
    }
}
