//! The interface of a provider that posts several blocks at once.

use super::{Place, Posted};
use crate::Blocks;

/// Puts of several blocks: see [`BlockPut`](crate::BlockPut).
pub trait BlockPuts {
    /// Posts a put of `blocks` of `len` bytes each from local registered memory. Both places extend
    /// from the first byte of the first block to the last byte of the last, and the blocks do not
    /// overlap each other. [`Provider::poll`](super::Provider::poll) polls it, and it counts among
    /// the puts to the destination's rank; it is complete, and visible, when all of its blocks are.
    fn put_blocks(&self, to: &Place, from: &Place, len: usize, blocks: Blocks) -> Posted;
}
