//! Active target for some members: post, start, complete, wait.
//!
//! For each pair of members there are two words. *Posted*, at the origin: the target sets it when
//! it exposes its memory, and the origin clears it when it starts. *Completed*, at the target: the
//! origin sets it when it has flushed its operations, and the target clears it when all origins
//! have set it. Each word is set only after the other side has cleared it, which the other word
//! shows, so no put of one epoch takes effect in the next.

mod post;
mod start;

pub use post::Exposure;
pub use start::StartEpoch;

use super::{
    core::{Core, Word},
    error::WindowResult,
};
use rdma_fabric::{Rank, op::Put};

/// The way in which the origins of an exposure are notified.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Check {
    /// By a word in their own memory.
    Notified,
    /// By other means (`MPI_MODE_NOCHECK`).
    Known,
}

/// Returns `ranks` sorted and without duplicates, if all are members.
fn distinct(core: &Core, ranks: &[Rank]) -> WindowResult<Vec<Rank>> {
    let mut ranks = ranks.to_vec();
    ranks.sort_unstable();
    ranks.dedup();
    ranks.iter().try_for_each(|rank| core.words.number(*rank).map(drop))?;
    Ok(ranks)
}

impl Core {
    async fn set(&self, rank: Rank, word: Word) -> rdma_fabric::Result<()> {
        let word = self.words.theirs(&self.fabric, rank, word)?.as_span();
        self.fabric.post(Put { to: &word, from: [1u64], notice: None }).await.map(drop)
    }

    fn clear(&self, word: Word) -> rdma_fabric::Result<()> {
        self.fabric.store(&self.words.own(&self.fabric, word)?, 0)
    }
}
