//! The location of a node's cells in its memory. Every node can compute it for every other.

#![deny(clippy::arithmetic_side_effects)]

use crate::{Mapping, MappingError, Order, Section};
use prdma_offload::{Layout, LayoutError};

/// The cells of one node, and where they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// Cells along each dimension, shadow included.
    pub(crate) extents: Box<[usize]>,
    /// Elements between neighbours along each dimension.
    pub(crate) strides: Box<[usize]>,
    /// All elements that the node allocates.
    pub(crate) elements: usize,
    order: Order,
}

impl Geometry {
    /// Along all dimensions but the slowest, a node allocates as many cells as the node with the most
    /// of them, so that distances are the same everywhere.
    pub(crate) fn new(mapping: &Mapping, node: usize) -> Result<Self, MappingError> {
        let (extents, order): (Box<[usize]>, _) = (mapping.part(node)?.extents().into(), mapping.order());
        let mut padded: Vec<usize> = (0..mapping.dims()).map(|dim| mapping.largest_extent(dim)).collect();
        let slowest = match order {
            Order::LastFastest => 0,
            Order::FirstFastest => mapping.dims().saturating_sub(1),
        };
        padded[slowest] = extents[slowest];
        // Known to be addressable: this was checked when the mapping was created.
        let strides = order.strides(&padded).unwrap_or_default().into();
        let elements = if extents.contains(&0) { 0 } else { padded.iter().product() };
        Ok(Geometry { extents, strides, elements, order })
    }

    /// Returns the place of a cell, in elements; `usize::MAX` for one that no memory has.
    pub(crate) fn offset(&self, local: &[usize]) -> usize {
        let dims = local.iter().zip(&self.strides);
        dims.fold(0, |offset: usize, (at, stride)| offset.saturating_add(at.saturating_mul(*stride)))
    }

    /// Returns the dimensions, the slowest in memory first.
    #[inline]
    pub(crate) fn slowest_first(&self) -> impl DoubleEndedIterator<Item = usize> + ExactSizeIterator {
        let (dims, order) = (self.extents.len(), self.order);
        (0..dims).map(move |number| match order {
            Order::LastFastest => number,
            // Below the number of dimensions.
            Order::FirstFastest => dims.saturating_sub(number).saturating_sub(1),
        })
    }

    /// Returns the bytes of a section of elements of this size, in the order of memory.
    pub(crate) fn layout(&self, section: &Section, size: usize) -> Result<Layout, LayoutError> {
        if section.is_empty() {
            return Ok(Layout::nothing());
        }
        // Of a node whose memory this one does not have, only the number of cells is known to fit.
        let size = size as u64;
        let bytes = |cells: usize| (cells as u64).checked_mul(size).ok_or(LayoutError::Overflow);
        let dims = self.slowest_first().map(|dim| Ok((section.extents[dim] as u64, bytes(self.strides[dim])?)));
        Layout::strided(bytes(self.offset(&section.starts))?, size, &dims.collect::<Result<Vec<_>, _>>()?)
    }

    /// Returns the rows of a section that is inside the cells.
    pub(crate) fn rows(&self, section: &Section) -> Run {
        let mut outer = self.slowest_first();
        let fastest = outer.next_back().expect("an array has a dimension");
        let dims = outer.map(|dim| (section.extents[dim], self.strides[dim])).collect();
        let start = if section.is_empty() { 0 } else { self.offset(&section.starts) };
        Run { start, len: section.extents[fastest], dims }
    }
}

/// The rows of a section in memory.
pub(crate) struct Run {
    /// The first element.
    pub(crate) start: usize,
    /// Elements of a row.
    pub(crate) len: usize,
    /// The count of each other dimension, and its distance in elements, the slowest first.
    pub(crate) dims: Vec<(usize, usize)>,
}

impl Run {
    /// Returns the number of each row, in the order of memory.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = Vec<usize>> {
        let counts: Vec<usize> = self.dims.iter().map(|(count, _)| *count).collect();
        let all = Section { starts: vec![0; counts.len()], extents: counts };
        // An iterator that owns its section.
        all.iter().collect::<Vec<_>>().into_iter()
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::*;
    use crate::{Align, Format, Nodes, Template};

    /// An array whose cells can be counted, while its bytes can't.
    #[test]
    fn bytes_that_cannot_be_counted_are_an_error() {
        let nodes = Nodes::new(&[2], Order::LastFastest).expect("nodes");
        let bounds = [0..4, 0..1 << 60];
        let template = Template::new(&bounds, &[Format::Block, Format::None], &nodes).expect("a template");
        let mapping = template.align(&bounds, &[Align::with(0), Align::with(1)]).expect("a mapping");
        let geometry = Geometry::new(&mapping, 1).expect("a node");
        let section = |start, extent| Section { starts: vec![start, 0], extents: vec![extent, 1] };
        assert_eq!(geometry.layout(&section(0, 2), 8).map(|layout| layout.end()), Ok((1 << 63) + 8));
        for size in [16, 1 << 10] {
            assert_eq!(geometry.layout(&section(0, 2), size), Err(LayoutError::Overflow), "{size}");
            assert_eq!(geometry.layout(&section(1, 1), size), Err(LayoutError::Overflow), "{size}");
        }
        assert_eq!(geometry.offset(&[usize::MAX, 0]), usize::MAX);
    }
}
