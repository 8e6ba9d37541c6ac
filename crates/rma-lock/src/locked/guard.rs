//! The operations of a holder on the memory.

use super::{Element, Excludes, Locked};
use crate::{Guard, Result, locks::RpLock};
use core::{fmt, ops::Range};
use rdma_fabric::{GetSink, PutSource, Rank};
use std::thread;

/// Shared access to the memory of a [`Locked`]: no writer is inside.
///
/// Dropping it releases the lock in the background, as [`LockedReadGuard::release`] does, without
/// reporting errors.
#[must_use = "a guard that is dropped at once protects nothing"]
pub struct LockedReadGuard<'a, T: Element, L: Excludes = RpLock> {
    pub(super) locked: &'a Locked<T, L>,
    held: L::Shared<'a>,
}

/// Exclusive access to the memory of a [`Locked`]: there is no other holder.
///
/// Dropping it releases the lock in the background, as [`LockedWriteGuard::release`] does, without
/// reporting errors. If it is dropped because its thread panics, the memory is
/// [poisoned](crate::PoisonError).
#[must_use = "a guard that is dropped at once protects nothing"]
pub struct LockedWriteGuard<'a, T: Element, L: Excludes = RpLock> {
    /// Dropped before `held`, whose drop passes the lock on.
    alarm: Alarm<'a, T, L>,
    pub(super) locked: &'a Locked<T, L>,
    held: L::Exclusive<'a>,
}

/// Poisons the memory if it is dropped by a panic that started after its creation.
struct Alarm<'a, T: Element, L: Excludes> {
    locked: &'a Locked<T, L>,
    panicking: bool,
}

impl<T: Element, L: Excludes> Drop for Alarm<'_, T, L> {
    #[inline]
    fn drop(&mut self) {
        if thread::panicking() && !self.panicking {
            self.locked.memory.poison();
        }
    }
}

impl<T: Element, L: Excludes> fmt::Debug for LockedReadGuard<'_, T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {:?}", self.held, self.locked)
    }
}

impl<T: Element, L: Excludes> fmt::Debug for LockedWriteGuard<'_, T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {:?}", self.held, self.locked)
    }
}

macro_rules! reading {
    ($guard:ident) => {
        impl<'a, T: Element, L: Excludes> $guard<'a, T, L> {
            /// Returns the memory and its lock.
            pub fn locked(&self) -> &'a Locked<T, L> {
                self.locked
            }

            /// Copies the elements `range` of `rank`'s part.
            ///
            /// # Errors
            /// [`rdma_fabric::FabricError::OutOfBounds`]; as [`rdma_fabric::Fabric::get`].
            pub async fn get(&self, rank: Rank, range: Range<usize>) -> Result<Vec<T>> {
                self.locked.noting(self.locked.memory.get(rank, range).await)
            }

            /// Copies the elements of `rank`'s part from `start` on into `to`, and returns `to`
            /// when it is filled.
            ///
            /// # Errors
            /// As [`Self::get`].
            pub async fn get_into<D: GetSink<T>>(&self, rank: Rank, start: usize, to: D) -> Result<D> {
                self.locked.noting(self.locked.memory.get_into(rank, start, to).await)
            }
        }
    };
}
reading!(LockedReadGuard);
reading!(LockedWriteGuard);

impl<'a, T: Element, L: Excludes> LockedReadGuard<'a, T, L> {
    #[inline]
    pub(super) fn new(locked: &'a Locked<T, L>, held: L::Shared<'a>) -> Self {
        LockedReadGuard { locked, held }
    }

    /// Releases the lock. If the future is dropped before it is complete, the rest is done in the
    /// background.
    ///
    /// # Errors
    /// As [`Guard::release`] of the lock.
    #[inline]
    pub async fn release(self) -> Result<()> {
        let LockedReadGuard { locked, held } = self;
        match held.release().await {
            Ok(()) => Ok(()),
            Err(error) => {
                locked.heed(&error);
                Err(error)
            }
        }
    }
}

impl<'a, T: Element, L: Excludes> LockedWriteGuard<'a, T, L> {
    #[inline]
    pub(super) fn new(locked: &'a Locked<T, L>, held: L::Exclusive<'a>) -> Self {
        LockedWriteGuard { alarm: Alarm { locked, panicking: thread::panicking() }, locked, held }
    }

    /// Copies `from` into `rank`'s part, starting at element `start`; returns `from` when it is
    /// reusable. The copy is visible to the next holder.
    ///
    /// # Errors
    /// [`rdma_fabric::FabricError::OutOfBounds`]; as [`rdma_fabric::Fabric::put`].
    pub async fn put<S: PutSource<T>>(&mut self, rank: Rank, start: usize, from: S) -> Result<S> {
        self.locked.noting(self.locked.memory.put(rank, start, from).await)
    }

    /// Declares that the memory is consistent again, regardless of which rank poisoned it.
    ///
    /// # Errors
    /// As [`rdma_fabric::Fabric::swap`].
    pub async fn clear_poison(&mut self) -> Result<()> {
        self.locked.noting(self.locked.memory.clear_poison().await)
    }

    /// Makes all puts and stores visible, then releases the lock. If the future is dropped before
    /// it is complete, the rest is done in the background.
    ///
    /// # Errors
    /// As [`Guard::release`] of the lock.
    #[inline]
    pub async fn release(self) -> Result<()> {
        // Declared last, `alarm` is dropped first, both here and if the future is dropped.
        let LockedWriteGuard { locked, held, alarm } = self;
        drop(alarm);
        match held.release().await {
            Ok(()) => Ok(()),
            Err(error) => {
                locked.heed(&error);
                Err(error)
            }
        }
    }
}
