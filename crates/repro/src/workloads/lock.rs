//! Workloads of the lock paper (section 5.2).

use super::Together;
use rdma_fabric::{Amo, Fabric, Program, ProgramResult, Rank, op};
use rma_lock::locks::RpLock;

/// Where the lock lives in every workload of the paper.
const HOME: Rank = Rank::new(0);

/// How long one rank's single fetch-add took, in picoseconds (Figs. 11 and 12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchAdd {
    /// Until the operation was posted.
    pub issue: u64,
    /// From then on until its result was here ("sync-wait").
    pub wait: u64,
}

impl FetchAdd {
    /// Both parts.
    pub const fn elapsed(self) -> u64 {
        self.issue + self.wait
    }
}

/// Every rank locks and unlocks as a reader, `pairs` times, as fast as it can (Figs. 8 and 10).
///
/// A rank's result is its elapsed time for all pairs, in picoseconds.
///
/// One future a rank, not one around another: the largest job is bound by memory.
pub fn reader_pairs(pairs: u32, together: Together) -> impl Program<Out = u64> {
    async move |fabric: Fabric| -> ProgramResult<u64> {
        let lock = RpLock::symmetric(&fabric, HOME).await?;
        let inside = together.enter(&fabric).await?;
        let begun = fabric.now();
        for _ in 0..pairs {
            let guard = lock.read().await?;
            guard.release().await?;
        }
        let elapsed = fabric.now().picos_since(begun);
        inside.leave(HOME).await?;
        Ok(elapsed)
    }
}

/// Every rank posts one fetch-add on a word of rank 0 and waits for it (Figs. 11 and 12).
pub async fn single_fetch_adds(fabric: Fabric, together: Together) -> ProgramResult<FetchAdd> {
    let region = fabric.alloc_symmetric(8).await?;
    let word = fabric.remote_word::<u64>(region.at(HOME, 0))?;
    let inside = together.enter(&fabric).await?;
    let begun = fabric.now();
    let handle = fabric.post(op::Atomic { word: &word, amo: Amo::Add(1) }).await?;
    let posted = fabric.now();
    handle.await?;
    let done = fabric.now();
    inside.leave(HOME).await?;
    Ok(FetchAdd { issue: posted.picos_since(begun), wait: done.picos_since(posted) })
}
