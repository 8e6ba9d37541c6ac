//! Passive target: epochs under the window's lock, of which the target need not know.

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

/// How one rank's memory is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockMode {
    /// With others (`MPI_LOCK_SHARED`).
    Shared,
    /// Alone (`MPI_LOCK_EXCLUSIVE`).
    Exclusive,
}

/// An epoch of one rank's memory, between lock and unlock. It derefs to that rank's [`Target`].
///
/// Dropping it ends it in the background, and reports no errors; an accumulate that is under way
/// then may take effect after the lock has passed on.
#[must_use = "an epoch that is dropped at once allows nothing"]
pub struct LockEpoch<'w, T: Pod, L: AccessLock + 'w> {
    target: Target<'w, T>,
    /// `None` without a lock.
    guard: Option<L::Guard<'w>>,
    _open: OpenEpoch<'w>,
}

/// An epoch of all members' memory.
///
/// Dropping it is as dropping a [`LockEpoch`].
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
    /// Whether a rank may hold the lock shared twice: not where a waiting writer could come
    /// between.
    const NESTS: bool = matches!(L::FAIRNESS, Fairness::ReadersFirst | Fairness::Barging);

    /// Begins an epoch of one rank's memory (`MPI_Win_lock`). What earlier holders put is visible
    /// to gets posted in it. Dropping the future takes back what it has done.
    ///
    /// One exclusive epoch of a window at a time, or shared ones of several ranks (of one, where
    /// [`crate::Lock::FAIRNESS`] puts waiting writers before readers); [`Window::lock_all`] is for
    /// many.
    ///
    /// # Errors
    /// [`crate::WindowError::EpochOpen`]; [`rdma_fabric::FabricError::NotInGroup`]; what the lock
    /// meets.
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

    /// Begins an epoch of one rank's memory without the lock (`MPI_MODE_NOCHECK`): the caller
    /// promises that nobody holds it, or asks for it, in a way that conflicts.
    ///
    /// # Errors
    /// [`crate::WindowError::EpochOpen`]; [`rdma_fabric::FabricError::NotInGroup`].
    pub fn lock_no_check(&self, rank: Rank) -> WindowResult<LockEpoch<'_, T, L>> {
        let open = self.core.open.begin(EpochKind::NoCheck, Self::NESTS)?;
        Ok(LockEpoch { target: Target::new(&self.core, rank)?, guard: None, _open: open })
    }

    /// Begins an epoch of all members' memory, shared (`MPI_Win_lock_all`). Dropping the future
    /// takes back what it has done.
    ///
    /// # Errors
    /// [`crate::WindowError::EpochOpen`]; what the lock meets.
    pub async fn lock_all(&self) -> WindowResult<AllEpoch<'_, T, L>> {
        let open = self.core.open.begin(EpochKind::All, Self::NESTS)?;
        let guard = self.lock.lock(Access::All).await?;
        Ok(AllEpoch { core: &self.core, element: PhantomData, guard: Some(guard), _open: open })
    }

    /// Begins an epoch of all members' memory without the lock, on the promise of
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
    /// Waits until everything that was done to the rank is complete and visible there
    /// (`MPI_Win_flush`).
    ///
    /// # Errors
    /// The first error of an operation that was only begun; [`rdma_fabric::FabricError::PeerLost`].
    pub async fn flush(&self) -> WindowResult<()> {
        Ok(self.target.core.flush(Some(self.target.rank())).await?)
    }

    /// Waits until the buffers of what was begun may be reused, and gets are here
    /// (`MPI_Win_flush_local`).
    ///
    /// # Errors
    /// As [`LockEpoch::flush`].
    pub async fn flush_local(&self) -> WindowResult<()> {
        Ok(self.target.core.flush_local(Some(self.target.rank())).await?)
    }

    /// Ends the epoch: completes everything, makes it visible, and lets go of the lock
    /// (`MPI_Win_unlock`).
    ///
    /// # Errors
    /// As [`LockEpoch::flush`], with the lock let go of all the same; what letting go meets.
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

    /// Waits until everything that was done to `rank` is complete and visible there
    /// (`MPI_Win_flush`).
    ///
    /// # Errors
    /// As [`LockEpoch::flush`].
    pub async fn flush(&self, rank: Rank) -> WindowResult<()> {
        Ok(self.core.flush(Some(rank)).await?)
    }

    /// Waits until everything that was done in the epoch is complete and visible
    /// (`MPI_Win_flush_all`).
    ///
    /// # Errors
    /// As [`LockEpoch::flush`].
    pub async fn flush_all(&self) -> WindowResult<()> {
        Ok(self.core.flush(None).await?)
    }

    /// Waits until the buffers of what was begun at `rank` may be reused, and gets are here
    /// (`MPI_Win_flush_local`).
    ///
    /// # Errors
    /// As [`LockEpoch::flush`].
    pub async fn flush_local(&self, rank: Rank) -> WindowResult<()> {
        Ok(self.core.flush_local(Some(rank)).await?)
    }

    /// Waits until the buffers of all that was begun may be reused, and gets are here
    /// (`MPI_Win_flush_local_all`).
    ///
    /// # Errors
    /// As [`LockEpoch::flush`].
    pub async fn flush_local_all(&self) -> WindowResult<()> {
        Ok(self.core.flush_local(None).await?)
    }

    /// Ends the epoch (`MPI_Win_unlock_all`): completes everything, makes it visible, and lets go
    /// of the lock.
    ///
    /// # Errors
    /// As [`LockEpoch::unlock`].
    pub async fn unlock(mut self) -> WindowResult<()> {
        leave(self.core, None, self.guard.take()).await
    }
}

/// Completes everything, then lets go. A release makes puts visible by itself.
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
        self.target.core.finish_later();
    }
}

impl<T: Pod, L: AccessLock> Drop for AllEpoch<'_, T, L> {
    fn drop(&mut self) {
        self.core.finish_later();
    }
}
