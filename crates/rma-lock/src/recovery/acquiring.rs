//! Taking the lock, in whichever epoch is open.

use super::{
    Core, EpochLock, Recoverable, RecoverableLock, RecoverableReadGuard, RecoverableWriteGuard,
    catching_up::Reason,
    guard::Torn,
    words::{Agreement, State},
};
use crate::{
    LockError, Result,
    counted::{ReadGuard, WriteGuard},
    detach::before,
    in_place::{poll_once, poll_or_box},
};
use core::future::{Future, ready};
use rdma_fabric::{Deps, FabricError, Rank, Time, provider::Boxed};
use std::sync::Arc;

/// Whether an acquisition takes a lock whose data may be torn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Whole,
    Torn,
}

/// Boxes an error that came at once, as the end of the first attempt.
#[cold]
fn failed<'a, T: Send + 'a>(error: LockError) -> Boxed<'a, Result<T>> {
    Box::pin(ready(Err(error)))
}

impl RecoverableLock {
    /// Takes the lock shared. What earlier writers put is visible to gets posted afterwards. Without a writer inside this is 1 remote
    /// atomic.
    ///
    /// # Errors
    /// [`LockError::Torn`]; [`LockError::Unrecoverable`]; [`LockError::Fabric`], where [`FabricError::PeerLost`] names the home; else as
    /// [`crate::locks::PackedLock::read`].
    #[inline]
    pub fn read(&self) -> impl Future<Output = Result<RecoverableReadGuard<'_>>> {
        self.read_before(Time::MAX)
    }

    /// Takes the lock shared, or gives up at `deadline`. A recovery that this rank has begun is finished in the background.
    ///
    /// # Errors
    /// As [`RecoverableLock::read`], and [`LockError::TimedOut`].
    #[inline]
    pub fn read_before(&self, deadline: Time) -> impl Future<Output = Result<RecoverableReadGuard<'_>>> {
        poll_once(move |cx| {
            let (epoch, lock) = self.core.open();
            Err(self.read_later(
                epoch,
                deadline,
                match poll_or_box(lock.read_before(deadline), cx) {
                    Ok(Ok(guard)) => return Ok(Ok(RecoverableReadGuard::new(guard))),
                    Ok(Err(error)) => failed(error),
                    Err(rest) => rest,
                },
            ))
        })
    }

    /// Goes on from an attempt in `epoch`.
    fn read_later<'a>(
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
                    Err(error) => self.core.go_on(epoch, error, deadline).await?,
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
        poll_once(move |cx| {
            let (epoch, lock) = self.core.open();
            Err(self.try_read_later(
                epoch,
                lock,
                match poll_or_box(lock.try_read(), cx) {
                    Ok(Ok(Some(guard))) => return Ok(Ok(Some(RecoverableReadGuard::new(guard)))),
                    Ok(Ok(None)) => Box::pin(ready(Ok(None))),
                    Ok(Err(error)) => failed(error),
                    Err(rest) => rest,
                },
            ))
        })
    }

    /// Goes on from an attempt in `epoch`.
    fn try_read_later<'a>(
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
                    Err(error) => self.core.go_on(epoch, error, Time::MAX).await?,
                }
                (epoch, lock) = self.core.open();
                attempt = lock.try_read().await;
            }
        })
    }

    /// Takes the lock exclusively. What earlier holders put is visible to gets posted afterwards. On an idle lock this is the remote
    /// atomics of [`crate::locks::PackedLock::write`], and a get.
    ///
    /// # Errors
    /// As [`RecoverableLock::read`].
    #[inline]
    pub fn write(&self) -> impl Future<Output = Result<RecoverableWriteGuard<'_>>> {
        self.write_before(Time::MAX)
    }

    /// Takes the lock exclusively, or gives up at `deadline`. A recovery that this rank has begun is finished in the background.
    ///
    /// # Errors
    /// As [`RecoverableLock::write`], and [`LockError::TimedOut`].
    #[inline]
    pub fn write_before(&self, deadline: Time) -> impl Future<Output = Result<RecoverableWriteGuard<'_>>> {
        poll_once(move |cx| {
            let (epoch, lock) = self.core.open();
            Err(match poll_or_box(lock.write_before(deadline), cx) {
                Ok(Ok(guard)) if guard.lock().is_whole_now() => {
                    return Ok(Ok(RecoverableWriteGuard::new(&self.core, guard, None)));
                }
                Ok(Ok(guard)) => Box::pin(self.checked(guard, Takes::Whole)),
                Ok(Err(error)) => self.exclusive(Takes::Whole, deadline, Some((epoch, failed(error)))),
                Err(rest) => self.exclusive(Takes::Whole, deadline, Some((epoch, rest))),
            })
        })
    }

    /// Takes the lock exclusively though its data may be torn, to look at them: [`RecoverableWriteGuard::torn`] says whether. If they are
    /// whole again, say so by [`RecoverableWriteGuard::clear_torn`].
    ///
    /// # Errors
    /// As [`RecoverableLock::write`], never [`LockError::Torn`].
    pub fn mend(&self) -> impl Future<Output = Result<RecoverableWriteGuard<'_>>> {
        self.exclusive(Takes::Torn, Time::MAX, None)
    }

    /// Takes the lock exclusively if nobody is inside or waits to write.
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
                    Err(error) => self.core.go_on(epoch, error, Time::MAX).await?,
                }
            }
        })
    }

    /// Takes the lock exclusively, going on from an attempt in an epoch if there was one.
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
                    Err(error) => self.core.go_on(epoch, error, deadline).await?,
                }
                (epoch, lock) = self.core.open();
                attempt = lock.write_before(deadline).await;
            }
        })
    }

    /// Looks whether the data are torn.
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

    /// `rank` is suspected to have died, or to hold the lock and never to let go, but that is not proven: what the lock protects counts as torn from now on.
    /// Nothing is taken from anybody; who waits goes on waiting.
    ///
    /// # Errors
    /// [`LockError::Fabric`].
    pub fn suspect(&self, rank: Rank) -> impl Future<Output = Result<()>> {
        self.tear(rank)
    }

    fn tear(&self, by: Rank) -> Boxed<'_, Result<()>> {
        Box::pin(self.core.tear(by))
    }
}

