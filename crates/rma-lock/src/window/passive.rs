//! Passive target: epochs under the window's lock, without any action of the target.

use super::{
    Window,
    core::Core,
    epochs::{EpochKind, OpenEpoch},
    error::WindowResult,
    target::Target,
};
use crate::{Access, AccessLock, Fairness, Guard};
use core::{fmt, marker::PhantomData, ops::Deref};
use rdma_fabric::{Pod, Rank};
use std::sync::Arc;

/// The mode of access to one rank's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockMode {
    /// Shared with others (`MPI_LOCK_SHARED`).
    Shared,
    /// Exclusive (`MPI_LOCK_EXCLUSIVE`).
    Exclusive,
}

/// An epoch of one rank's memory, between lock and unlock. It dereferences to that rank's
/// [`Target`].
///
/// Dropping it ends the epoch in the background, without reporting errors; an accumulate in flight
/// at that moment may take effect after the lock has been passed on.
#[must_use = "an epoch that is dropped at once allows nothing"]
pub struct LockEpoch<'w, T: Pod, L: AccessLock + 'w> {
    target: Target<'w, T>,
    /// `None` without a lock.
    guard: Option<L::Guard<'w>>,
    _open: OpenEpoch<'w>,
}

/// An epoch of all members' memory.
///
/// Dropping it works as for a [`LockEpoch`].
#[must_use = "an epoch that is dropped at once allows nothing"]
pub struct AllEpoch<'w, T: Pod, L: AccessLock + 'w> {
    core: &'w Arc<Core>,
    element: PhantomData<fn() -> T>,
    /// `None` without a lock.
    guard: Option<L::Guard<'w>>,
    _open: OpenEpoch<'w>,
}

impl<T: Pod, L: AccessLock> fmt::Debug for LockEpoch<'_, T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LockEpoch({:?}, {:?})", self.target, self.guard)
    }
}

impl<T: Pod, L: AccessLock> fmt::Debug for AllEpoch<'_, T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AllEpoch({:?})", self.guard)
    }
}

impl<T: Pod, L: AccessLock> Window<T, L> {
    /// Whether a rank may hold the lock shared twice: not if a waiting writer could enter in
    /// between.
    const NESTS: bool = matches!(L::FAIRNESS, Fairness::ReadersFirst | Fairness::Barging);

    /// Starts an epoch of one rank's memory (`MPI_Win_lock`). The puts of earlier holders are
    /// visible to gets posted in it. Dropping the future undoes its effects.
    ///
    /// A rank has one exclusive epoch of a window at a time, or shared epochs of several ranks (of
    /// one rank only, if [`crate::Lock::FAIRNESS`] gives waiting writers priority over readers);
    /// [`Window::lock_all`] is for many ranks.
    ///
    /// # Errors
    /// [`crate::WindowError::EpochOpen`]; [`rdma_fabric::FabricError::NotInGroup`]; errors of the
    /// lock.
    pub async fn lock(&self, kind: LockMode, rank: Rank) -> WindowResult<LockEpoch<'_, T, L>> {
        let (asked, access) = match kind {
            LockMode::Shared => (EpochKind::Shared, Access::Shared(rank)),
            LockMode::Exclusive => (EpochKind::Exclusive, Access::Exclusive(rank)),
        };
        let open = self.core.open.begin(asked, Self::NESTS)?;
        let target = Target::new(&self.core, rank)?;
        let guard = self.lock.lock(access).await?;
        Ok(LockEpoch { target, guard: Some(guard), _open: open })
    }

    /// Starts an epoch of one rank's memory without taking the lock (`MPI_MODE_NOCHECK`): the
    /// caller guarantees that no rank holds or requests it in a conflicting mode.
    ///
    /// # Errors
    /// [`crate::WindowError::EpochOpen`]; [`rdma_fabric::FabricError::NotInGroup`].
    pub fn lock_no_check(&self, rank: Rank) -> WindowResult<LockEpoch<'_, T, L>> {
        let open = self.core.open.begin(EpochKind::NoCheck, Self::NESTS)?;
        Ok(LockEpoch { target: Target::new(&self.core, rank)?, guard: None, _open: open })
    }

    /// Starts a shared epoch of all members' memory (`MPI_Win_lock_all`). Dropping the future
    /// undoes its effects.
    ///
    /// # Errors
    /// [`crate::WindowError::EpochOpen`]; errors of the lock.
    pub async fn lock_all(&self) -> WindowResult<AllEpoch<'_, T, L>> {
        let open = self.core.open.begin(EpochKind::All, Self::NESTS)?;
        let guard = self.lock.lock(Access::All).await?;
        Ok(AllEpoch { core: &self.core, element: PhantomData, guard: Some(guard), _open: open })
    }

    /// Starts an epoch of all members' memory without taking the lock, under the guarantee of
    /// [`Window::lock_no_check`].
    ///
    /// # Errors
    /// [`crate::WindowError::EpochOpen`].
    pub fn lock_all_no_check(&self) -> WindowResult<AllEpoch<'_, T, L>> {
        let open = self.core.open.begin(EpochKind::NoCheck, Self::NESTS)?;
        Ok(AllEpoch { core: &self.core, element: PhantomData, guard: None, _open: open })
    }
}

