//! The peers and sizes of the exchanges, derived from the mapping of the paper's arrays.

use super::super::dynamics::SHADOW;
use prdma_offload::Layout;
use rdma_fabric::ProgramResult;
use std::num::NonZeroUsize;
use xmp_reflect::{Align, Corners, Format, Mapping, Nodes, Order, Plan, Shadow, Split, Template, Transfer, Widths};

/// The size of an element in bytes.
const ELEMENT: u64 = 8;

/// A grid of cells, and the nodes over which it is distributed, in blocks of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grid {
    /// Cells in i and j.
    pub horizontal: [usize; 2],
    /// Cells of a column, numbered from 1; arrays have an additional element 0.
    pub vertical: usize,
    /// Nodes in i and j.
    pub nodes: [NonZeroUsize; 2],
}

/// One side of the exchange of two nodes for one array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Face {
    /// The other node.
    pub peer: usize,
    /// The place of the receiver's shadow: below its block in i, above it, below in j, above.
    pub side: usize,
    /// The total size in bytes.
    pub bytes: usize,
    /// The number of contiguous runs of bytes in the array.
    pub blocks: usize,
}

impl Grid {
    /// Returns the number of nodes.
    pub fn size(&self) -> usize {
        self.nodes[0].get() * self.nodes[1].get()
    }

    /// Returns the mapping of `real(8) :: dens(0:KA,IA,JA)`, aligned `(*,i,j) with t(i,j)`, with a
    /// shadow of `(0,2,2)`, blocks in both dimensions of `t` (Fig. 7).
    pub fn mapping(&self) -> ProgramResult<Mapping> {
        let nodes = Nodes::new(&self.nodes.map(NonZeroUsize::get), Order::FirstFastest)?;
        let [i, j] = self.horizontal.map(|cells| 0..cells as i64);
        let template = Template::new(&[i.clone(), j.clone()], &[Format::Block, Format::Block], &nodes)?;
        let levels = 0..self.vertical as i64 + 1;
        let mapping = template.align(&[levels, i, j], &[Align::Collapsed, Align::with(0), Align::with(1)])?;
        let shadows = [Shadow::NONE, Shadow::of(SHADOW), Shadow::of(SHADOW)];
        Ok(mapping.shadow(&shadows)?.stored(Order::FirstFastest))
    }

    /// Returns the widths of `reflect (…) width (0,/periodic/2,/periodic/2)`.
    pub fn widths(&self) -> [Widths; 3] {
        let periodic = Widths::of(SHADOW).periodic();
        [Widths::NONE, periodic, periodic]
    }

    /// Returns the numbers of a node's cells: those around which a stencil reads no shadow, and the
    /// others.
    pub fn cells(&self, node: usize) -> ProgramResult<[usize; 2]> {
        let mapping = self.mapping()?;
        let split = Split::new(&mapping, node, &self.widths())?;
        let columns = |sections: &[xmp_reflect::Section]| {
            let columns = sections.iter().map(|section| section.extents[1] * section.extents[2]);
            columns.sum::<usize>() * self.vertical
        };
        Ok([columns(&split.inner), columns(&split.boundary)])
    }
}

/// Returns the faces that a node sends, and those that it receives, for one array.
pub fn faces(grid: &Grid, node: usize, widths: &[Widths], corners: Corners) -> ProgramResult<[Vec<Face>; 2]> {
    let mapping = grid.mapping()?;
    let strides = mapping.part(node)?.strides();
    let plan = Plan::new(&mapping, node, widths, corners)?;
    let face = |transfer: &Transfer| -> ProgramResult<Face> {
        // The slowest dimension first.
        let dims = [2, 1, 0].map(|dim| (transfer.section.extents[dim] as u64, strides[dim] as u64 * ELEMENT));
        let layout = Layout::strided(0, ELEMENT, &dims)?;
        let side = match transfer.direction[..] {
            [0, i, 0] => usize::from(i > 0),
            [0, 0, j] => 2 + usize::from(j > 0),
            _ => usize::MAX,
        };
        Ok(Face { peer: transfer.peer, side, bytes: layout.bytes() as usize, blocks: layout.count() as usize })
    };
    let all = |transfers: &[Transfer]| transfers.iter().map(face).collect::<ProgramResult<Vec<Face>>>();
    Ok([all(&plan.sends)?, all(&plan.receives)?])
}
