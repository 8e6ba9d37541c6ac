//! Workloads of the lock paper (section 5.2), and waves: everybody wants all of a window at once.

use super::{RankFuture, Together};
use rdma_fabric::{Amo, Fabric, Program, ProgramResult, Rank, Time, op};
use rma_lock::{
    Guard, Lock, RmaLock, RwLock,
    locks::{LockKind, RpLock},
};

/// Where the lock lives in every workload of the paper, and in waves.
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

/// The locks whose waves are compared, with their names in tables: each rank comes to the home for
/// itself, as in the paper; likewise, with the packed home word; the first and the last of each
/// node come; the first and the last of each group of nodes, of groups of those, and so on.
pub const WAVES: [(LockKind, &str); 4] = [
    (LockKind::ReaderPreference, "flat"),
    (LockKind::Packed, "packed"),
    (LockKind::ByNode, "by node"),
    (LockKind::Tree { radix: 64 }, "tree of 64"),
];

/// How long one rank's part of a wave took, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wave {
    /// To take the lock shared.
    pub lock: u64,
    /// To let go of it.
    pub unlock: u64,
}

/// Returns one rank's part of a wave: all lock at once, hold the lock until `unlock` has come, and
/// unlock at once.
pub fn wave(fabric: Fabric, lock: LockKind, together: Together, unlock: Time) -> RankFuture<Wave> {
    Box::pin(pass(fabric, lock, together, unlock))
}

async fn pass(fabric: Fabric, kind: LockKind, together: Together, unlock: Time) -> ProgramResult<Wave> {
    let lock = RwLock::symmetric_with(&fabric, HOME, kind.into()).await?;
    let inside = together.enter(&fabric).await?;
    let begun = fabric.now();
    let guard = lock.read().await?;
    let lock_took = fabric.now().picos_since(begun);
    fabric.sleep_until(unlock).await;
    let begun = fabric.now();
    guard.release().await?;
    let unlock_took = fabric.now().picos_since(begun);
    // Others pass words on to this rank's until all are out.
    inside.stay().await?;
    Ok(Wave { lock: lock_took, unlock: unlock_took })
}
