//! The CPU's part in an allreduce: it copies the member's block to the area of the queues, and
//! folds the blocks of all members in order.

use super::plan::Area;
use crate::{
    Layout, Result,
    buffer::{Memory, copy},
    init::Block,
};
use rdma_fabric::Pod;

type Fold = dyn Fn(&[u8], usize) -> Vec<u8> + Send + Sync;

/// The buffers and areas of an allreduce, from the member's block to the result.
pub(crate) struct Reduction {
    pub(super) sent: Block,
    /// The destination of the result.
    pub(super) result: Block,
    /// The areas, indexed by [`Area`].
    pub(super) areas: [Memory; 2],
    pub(super) members: usize,
    /// The member whose area it is, if areas are [alternating](super::plan::Plan::alternating): its
    /// block is then the first one there.
    pub(super) alternating: Option<usize>,
    pub(super) fold: Box<Fold>,
}

impl Reduction {
    /// Returns the number of bytes that [`Reduction::begin`] copies.
    pub(crate) fn begun_bytes(&self) -> usize {
        self.sent.layout.bytes() as usize
    }

    /// Returns the number of bytes that [`Reduction::finish`] copies and folds.
    pub(crate) fn finished_bytes(&self) -> usize {
        self.result.layout.bytes() as usize * self.members
    }

    /// Copies this member's block to the area of the queues.
    pub(crate) fn begin(&self, iteration: u64) -> Result<()> {
        let area = self.alternating.map_or(Area::Gather, |_| Area::alternating(iteration));
        let first = Layout::first(self.sent.layout.bytes());
        copy((&self.sent.memory, &self.sent.layout), (&self.areas[area as usize], &first))
    }

    /// Folds the blocks of all members into the result.
    pub(crate) fn finish(&self, iteration: u64, scratch: &mut Vec<u8>) -> Result<()> {
        let bytes = self.result.layout.bytes() as usize;
        let area = self.alternating.map_or(Area::Result, |_| Area::alternating(iteration));
        self.areas[area as usize].gather(Layout::first((bytes * self.members) as u64).runs(), scratch)?;
        scratch.rotate_right(self.alternating.unwrap_or(0) * bytes);
        self.result.memory.scatter(self.result.layout.runs(), &(self.fold)(scratch, bytes))
    }
}

/// Returns a fold from left to right: the first block, then each of the others.
pub(super) fn fold<T: Pod>(combine: fn(T, T) -> T) -> Box<Fold> {
    Box::new(move |bytes, block| {
        if block == 0 {
            return Vec::new();
        }
        let elements =
            |block: &[u8]| -> Vec<T> { block.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect() };
        let mut blocks = bytes.chunks_exact(block).map(elements);
        let mut folded = blocks.next().unwrap_or_default();
        for block in blocks {
            folded.iter_mut().zip(block).for_each(|(all, one)| *all = combine(*all, one));
        }
        bytemuck::cast_slice(&folded).to_vec()
    })
}
