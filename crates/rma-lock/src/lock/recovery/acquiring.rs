//! Takes the lock in the open epoch.

use super::{EpochLock, Recoverable, RecoverableLock, RecoverableReadGuard, RecoverableWriteGuard, Torn};
use crate::{
    Guard, LockError, Result, RmaLock,
    lock::{
        boxed::poll_or_box,
        counted::{ReadGuard, WriteGuard},
    },
};
use core::{
    convert::identity,
    future::{Future, ready},
    task::Context,
};
use rdma_fabric::{Time, fast_path::fast_path, provider::Boxed};

/// Whether an acquisition takes a lock whose data may be torn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Whole,
    Torn,
}

/// Boxes an error that occurred immediately, as the outcome of the first attempt.
#[cold]
fn failed<'a, T: Send + 'a>(error: LockError) -> Boxed<'a, Result<T>> {
    Box::pin(ready(Err(error)))
}

impl RecoverableLock {
    /// Takes the lock shared. The puts of earlier writers are visible to gets posted afterwards.
    /// Without a writer inside this costs 1 remote atomic.
    ///
    /// # Errors
    /// [`LockError::Torn`]; [`LockError::Unrecoverable`]; [`LockError::Fabric`], where
    /// [`rdma_fabric::FabricError::PeerLost`] means the loss of the home; otherwise as
    /// [`crate::locks::PackedLock::read`].
    #[inline]
    pub fn read(&self) -> impl Future<Output = Result<RecoverableReadGuard<'_>>> {
        self.read_before(Time::MAX)
    }

    /// Takes the lock shared, or gives up at `deadline`. A recovery that this rank has started is
    /// completed in the background.
    ///
    /// # Errors
    /// As [`RecoverableLock::read`], and [`LockError::TimedOut`].
    #[inline]
    pub fn read_before(&self, deadline: Time) -> impl Future<Output = Result<RecoverableReadGuard<'_>>> {
        let first = move |cx: &mut Context<'_>| {
            let (epoch, lock) = self.core.open();
            Err(self.read_slow(
                epoch,
                deadline,
                match poll_or_box(lock.read_before(deadline), cx) {
                    Ok(Ok(guard)) => return Ok(Ok(RecoverableReadGuard::new(guard))),
                    Ok(Err(error)) => failed(error),
                    Err(rest) => rest,
                },
            ))
        };
        fast_path(first, identity)
    }

    /// Continues after an attempt in `epoch`.
    fn read_slow<'a>(
        &'a self,
        mut epoch: usize,
        deadline: Time,
        first: Boxed<'a, Result<ReadGuard<'a, Recoverable>>>,
    ) -> Boxed<'a, Result<RecoverableReadGuard<'a>>> {
        Box::pin(async move {
            let mut attempt = first.await;
            loop {
                match attempt {
                    Ok(guard) => return Ok(RecoverableReadGuard::new(guard)),
                    Err(error) => self.core.resume(epoch, error, deadline).await?,
                }
                let (open, lock) = self.core.open();
                epoch = open;
                attempt = lock.read_before(deadline).await;
            }
        })
    }

    /// Takes the lock shared if no writer is inside.
    ///
    /// # Errors
    /// As [`RecoverableLock::read`].
    #[inline]
    pub fn try_read(&self) -> impl Future<Output = Result<Option<RecoverableReadGuard<'_>>>> {
        let first = move |cx: &mut Context<'_>| {
            let (epoch, lock) = self.core.open();
            Err(self.try_read_slow(
                epoch,
                lock,
                match poll_or_box(lock.try_read(), cx) {
                    Ok(Ok(Some(guard))) => return Ok(Ok(Some(RecoverableReadGuard::new(guard)))),
                    Ok(Ok(None)) => Box::pin(ready(Ok(None))),
                    Ok(Err(error)) => failed(error),
                    Err(rest) => rest,
                },
            ))
        };
        fast_path(first, identity)
    }

    /// Continues after an attempt in `epoch`.
    fn try_read_slow<'a>(
        &'a self,
        mut epoch: usize,
        mut lock: &'a EpochLock,
        first: Boxed<'a, Result<Option<ReadGuard<'a, Recoverable>>>>,
    ) -> Boxed<'a, Result<Option<RecoverableReadGuard<'a>>>> {
        Box::pin(async move {
            let mut attempt = first.await;
            loop {
                match attempt {
                    Ok(Some(guard)) => return Ok(Some(RecoverableReadGuard::new(guard))),
                    Ok(None) if !self.core.is_shut(epoch, lock).await? => return Ok(None),
                    Ok(None) => {}
                    Err(error) => self.core.resume(epoch, error, Time::MAX).await?,
                }
                (epoch, lock) = self.core.open();
                attempt = lock.try_read().await;
            }
        })
    }

    /// Takes the lock exclusively. The puts of earlier holders are visible to gets posted
    /// afterwards. On an idle lock this costs the remote atomics of
    /// [`crate::locks::PackedLock::write`] and a get.
    ///
    /// # Errors
    /// As [`RecoverableLock::read`].
    #[inline]
    pub fn write(&self) -> impl Future<Output = Result<RecoverableWriteGuard<'_>>> {
        self.write_before(Time::MAX)
    }

    /// Takes the lock exclusively, or gives up at `deadline`. A recovery that this rank has started
    /// is completed in the background.
    ///
    /// # Errors
    /// As [`RecoverableLock::write`], and [`LockError::TimedOut`].
    #[inline]
    pub fn write_before(&self, deadline: Time) -> impl Future<Output = Result<RecoverableWriteGuard<'_>>> {
        let first = move |cx: &mut Context<'_>| {
            let (epoch, lock) = self.core.open();
            Err(match poll_or_box(lock.write_before(deadline), cx) {
                Ok(Ok(guard)) if guard.lock().is_whole_now() => {
                    return Ok(Ok(RecoverableWriteGuard::new(&self.core, guard, None)));
                }
                Ok(Ok(guard)) => Box::pin(self.checked(guard, Takes::Whole)),
                Ok(Err(error)) => self.exclusive(Takes::Whole, deadline, Some((epoch, failed(error)))),
                Err(rest) => self.exclusive(Takes::Whole, deadline, Some((epoch, rest))),
            })
        };
        fast_path(first, identity)
    }

    /// Takes the lock exclusively even if its data may be torn, in order to examine it:
    /// [`RecoverableWriteGuard::torn`] returns whether it may be. Once the data is consistent
    /// again, declare so with [`RecoverableWriteGuard::clear_torn`].
    ///
    /// # Errors
    /// As [`RecoverableLock::write`], but never [`LockError::Torn`].
    pub fn mend(&self) -> impl Future<Output = Result<RecoverableWriteGuard<'_>>> {
        self.mend_before(Time::MAX)
    }

    /// Takes the lock as [`RecoverableLock::mend`] does, or gives up at `deadline`.
    ///
    /// # Errors
    /// As [`RecoverableLock::mend`], and [`LockError::TimedOut`].
    pub fn mend_before(&self, deadline: Time) -> impl Future<Output = Result<RecoverableWriteGuard<'_>>> {
        self.exclusive(Takes::Torn, deadline, None)
    }

    /// Takes the lock exclusively if no rank is inside or waits to write.
    ///
    /// # Errors
    /// As [`RecoverableLock::write`].
    pub fn try_write(&self) -> impl Future<Output = Result<Option<RecoverableWriteGuard<'_>>>> {
        self.try_exclusive()
    }

    fn try_exclusive(&self) -> Boxed<'_, Result<Option<RecoverableWriteGuard<'_>>>> {
        Box::pin(async move {
            loop {
                let (epoch, lock) = self.core.open();
                match lock.try_write().await {
                    Ok(None) if !self.core.is_shut(epoch, lock).await? => return Ok(None),
                    Ok(None) => {}
                    Ok(Some(guard)) => return self.checked(guard, Takes::Whole).await.map(Some),
                    Err(error) => self.core.resume(epoch, error, Time::MAX).await?,
                }
            }
        })
    }

    /// Takes the lock exclusively; continues after an attempt in an epoch, if there was one.
    fn exclusive<'a>(
        &'a self,
        takes: Takes,
        deadline: Time,
        first: Option<(usize, Boxed<'a, Result<WriteGuard<'a, Recoverable>>>)>,
    ) -> Boxed<'a, Result<RecoverableWriteGuard<'a>>> {
        Box::pin(async move {
            let (mut epoch, mut lock) = self.core.open();
            let mut attempt = match first {
                Some((began, first)) => {
                    epoch = began;
                    first.await
                }
                None => lock.write_before(deadline).await,
            };
            loop {
                match attempt {
                    Ok(guard) => return self.checked(guard, takes).await,
                    Err(error) => self.core.resume(epoch, error, deadline).await?,
                }
                (epoch, lock) = self.core.open();
                attempt = lock.write_before(deadline).await;
            }
        })
    }

    /// Checks whether the data are torn.
    async fn checked<'a>(
        &'a self,
        guard: WriteGuard<'a, Recoverable>,
        takes: Takes,
    ) -> Result<RecoverableWriteGuard<'a>> {
        let torn = if guard.lock().shut().await?.torn { Some(self.core.torn().await?) } else { None };
        match torn {
            Some(Torn { by }) if takes == Takes::Whole => {
                guard.release().await?;
                Err(LockError::Torn { by })
            }
            torn => Ok(RecoverableWriteGuard::new(&self.core, guard, torn)),
        }
    }
}
