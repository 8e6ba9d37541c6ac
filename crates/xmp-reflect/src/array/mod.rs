//! Distributed arrays.

mod cells;
mod geometry;
mod views;

pub(crate) use cells::{Cells, layout_at};
pub(crate) use geometry::Geometry;
pub use views::{ArrayView, ArrayViewMut, SectionView, SectionViewMut};

use crate::{
    Element, Mapping, Part, Result, Section, XmpError,
    reflect::{Reflect, Schedule},
};
use prdma_offload::Buffer;
use rdma_fabric::Fabric;
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// One node's part of a distributed array: its elements, and shadows around them that a
/// [reflect](crate::NodeSet::reflect) updates.
///
/// Views give access to the elements in place if the fabric maps the rank's own memory. A program
/// that computes on views copies nothing.
///
/// Along all dimensions but the slowest, a node allocates as many cells as the node with the most of
/// them, so that distances in memory are the same everywhere and a face is one command.
///
/// A rod of 100 cells, hot at one end and cold at the other:
/// ```
/// use rdma_fabric::{Fabric, Group, ProgramResult};
/// use xmp_reflect::{Align, Array, Format, NodeSet, Nodes, Order, Reflect, Shadow, Template};
///
/// async fn rod(fabric: Fabric) -> ProgramResult<()> {
///     let group = Group::world(&fabric).await?;
///     let nodes = Nodes::new(&[group.len()], Order::LastFastest)?;
///     let template = Template::new(&[0..100], &[Format::Block], &nodes)?;
///     let mapping = template.align(&[0..100], &[Align::with(0)])?.shadow(&[Shadow::of(1)])?;
///     let mut set = NodeSet::new(group, nodes)?;
///     let (now, next): (Array<f64>, Array<f64>) = (set.array(&mapping)?, set.array(&mapping)?);
///     // The cells at −1 and 100 are in the shadow of the first and of the last node.
///     now.fill_boundary(|index| if index[0] < 0 { 100.0 } else { 0.0 })?;
///     set.reflect(&now, &Reflect::whole()).await?;
///     {
///         let (from, mut to) = (now.view()?, next.view_mut()?);
///         for cell in 1..to.len() - 1 {
///             to[cell] = (from[cell - 1] + from[cell + 1]) / 2.0;
///         }
///     }
///     for (index, heat) in next.owned()? {
///         assert_eq!(heat, if index[0] == 0 { 50.0 } else { 0.0 });
///     }
///     set.barrier().await?;
///     Ok(())
/// }
/// # checks::documented::run(3, &rod);
/// ```
pub struct Array<T: Element> {
    mapping: Arc<Mapping>,
    node: usize,
    geometry: Geometry,
    /// The index of the first cell along each dimension, if indices of cells are consecutive.
    origins: Option<Box<[i64]>>,
    pub(crate) buffer: Buffer<T>,
    pub(crate) kept: Arc<Kept>,
}

/// Schedules of an array, kept for reuse. They are dropped with the array.
#[derive(Default)]
pub(crate) struct Kept(Mutex<Vec<(Reflect, Slot)>>);

/// The location of a schedule.
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
        write!(f, "Array(node {}, {:?} cells, {:?})", self.node, self.geometry.extents, self.buffer)
    }
}

impl<T: Element> Array<T> {
    pub(crate) fn new(fabric: &Fabric, mapping: &Mapping, node: usize) -> Result<Self> {
        let geometry = Geometry::new(mapping, node)?;
        let buffer = Buffer::in_place(fabric, geometry.elements)?;
        let origins = mapping.part(node)?.origins();
        Ok(Array { mapping: Arc::new(mapping.clone()), node, geometry, origins, buffer, kept: Arc::default() })
    }

    /// Returns another handle of the same array, with the same memory.
    pub(crate) fn another(&self) -> Self {
        Array {
            mapping: self.mapping.clone(),
            node: self.node,
            geometry: self.geometry.clone(),
            origins: self.origins.clone(),
            buffer: self.buffer.clone(),
            // Without the cached schedules, so that a schedule does not keep itself alive.
            kept: Arc::default(),
        }
    }

