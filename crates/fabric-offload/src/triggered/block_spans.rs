//! Pairs of spans of which only some blocks are put.

use core::fmt;
use rdma_fabric::{BlockProgress, BlockPut, Blocks, Fabric, LocalSpan, Pod, RemoteSpan, Result};

/// Pairs with several blocks, and the progress of putting them.
pub(super) struct BlockSpans<W: Pod> {
    pub(super) pairs: Vec<BlockPair<W>>,
    /// Number of pairs that have been posted as a whole.
    pub(super) posted: usize,
    /// The progress of the next pair, and the operations in flight of the earlier pairs.
    progress: BlockProgress,
}

/// A pair of spans with a valid layout of blocks.
pub(super) struct BlockPair<W: Pod> {
    pub(super) from: LocalSpan<W>,
    pub(super) to: RemoteSpan<W>,
    /// Elements of a block.
    pub(super) elements: usize,
    pub(super) blocks: Blocks,
}

impl<W: Pod> fmt::Debug for BlockSpans<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} with blocks", self.posted, self.pairs.len())
    }
}

impl<W: Pod> Default for BlockSpans<W> {
    fn default() -> Self {
        BlockSpans { pairs: Vec::new(), posted: 0, progress: BlockProgress::default() }
    }
}

impl<W: Pod> BlockSpans<W> {
    /// Posts without waiting; returns whether everything has been posted.
    fn post(&mut self, fabric: &Fabric) -> Result<bool> {
        while let Some(BlockPair { from, to, elements, blocks }) = self.pairs.get(self.posted) {
            if !BlockPut::new(to, from, *elements, *blocks)?.post(fabric, &mut self.progress)? {
                return Ok(false);
            }
            self.progress.restart();
            self.posted += 1;
        }
        Ok(true)
    }

    /// Puts without waiting; returns whether all pairs are complete.
    #[inline(never)]
    pub(super) fn put_now(&mut self, fabric: &Fabric) -> Result<bool> {
        Ok(self.post(fabric)? && self.progress.is_idle())
    }

    /// Posts the rest, and waits until all pairs are complete. May be dropped and called again.
    pub(super) async fn put(&mut self, fabric: &Fabric) -> Result<()> {
        while !self.post(fabric)? {
            fabric.room(None).await?;
        }
        self.progress.complete().await
    }
}
