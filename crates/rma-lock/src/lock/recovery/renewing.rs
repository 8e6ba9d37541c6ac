//! Late ranks, and epochs that are opened to make room for them: for a lock whose ranks are
//! processes that were started independently.

use super::{RecoverableLock, catching_up::Reason, words::Agreement};
use crate::Result;
use core::future::Future;
use rdma_fabric::{Time, provider::Boxed};

/// The remaining part of a lock's [`Recovery`](super::Recovery) limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// The epoch that is open, or was open last, counted from 0.
    pub epoch: usize,
    /// The number of epochs that can still be opened; 0 if the lock is
    /// [`Unrecoverable`](crate::LockError::Unrecoverable).
    pub epochs: usize,
    /// The number of deaths that can still be recorded.
    pub deaths: usize,
}

impl RecoverableLock {
    /// Returns the remaining part of the lock's limits.
    ///
    /// # Errors
    /// [`crate::LockError::Fabric`], [`crate::LockError::Corrupt`].
    pub fn room(&self) -> impl Future<Output = Result<Room>> {
        self.look_for_room()
    }

    fn look_for_room(&self) -> Boxed<'_, Result<Room>> {
        Box::pin(async move {
            let seen = self.core.agreed().await?;
            let options = &self.core.options;
            let begun = match seen.opened_by(self.core.me, options.epochs).state {
                super::words::State::Opening { next, .. } => next,
                super::words::State::Open | super::words::State::Exhausted => options.epochs,
            };
            let over = seen.state == super::words::State::Exhausted;
            Ok(Room {
                epoch: seen.epoch,
                epochs: if over { 0 } else { options.epochs.saturating_sub(begun) },
                deaths: options.deaths.saturating_sub(seen.deaths),
            })
        })
    }

    /// Starts in the open epoch instead of the first, and returns it: for a process that joins
    /// late. It may reuse the rank of an earlier process if that process left the lock, without
    /// holding it or waiting for it, in an *earlier* epoch ([`RecoverableLock::epoch`]): the words
    /// of this rank in the open epoch are then untouched.
    ///
    /// # Errors
    /// [`crate::LockError::Fabric`], [`crate::LockError::Corrupt`].
    pub fn join(&self) -> impl Future<Output = Result<usize>> {
        self.come_late()
    }

    fn come_late(&self) -> Boxed<'_, Result<usize>> {
        Box::pin(async move {
            let seen = self.core.agreed().await?;
            self.core.come_to(seen).await?;
            Ok(self.core.open().0)
        })
    }

    /// Returns the last epoch that this rank has reached, counted from 0.
    pub fn epoch(&self) -> usize {
        self.core.open().0
    }

    /// Recovers from losses that were reported since `epoch` was opened, without acquiring the
    /// lock. Costs an epoch, unless another rank has already opened the next one.
    ///
    /// # Errors
    /// [`crate::LockError::Unrecoverable`], [`crate::LockError::TimedOut`],
    /// [`crate::LockError::Fabric`], [`crate::LockError::Corrupt`].
    pub fn recover_from(&self, epoch: usize, deadline: Time) -> impl Future<Output = Result<()>> {
        let after: Boxed<'_, Result<()>> =
            Box::pin(async move { self.core.catch_up(epoch, Reason::Loss, deadline).await });
        after
    }
}

impl super::Core {
    /// Returns the current agreement.
    async fn agreed(&self) -> Result<Agreement> {
        Agreement::of_bits(self.fabric.get_word(&self.agreement).await?)
    }
}
