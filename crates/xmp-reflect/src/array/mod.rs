//! Distributed arrays.

mod views;

use views::Run;
pub use views::{ArrayView, ArrayViewMut, SectionView, SectionViewMut};

use crate::{
    Element, Mapping, Order, Part, Result, Section, XmpError,
    reflect::{Reflect, Schedule},
};
use prdma_offload::{Buffer, Layout};
use rdma_fabric::Fabric;
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// One node's part of a distributed array: its elements, and shadows around them that a
/// [reflect](crate::NodeSet::reflect) updates.
///
/// Elements are in memory that views lend in place, where the fabric maps the rank's own memory. A
/// program that computes on views copies nothing.
///
/// Along all dimensions but the slowest, a node allocates as many cells as the node with the most of
/// them, so that distances in memory are the same everywhere and a face is one command.
pub struct Array<T: Element> {
    mapping: Arc<Mapping>,
    node: usize,
    /// Cells along each dimension, shadow included.
    extents: Box<[usize]>,
    /// Elements between neighbours along each dimension.
    strides: Box<[usize]>,
    pub(crate) buffer: Buffer<T>,
    pub(crate) kept: Arc<Kept>,
}

/// Schedules of an array, kept for the next time. They go with the array.
#[derive(Default)]
pub(crate) struct Kept(Mutex<Vec<(Reflect, Slot)>>);

/// Where a schedule is.
pub(crate) enum Slot {
    Here(Box<Schedule>),
    /// In the table of asynchronous communications, under this id.
    InFlight(u64),
}

impl Kept {
    pub(crate) fn all(&self) -> MutexGuard<'_, Vec<(Reflect, Slot)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Element> fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Array(node {}, {:?} cells, {:?})", self.node, self.extents, self.buffer)
    }
}

impl<T: Element> Array<T> {
    pub(crate) fn new(fabric: &Fabric, mapping: &Mapping, node: usize) -> Result<Self> {
        let extents: Box<[usize]> = mapping.part(node)?.extents().into();
        let mut padded: Vec<usize> = (0..mapping.dims()).map(|dim| mapping.largest_extent(dim)).collect();
        let slowest = match mapping.order() {
            Order::LastFastest => 0,
            Order::FirstFastest => mapping.dims() - 1,
        };
        padded[slowest] = extents[slowest];
        // Known to be addressable: it was when the mapping was made.
        let strides = mapping.order().strides(&padded).unwrap_or_default();
        let cells = if extents.contains(&0) { 0 } else { padded.iter().product() };
        let buffer = Buffer::in_place(fabric, cells)?;
        let (mapping, strides, kept) = (Arc::new(mapping.clone()), strides.into(), Arc::default());
        Ok(Array { mapping, node, extents, strides, buffer, kept })
    }

    /// Returns another value of the same array, with the same memory.
    pub(crate) fn another(&self) -> Self {
        Array {
            mapping: self.mapping.clone(),
            node: self.node,
            extents: self.extents.clone(),
            strides: self.strides.clone(),
            buffer: self.buffer.clone(),
            // Schedules must not keep themselves.
            kept: Arc::default(),
        }
    }

    /// Adds the cells of `beside`, one section after the other, to those of the sections.
    pub(crate) fn add(&self, beside: &Buffer<T>, sections: &[Section], add: fn(T, T) -> T) -> Result<()> {
        let arrived = beside.view(0..beside.len())?;
        let mut rest = &*arrived;
        for section in sections {
            let mut view = self.section_mut(section)?;
            let Run { len, dims, .. } = self.rows_of(section)?;
            let counts: Vec<usize> = dims.iter().map(|(count, _)| *count).collect();
            let rows = Section { starts: vec![0; counts.len()], extents: counts };
            for row in rows.iter() {
                let (arrived, after) = rest.split_at(len);
                view.row_mut(&row).iter_mut().zip(arrived).for_each(|(cell, other)| *cell = add(*cell, *other));
                rest = after;
            }
        }
        Ok(())
    }