impl Core {
    /// An acquisition in `epoch` ended with `error`: come to the epoch in which to try again, or say why there is none.
    async fn go_on(self: &Arc<Self>, epoch: usize, error: LockError, deadline: Time) -> Result<()> {
        let reason = match &error {
            kept_out if *kept_out == LockError::KEPT_OUT => Reason::Closed,
            LockError::Fabric(cause) => match cause.gone().filter(|rank| *rank != self.home) {
                Some(_) if matches!(cause, FabricError::PeerLost { .. }) => Reason::Loss,
                Some(rank) => match self.why_gone(epoch, rank, deadline).await? {
                    Some(reason) => reason,
                    None => return Err(error),
                },
                None => return Err(error),
            },
            _ => return Err(error),
        };
        if reason == Reason::Closed {
            let seen = Agreement::of_bits(self.fabric.get_word(&self.agreement).await?)?;
            if seen.state == State::Open && seen.epoch == epoch {
                return Err(LockError::Torn { by: self.torn().await?.by });
            }
        }
        self.catch_up(epoch, reason, deadline).await
    }

    /// `rank` has dropped its part of the lock while this one acquired in `epoch`: it may have left when that was closed already, or is about to be lost.
    /// `None` if it has left an epoch that is open.
    async fn why_gone(&self, epoch: usize, rank: Rank, deadline: Time) -> Result<Option<Reason>> {
        let seen = Agreement::of_bits(self.fabric.get_word(&self.agreement).await?)?;
        if (seen.state, seen.epoch) != (State::Open, epoch) {
            return Ok(Some(Reason::Closed));
        }
        let end = self.fabric.wait_until(&self.doorbell, Deps::One(rank), |rung| rung > epoch as u64);
        match before(&self.fabric, deadline, end).await {
            None => Err(LockError::TimedOut),
            Some(Ok(_)) => Ok(Some(Reason::Closed)),
            Some(Err(FabricError::PeerLost { rank: lost })) if lost == rank => Ok(Some(Reason::Loss)),
            Some(Err(FabricError::PeersLeft)) => Ok(None),
            Some(Err(error)) => Err(error.into()),
        }
    }

    /// A try was refused in `epoch`. Not because the epoch is over: then this comes to the next one first, and it is worth another try.
    async fn is_shut(self: &Arc<Self>, epoch: usize, lock: &EpochLock) -> Result<bool> {
        let shut = lock.shut().await?;
        if shut.torn {
            return Err(LockError::Torn { by: self.torn().await?.by });
        }
        if shut.closed {
            self.catch_up(epoch, Reason::Closed, Time::MAX).await?;
        }
        Ok(shut.closed)
    }

    /// Who tore what the lock protects, if it is torn.
    async fn torn(&self) -> Result<Torn> {
        match self.fabric.get_word(&self.torn_by).await? {
            0 => Err(LockError::corrupt("torn by", 0)),
            by => Ok(Torn { by: Rank::new((by - 1) as u32) }),
        }
    }

    /// Before what the lock protects is marked as torn.
    pub(crate) async fn say_who_tore(&self, by: Rank) -> Result<()> {
        self.fabric.put_word(&self.torn_by, 1 + u64::from(by.number())).await?;
        self.fabric.flush(self.home).await?;
        Ok(())
    }

    /// Mark as whole what the lock protects. This rank is inside in the epoch of `held`.
    pub(super) async fn make_whole(self: &Arc<Self>, held: &EpochLock) -> Result<()> {
        let mut closed = held.mark_whole().await?;
        // Who closed the epoch before may have found it torn, and carried that over. In the next one a stand-in of this rank is inside.
        while closed {
            let seen = Agreement::of_bits(self.fabric.get_word(&self.agreement).await?)?;
            match seen.state {
                State::Opening { next, by } => self.await_opening(seen, next, by, Time::MAX).await?,
                State::Open => {
                    self.come_to(seen).await?;
                    closed = self.open().1.mark_whole().await?;
                }
                State::Over => return Ok(()),
            }
        }
        Ok(())
    }

    /// Mark as torn what the lock protects, in the epoch that is open.
    async fn tear(self: &Arc<Self>, by: Rank) -> Result<()> {
        self.say_who_tore(by).await?;
        let mut seen = Agreement::of_bits(self.fabric.get_word(&self.agreement).await?)?;
        loop {
            self.come_to(seen).await?;
            self.open().1.mark_torn().await?;
            // Who has closed this epoch before may have missed it.
            match (seen.state, Agreement::of_bits(self.fabric.get_word(&self.agreement).await?)?) {
                (State::Open | State::Over, after) if after.epoch == seen.epoch => return Ok(()),
                (State::Opening { next, by }, after) if after == seen => {
                    self.await_opening(seen, next, by, Time::MAX).await?
                }
                (_, after) => seen = after,
            }
        }
    }
}
