//! An array's cells, independent of its element type: the interface that schedules use.

use super::{Array, Geometry};
use crate::{Element, Mapping, Result, Section};
use prdma_offload::{Layout, Point};
use rdma_fabric::RegionKey;

/// The cells of an array at this node.
pub trait Cells {
    /// Returns the mapping of the array.
    fn mapping(&self) -> &Mapping;
    /// Returns the bytes of an element.
    fn element(&self) -> usize;
    /// Returns the key under which others reach the memory, if it has one.
    fn key(&self) -> Option<RegionKey>;
    /// Returns the bytes of a section.
    fn layout(&self, section: &Section) -> Result<Layout>;
    /// Creates a point for a section: the data exchanged with `member` under `tag`.
    fn point(&self, member: usize, tag: u32, section: &Section) -> Result<Point>;
    /// Copies the bytes of a section to the start of `into`.
    fn pack(&self, section: &Section, into: &mut [u8]) -> Result<()>;
    /// Copies the bytes at the start of `from` to a section.
    fn unpack(&self, section: &Section, from: &[u8]) -> Result<()>;
    /// Returns another value of the same array.
    fn again(&self) -> Box<dyn Cells + Send + Sync>;
}

impl<T: Element> Cells for Array<T> {
    fn mapping(&self) -> &Mapping {
        Array::mapping(self)
    }

    fn element(&self) -> usize {
        size_of::<T>()
    }

    fn key(&self) -> Option<RegionKey> {
        self.buffer.key()
    }

    fn layout(&self, section: &Section) -> Result<Layout> {
        Ok(self.geometry.layout(section, size_of::<T>())?)
    }

    fn point(&self, member: usize, tag: u32, section: &Section) -> Result<Point> {
        Ok(Point::new(member, tag, &self.buffer, self.geometry.layout(section, size_of::<T>())?))
    }

    fn pack(&self, section: &Section, mut into: &mut [u8]) -> Result<()> {
        let (view, rows) = (self.section(section)?, self.geometry.rows(section));
        for number in rows.numbers() {
            let row: &[u8] = bytemuck::cast_slice(view.row(&number));
            let (here, after) = into.split_at_mut(row.len());
            here.copy_from_slice(row);
            into = after;
        }
        Ok(())
    }

    fn unpack(&self, section: &Section, mut from: &[u8]) -> Result<()> {
        let (mut view, rows) = (self.section_mut(section)?, self.geometry.rows(section));
        for number in rows.numbers() {
            let row: &mut [u8] = bytemuck::cast_slice_mut(view.row_mut(&number));
            let (here, after) = from.split_at(row.len());
            row.copy_from_slice(here);
            from = after;
        }
        Ok(())
    }

    fn again(&self) -> Box<dyn Cells + Send + Sync> {
        Box::new(self.another())
    }
}

/// Returns the bytes of a section of another node's part of an array.
///
/// # Errors
/// [`crate::XmpError::Mapping`] for a node that doesn't exist; the errors of [`Layout::strided`].
pub(crate) fn layout_at(cells: &dyn Cells, node: usize, section: &Section) -> Result<Layout> {
    Ok(Geometry::new(cells.mapping(), node)?.layout(section, cells.element())?)
}