    /// Returns the mapping.
    pub fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// Returns what this node has of the array.
    pub fn part(&self) -> Part<'_> {
        self.mapping.part(self.node).expect("checked when the array was made")
    }

    /// Returns the number of this node.
    pub fn node(&self) -> usize {
        self.node
    }

    /// Returns the cells of this node along each dimension, shadow included.
    pub fn extents(&self) -> &[usize] {
        &self.extents
    }

    /// Returns the distance in memory between neighbours along each dimension, in elements.
    pub fn strides(&self) -> &[usize] {
        &self.strides
    }

    /// Returns all cells of this node as a section.
    pub fn cells(&self) -> Section {
        Section { starts: vec![0; self.extents.len()], extents: self.extents.to_vec() }
    }

    /// Returns the place in memory of a cell, given by local indices inside the extents, in elements.
    pub fn offset(&self, local: &[usize]) -> usize {
        local.iter().zip(&self.strides).map(|(at, stride)| at * stride).sum()
    }

    /// Returns a copy of an element that this node owns or has in its shadow.
    ///
    /// # Errors
    /// [`XmpError::NotHere`]; [`prdma_offload::PrdmaError::InUse`].
    pub fn get(&self, index: &[i64]) -> Result<T> {
        let mut cell = [T::zeroed()];
        self.buffer.read(self.place(index)?, &mut cell)?;
        Ok(cell[0])
    }

    /// Changes an element that this node owns, or a cell of its shadow.
    ///
    /// # Errors
    /// As [`Array::get`].
    pub fn set(&self, index: &[i64], value: T) -> Result<()> {
        Ok(self.buffer.write(self.place(index)?, &[value])?)
    }

    fn place(&self, index: &[i64]) -> Result<usize> {
        let local = self.part().local(index).filter(|_| self.buffer.len() > 0);
        let local = local.ok_or_else(|| XmpError::NotHere { node: self.node, index: index.to_vec() })?;
        Ok(self.offset(&local))
    }

    /// Sets each element that this node owns to what `value` returns for its indices.
    ///
    /// # Errors
    /// [`prdma_offload::PrdmaError::InUse`].
    pub fn fill(&self, mut value: impl FnMut(&[i64]) -> T) -> Result<()> {
        let part = self.part();
        for section in part.owned_sections() {
            let mut view = self.section_mut(&section)?;
            for cell in section.iter() {
                let index = part.index(&cell).expect("an owned cell");
                *view.cell_mut(&cell) = value(&index);
            }
        }
        Ok(())
    }

    /// Returns the elements that this node owns, with their indices, the last dimension fastest.
    ///
    /// # Errors
    /// [`prdma_offload::PrdmaError::InUse`].
    pub fn owned(&self) -> Result<Vec<(Vec<i64>, T)>> {
        let part = self.part();
        let mut all = Vec::with_capacity(part.elements());
        for section in part.owned_sections() {
            let view = self.section(&section)?;
            all.extend(section.iter().map(|cell| (part.index(&cell).expect("an owned cell"), *view.cell(&cell))));
        }
        Ok(all)
    }

    /// Returns the dimensions, the slowest in memory first.
    pub(crate) fn slowest_first(&self) -> Vec<usize> {
        let dims = 0..self.extents.len();
        match self.mapping.order() {
            Order::LastFastest => dims.collect(),
            Order::FirstFastest => dims.rev().collect(),
        }
    }

    /// Checks that a section is inside this node's cells.
    pub(crate) fn contains(&self, section: &Section) -> Result<()> {
        let ends = section.starts.iter().zip(&section.extents).map(|(start, extent)| start.checked_add(*extent));
        let fits = section.starts.len() == self.extents.len()
            && section.extents.len() == self.extents.len()
            && ends.zip(&self.extents).all(|(end, extent)| end.is_some_and(|end| end <= *extent));
        let outside = || XmpError::OutsideCells { section: section.to_string(), extents: self.extents.to_vec() };
        if fits { Ok(()) } else { Err(outside()) }
    }

    /// Returns the bytes of a section, in the order of memory.
    pub(crate) fn layout(&self, section: &Section) -> Result<Layout> {
        let size = size_of::<T>() as u64;
        let dims = self.slowest_first();
        let dims: Vec<_> =
            dims.iter().map(|dim| (section.extents[*dim] as u64, self.strides[*dim] as u64 * size)).collect();
        Ok(Layout::strided(self.offset(&section.starts) as u64 * size, size, &dims)?)
    }
}
