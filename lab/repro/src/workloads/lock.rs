//! Workloads of the lock paper (section 5.2), and waves, in which all ranks lock a whole window at
//! once.

use super::{RankFuture, Together};
use rdma_fabric::{Amo, Fabric, Program, ProgramResult, Rank, Time, op};
use rma_lock::{
    Guard, Lock, RmaLock, RwLock,
    locks::{LockKind, RpLock},
};

/// The home of the lock in every workload of the paper, and in waves.
const HOME: Rank = Rank::new(0);

/// The time of one rank's single fetch-add, in picoseconds (Figs. 11 and 12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchAdd {
    /// Until the operation was posted.
    pub issue: u64,
    /// From then until the arrival of its result ("sync-wait").
    pub wait: u64,
}

impl FetchAdd {
    /// Returns the sum of both parts.
    pub const fn elapsed(self) -> u64 {
        self.issue + self.wait
    }
}

/// Every rank locks and unlocks as a reader, `pairs` times, as fast as it can (Figs. 8 and 10).
///
/// A rank's result is its elapsed time for all pairs, in picoseconds.
///
/// Each rank uses a single future without nesting, because memory limits the largest job.
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

/// The locks whose waves are compared, with their names in tables: each rank accesses the home
/// itself, as in the paper; the same with the packed home word; only the first and the last rank of
/// each node access the home; only the first and the last rank of each group of nodes, of groups of
/// those, and so on.
pub const WAVES: [(LockKind, &str); 4] = [
    (LockKind::ReaderPreference, "flat"),
    (LockKind::Packed, "packed"),
    (LockKind::ByNode, "by node"),
    (LockKind::Tree { radix: 64 }, "tree of 64"),
];

/// The times of one rank's part of a wave, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wave {
    /// To acquire the lock in shared mode.
    pub lock: u64,
    /// To release it.
    pub unlock: u64,
}

/// Returns one rank's part of a wave: all ranks lock at the same time, hold the lock until
/// `unlock`, and unlock at the same time.
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
    // Other ranks write to this rank's words until all have unlocked.
    inside.stay().await?;
    Ok(Wave { lock: lock_took, unlock: unlock_took })
}
