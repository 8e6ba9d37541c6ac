//! Entering: takes the lock, and checks whether the memory is poisoned.

use super::{AcquireError, Element, Excludes, Locked, LockedReadGuard, LockedWriteGuard, error::PoisonError};
use rdma_fabric::{Rank, Time};

/// The outcome of entering.
pub type Entered<G> = Result<G, AcquireError<G>>;

/// Takes the lock, then checks whether the memory is poisoned. This is one block, because the
/// compiler does not inline blocks that await others.
macro_rules! entering {
    ($self:ident, $taking:expr, $guard:ident) => {{
        let guard = match $taking.await {
            Ok(held) => $guard::new($self, held),
            Err(error) => {
                $self.heed(&error);
                return Err(AcquireError::Lock(error));
            }
        };
        match $self.memory.mark().await {
            Ok(0) => Ok(guard),
            outcome => $self.object(guard, outcome),
        }
    }};
}

impl<T: Element, L: Excludes> Locked<T, L> {
    /// Enters with shared access.
    ///
    /// # Errors
    /// [`AcquireError::Lock`] as the lock's `read`; [`AcquireError::Poisoned`] with the guard.
    #[inline]
    pub async fn read(&self) -> Entered<LockedReadGuard<'_, T, L>> {
        entering!(self, self.lock.read(), LockedReadGuard)
    }

    /// Enters with shared access, or gives up at `deadline`.
    ///
    /// # Errors
    /// As [`Locked::read`], and [`crate::LockError::TimedOut`].
    #[inline]
    pub async fn read_before(&self, deadline: Time) -> Entered<LockedReadGuard<'_, T, L>> {
        entering!(self, self.lock.read_before(deadline), LockedReadGuard)
    }

    /// Enters with shared access if that does not require waiting.
    ///
    /// # Errors
    /// As [`Locked::read`].
    pub async fn try_read(&self) -> Entered<Option<LockedReadGuard<'_, T, L>>> {
        match self.heeding(self.lock.try_read().await)? {
            Some(held) => self.check(LockedReadGuard::new(self, held)).await.map(Some).map_err(|e| e.map(Some)),
            None => Ok(None),
        }
    }

    /// Enters with exclusive access.
    ///
    /// # Errors
    /// [`AcquireError::Lock`] as the lock's `write`; [`AcquireError::Poisoned`] with the guard.
    #[inline]
    pub async fn write(&self) -> Entered<LockedWriteGuard<'_, T, L>> {
        entering!(self, self.lock.write(), LockedWriteGuard)
    }

    /// Enters with exclusive access, or gives up at `deadline`.
    ///
    /// # Errors
    /// As [`Locked::write`], and [`crate::LockError::TimedOut`].
    #[inline]
    pub async fn write_before(&self, deadline: Time) -> Entered<LockedWriteGuard<'_, T, L>> {
        entering!(self, self.lock.write_before(deadline), LockedWriteGuard)
    }

    /// Enters with exclusive access if that does not require waiting.
    ///
    /// # Errors
    /// As [`Locked::write`].
    pub async fn try_write(&self) -> Entered<Option<LockedWriteGuard<'_, T, L>>> {
        match self.heeding(self.lock.try_write().await)? {
            Some(held) => self.check(LockedWriteGuard::new(self, held)).await.map(Some).map_err(|e| e.map(Some)),
            None => Ok(None),
        }
    }

    /// Returns the error instead of the guard: the memory is poisoned, or cannot be examined.
    #[cold]
    #[inline(never)]
    fn object<G>(&self, guard: G, outcome: rdma_fabric::Result<u64>) -> Entered<G> {
        let mark = self.noting(outcome)?;
        let by = Rank::new(mark.wrapping_sub(1) as u32);
        Err(AcquireError::Poisoned(PoisonError::new(guard, by)))
    }

    /// Checks whether the memory is poisoned.
    async fn check<G>(&self, guard: G) -> Entered<G> {
        match self.memory.mark().await {
            Ok(0) => Ok(guard),
            outcome => self.object(guard, outcome),
        }
    }
}