    /// Adds the cells of `beside`, one section after another, to those of the sections.
    pub(crate) fn add(&self, beside: &Buffer<T>, sections: &[Section], add: fn(T, T) -> T) -> Result<()> {
        let arrived = beside.view(0..beside.len())?;
        let mut rest = &*arrived;
        for section in sections {
            let mut view = self.section_mut(section)?;
            let rows = self.geometry.rows(section);
            for number in rows.numbers() {
                let (row, after) = rest.split_at(rows.len);
                view.row_mut(&number).iter_mut().zip(row).for_each(|(cell, other)| *cell = add(*cell, *other));
                rest = after;
            }
        }
        Ok(())
    }

    /// Returns the mapping.
    pub fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// Returns the index of the first cell along each dimension, if indices of cells are
    /// consecutive.
    #[inline]
    pub(crate) fn origins(&self) -> Option<&[i64]> {
        self.origins.as_deref()
    }

    /// Returns this node's part of the array.
    pub fn part(&self) -> Part<'_> {
        self.mapping.part(self.node).expect("checked when the array was made")
    }

    /// Returns the number of this node.
    pub fn node(&self) -> usize {
        self.node
    }

    /// Returns the cells of this node along each dimension, shadow included.
    pub fn extents(&self) -> &[usize] {
        &self.geometry.extents
    }

    /// Returns the distance in memory between neighbours along each dimension, in elements.
    pub fn strides(&self) -> &[usize] {
        &self.geometry.strides
    }

    /// Returns all cells of this node as a section.
    pub fn cells(&self) -> Section {
        let extents = self.extents();
        Section { starts: vec![0; extents.len()], extents: extents.to_vec() }
    }

    /// Returns the place in memory of a cell, given by local indices inside the extents, in elements.
    pub fn offset(&self, local: &[usize]) -> usize {
        self.geometry.offset(local)
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

    /// Sets each element that this node owns to the result of `value` for its indices.
    ///
    /// # Errors
    /// [`prdma_offload::PrdmaError::InUse`].
    pub fn fill(&self, value: impl FnMut(&[i64]) -> T) -> Result<()> {
        self.fill_sections(&self.part().owned_sections(), value)
    }

    /// Sets each cell of the shadow beyond the array's bounds to the result of `value` for its
    /// indices: a fixed boundary. The layer below index 0 has index −1. A reflect that is not
    /// periodic leaves these cells as they are; they are zero at first, and so are always those
    /// beyond the range of `i64`, which have no index. Local.
    ///
    /// # Errors
    /// [`prdma_offload::PrdmaError::InUse`].
    pub fn fill_boundary(&self, value: impl FnMut(&[i64]) -> T) -> Result<()> {
        self.fill_sections(&self.part().boundary_sections(), value)
    }

    fn fill_sections(&self, sections: &[Section], mut value: impl FnMut(&[i64]) -> T) -> Result<()> {
        let part = self.part();
        for section in sections {
            let mut view = self.section_mut(section)?;
            part.each(section, |cell, index| *view.cell_mut(cell) = value(index));
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
            part.each(&section, |cell, index| all.push((index.to_vec(), *view.cell(cell))));
        }
        Ok(all)
    }

    /// Checks that a section is inside this node's cells.
    pub(crate) fn contains(&self, section: &Section) -> Result<()> {
        let extents = self.extents();
        let ends = section.starts.iter().zip(&section.extents).map(|(start, extent)| start.checked_add(*extent));
        let fits = section.starts.len() == extents.len()
            && section.extents.len() == extents.len()
            && ends.zip(extents).all(|(end, extent)| end.is_some_and(|end| end <= *extent));
        let outside = || XmpError::OutsideCells { section: section.to_string(), extents: extents.to_vec() };
        if fits { Ok(()) } else { Err(outside()) }
    }
}