impl<'w, T: Pod, L: AccessLock> Deref for LockEpoch<'w, T, L> {
    type Target = Target<'w, T>;

    fn deref(&self) -> &Target<'w, T> {
        &self.target
    }
}

impl<T: Pod, L: AccessLock> LockEpoch<'_, T, L> {
    /// Waits until all operations on the rank's memory are complete and visible there
    /// (`MPI_Win_flush`).
    ///
    /// # Errors
    /// The first error of an operation whose completion was not awaited;
    /// [`rdma_fabric::FabricError::PeerLost`].
    pub async fn flush(&self) -> WindowResult<()> {
        Ok(self.target.core.flush(Some(self.target.rank())).await?)
    }

    /// Waits until the buffers of all started operations may be reused and the results of gets have
    /// arrived (`MPI_Win_flush_local`).
    ///
    /// # Errors
    /// As [`LockEpoch::flush`].
    pub async fn flush_local(&self) -> WindowResult<()> {
        Ok(self.target.core.flush_local(Some(self.target.rank())).await?)
    }

    /// Ends the epoch: completes all operations, makes them visible, and releases the lock
    /// (`MPI_Win_unlock`).
    ///
    /// # Errors
    /// As [`LockEpoch::flush`], in which case the lock is still released; errors of the release.
    pub async fn unlock(mut self) -> WindowResult<()> {
        leave(self.target.core, Some(self.target.rank()), self.guard.take()).await
    }
}

impl<T: Pod, L: AccessLock> AllEpoch<'_, T, L> {
    /// Returns a member's memory. Cheap, but not free: keep it for several operations.
    ///
    /// # Errors
    /// [`rdma_fabric::FabricError::NotInGroup`], [`rdma_fabric::FabricError::StaleRegion`],
    /// [`rdma_fabric::FabricError::PeerLost`].
    pub fn at(&self, rank: Rank) -> WindowResult<Target<'_, T>> {
        Ok(Target::new(self.core, rank)?)
    }

    /// Waits until all operations on `rank`'s memory are complete and visible there
    /// (`MPI_Win_flush`).
    ///
    /// # Errors
    /// As [`LockEpoch::flush`].
    pub async fn flush(&self, rank: Rank) -> WindowResult<()> {
        Ok(self.core.flush(Some(rank)).await?)
    }

    /// Waits until all operations of the epoch are complete and visible (`MPI_Win_flush_all`).
    ///
    /// # Errors
    /// As [`LockEpoch::flush`].
    pub async fn flush_all(&self) -> WindowResult<()> {
        Ok(self.core.flush(None).await?)
    }

    /// Waits until the buffers of all operations started at `rank` may be reused and the results of
    /// gets have arrived (`MPI_Win_flush_local`).
    ///
    /// # Errors
    /// As [`LockEpoch::flush`].
    pub async fn flush_local(&self, rank: Rank) -> WindowResult<()> {
        Ok(self.core.flush_local(Some(rank)).await?)
    }

    /// Waits until the buffers of all started operations may be reused and the results of gets have
    /// arrived (`MPI_Win_flush_local_all`).
    ///
    /// # Errors
    /// As [`LockEpoch::flush`].
    pub async fn flush_local_all(&self) -> WindowResult<()> {
        Ok(self.core.flush_local(None).await?)
    }

    /// Ends the epoch (`MPI_Win_unlock_all`): completes all operations, makes them visible, and
    /// releases the lock.
    ///
    /// # Errors
    /// As [`LockEpoch::unlock`].
    pub async fn unlock(mut self) -> WindowResult<()> {
        leave(self.core, None, self.guard.take()).await
    }
}

/// Completes all operations, then releases the guard. A release itself makes puts visible.
async fn leave(core: &Core, rank: Option<Rank>, guard: Option<impl Guard>) -> WindowResult<()> {
    match guard {
        None => Ok(core.flush(rank).await?),
        Some(guard) => {
            let quiesced = core.in_flight.quiesce(&core.fabric, rank).await;
            guard.release().await?;
            Ok(quiesced?)
        }
    }
}

impl<T: Pod, L: AccessLock> Drop for LockEpoch<'_, T, L> {
    fn drop(&mut self) {
        self.target.core.finish_slow();
    }
}

impl<T: Pod, L: AccessLock> Drop for AllEpoch<'_, T, L> {
    fn drop(&mut self) {
        self.core.finish_slow();
    }
}
