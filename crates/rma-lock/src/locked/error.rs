//! The errors of entering locked memory.

use crate::LockError;
use core::fmt;
use rdma_fabric::Rank;

/// A holder panicked while writing: the memory may be half-changed, and every later holder receives
/// this error until it is [cleared](crate::LockedWriteGuard::clear_poison).
///
/// The error holds the guard, and with it the lock. Dropping it releases the lock.
#[must_use = "it holds the lock"]
pub struct PoisonError<G> {
    guard: G,
    by: Rank,
}

impl<G> PoisonError<G> {
    pub(super) fn new(guard: G, by: Rank) -> Self {
        PoisonError { guard, by }
    }

    /// Returns the guard nevertheless.
    pub fn into_inner(self) -> G {
        self.guard
    }

    /// Returns the guard.
    pub fn get_ref(&self) -> &G {
        &self.guard
    }

    /// Returns the guard.
    pub fn get_mut(&mut self) -> &mut G {
        &mut self.guard
    }

    /// Returns the rank that panicked.
    pub fn by(&self) -> Rank {
        self.by
    }
}

/// The reason why a [`crate::Locked`] did not return a plain guard. `?` converts it to a
/// [`LockError`], or a boxed error, and releases the lock.
#[must_use = "it may hold the lock"]
pub enum AcquireError<G> {
    /// The lock is not held.
    Lock(LockError),
    /// The lock is held, and the memory is poisoned.
    Poisoned(PoisonError<G>),
}

impl<G> AcquireError<G> {
    /// Returns the guard, if the memory is only poisoned.
    ///
    /// # Errors
    /// Any other error.
    pub fn into_inner(self) -> Result<G, LockError> {
        match self {
            AcquireError::Lock(error) => Err(error),
            AcquireError::Poisoned(poisoned) => Ok(poisoned.into_inner()),
        }
    }

    pub(super) fn map<H>(self, f: impl FnOnce(G) -> H) -> AcquireError<H> {
        match self {
            AcquireError::Lock(error) => AcquireError::Lock(error),
            AcquireError::Poisoned(PoisonError { guard, by }) => {
                AcquireError::Poisoned(PoisonError { guard: f(guard), by })
            }
        }
    }
}

impl<G> fmt::Debug for PoisonError<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PoisonError(by {})", self.by)
    }
}

impl<G> fmt::Debug for AcquireError<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AcquireError::Lock(error) => error.fmt(f),
            AcquireError::Poisoned(poisoned) => poisoned.fmt(f),
        }
    }
}

impl<G> From<LockError> for AcquireError<G> {
    fn from(error: LockError) -> Self {
        AcquireError::Lock(error)
    }
}

impl<G> From<AcquireError<G>> for LockError {
    /// Releases the lock.
    fn from(error: AcquireError<G>) -> Self {
        match error {
            AcquireError::Lock(error) => error,
            AcquireError::Poisoned(poisoned) => LockError::Poisoned { by: poisoned.by },
        }
    }
}

impl<G> From<AcquireError<G>> for Box<dyn core::error::Error + Send + Sync> {
    /// Releases the lock.
    fn from(error: AcquireError<G>) -> Self {
        LockError::from(error).into()
    }
}
