//! Workloads of the lock paper (section 5.2), and waves, in which all ranks lock a whole window at
//! once.

use super::{RankFuture, Together};
use rdma_fabric::{Amo, Fabric, Program, ProgramResult, Rank, Time, op};
use rma_lock::{
    Access, AccessLock, Guard, Lock, LockMode, RmaLock, RwLock, Window,
    locks::{EachLock, LockKind, OneLock, RpLock},
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
        // Boxed: only the home is long in it.
        Box::pin(inside.leave(HOME)).await?;
        Ok(elapsed)
    }
}

/// The same through a window, as on FX10: `MPI_Win_lock` of the home's memory in shared mode, then
/// `MPI_Win_unlock` (Fig. 9).
pub async fn window_pairs(fabric: Fabric, pairs: u32, together: Together) -> ProgramResult<u64> {
    let window = Window::<u64, OneLock<RpLock>>::allocate(&fabric, 1).await?;
    let inside = together.enter(&fabric).await?;
    let begun = fabric.now();
    for _ in 0..pairs {
        window.lock(LockMode::Shared, HOME).await?.unlock().await?;
    }
    let elapsed = fabric.now().picos_since(begun);
    inside.leave(HOME).await?;
    Ok(elapsed)
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

/// The lock of a wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaveLock {
    /// One lock for the window.
    One(LockKind),
    /// The paper's lock once for each rank, all taken one after another: `lock_all` of Li and
    /// others, which does not scale (the paper's introduction).
    EachRank,
}

impl WaveLock {
    /// Returns the maximum number of ranks: a wave of locks for each rank takes P² locks.
    pub const fn max_ranks(self) -> u32 {
        match self {
            WaveLock::One(_) => u32::MAX,
            WaveLock::EachRank => 256,
        }
    }
}

/// The locks whose waves are compared, with their names in tables: each rank accesses the home
/// itself, as in the paper; the same with the packed home word; only the first and the last rank of
/// each node access the home; only the first and the last rank of each group of nodes, of groups of
/// those, and so on; a lock for each rank.
pub const WAVES: [(WaveLock, &str); 5] = [
    (WaveLock::One(LockKind::ReaderPreference), "flat"),
    (WaveLock::One(LockKind::Packed), "packed"),
    (WaveLock::One(LockKind::ByNode), "by node"),
    (WaveLock::One(LockKind::Tree { radix: 64 }), "tree of 64"),
    (WaveLock::EachRank, "each rank"),
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
pub fn wave(fabric: Fabric, lock: WaveLock, together: Together, unlock: Time) -> RankFuture<Wave> {
    match lock {
        WaveLock::One(kind) => Box::pin(pass::<OneLock<RwLock>>(fabric, kind.into(), together, unlock)),
        WaveLock::EachRank => Box::pin(pass::<EachLock<RpLock>>(fabric, Default::default(), together, unlock)),
    }
}

async fn pass<L: AccessLock>(
    fabric: Fabric,
    options: L::Options,
    together: Together,
    unlock: Time,
) -> ProgramResult<Wave> {
    let lock = L::symmetric_with(&fabric, HOME, options).await?;
    let inside = together.enter(&fabric).await?;
    let begun = fabric.now();
    let guard = lock.lock(Access::All).await?;
    let lock_took = fabric.now().picos_since(begun);
    fabric.sleep_until(unlock).await;
    let begun = fabric.now();
    guard.release().await?;
    let unlock_took = fabric.now().picos_since(begun);
    // Other ranks write to this rank's words until all have unlocked.
    inside.stay().await?;
    Ok(Wave { lock: lock_took, unlock: unlock_took })
}
