//! What the CPU does at the end of an allreduce: fold the blocks of all members, in the order of their numbers.

use crate::{Layout, Result, buffer::Memory, init::Block};
use rdma_fabric::{Fabric, Pod};

type Fold = dyn Fn(&[u8], usize) -> Vec<u8> + Send + Sync;

/// From the blocks of all to the one result.
pub(crate) struct Reduction<F: Fabric> {
    /// The blocks, one after the other.
    pub(super) blocks: Memory<F>,
    pub(super) members: usize,
    /// Where the result goes.
    pub(super) result: Block<F>,
    pub(super) fold: Box<Fold>,
}

impl<F: Fabric> Reduction<F> {
    /// Fold.
    pub(crate) fn finish(&self, scratch: &mut Vec<u8>) -> Result<()> {
        let bytes = self.result.layout.bytes();
        self.blocks.gather(&Layout::first(bytes * self.members as u64), scratch)?;
        self.result.memory.scatter(&self.result.layout, &(self.fold)(scratch, bytes as usize))
    }
}

/// Left to right: the first block, then each of the others.
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
