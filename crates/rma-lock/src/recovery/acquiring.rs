//! Taking the lock, in whichever epoch is open.

use super::{
    EpochLock, RecoverableLock, RecoverableReadGuard, RecoverableWriteGuard, Survivor,
    agreement::{Agreement, State},
    catching_up::Reason,
    guard::Torn,
};
use crate::{LockError, Result, WriteGuard, recovery::Surviving};
use core::future::Future;
use rdma_fabric::{Deps, FabricError, Rank, Time};
use std::sync::Arc;

/// Whether an acquisition takes a lock whose data may be torn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Whole,
    Torn,
}

impl RecoverableLock {
    /// Take the lock shared. What earlier writers put is visible to gets posted afterwards. Without a writer inside this is 1 remote atomic.
    ///
    /// # Errors
    /// [`LockError::Torn`]; [`LockError::Unrecoverable`]; [`LockError::Fabric`], where [`FabricError::PeerLost`] names the home; else as
    /// [`crate::PackedLock::read`].
    pub fn read(&self) -> impl Future<Output = Result<RecoverableReadGuard<'_>>> {
        self.read_before(Time::MAX)
    }

    /// The same, or give up at `deadline`. A recovery that this rank has begun is finished in the background.
    ///
    /// # Errors
    /// As [`RecoverableLock::read`], and [`LockError::TimedOut`].
    pub async fn read_before(&self, deadline: Time) -> Result<RecoverableReadGuard<'_>> {
        loop {
            let (epoch, lock) = self.core.open();
            match lock.read_before(deadline).await {
                Ok(guard) => return Ok(RecoverableReadGuard::new(guard)),
                Err(error) => self.core.go_on(epoch, error, deadline).await?,
            }
        }
    }

    /// Take the lock shared if no writer is inside.
    ///
    /// # Errors
    /// As [`RecoverableLock::read`].
    pub async fn try_read(&self) -> Result<Option<RecoverableReadGuard<'_>>> {
        loop {
            let (epoch, lock) = self.core.open();
            match lock.try_read().await {
                Ok(Some(guard)) => return Ok(Some(RecoverableReadGuard::new(guard))),
                Ok(None) if !self.core.is_shut(epoch, lock).await? => return Ok(None),
                Ok(None) => {}
                Err(error) => self.core.go_on(epoch, error, Time::MAX).await?,
            }
        }
    }

    /// Take the lock exclusively. What earlier holders put is visible to gets posted afterwards. On an idle lock this is the remote atomics
    /// of [`crate::PackedLock::write`], and a get.
    ///
    /// # Errors
    /// As [`RecoverableLock::read`].
    pub fn write(&self) -> impl Future<Output = Result<RecoverableWriteGuard<'_>>> {
        self.write_before(Time::MAX)
    }

    /// The same, or give up at `deadline`, as [`RecoverableLock::read_before`].
    ///
    /// # Errors
    /// As [`RecoverableLock::write`], and [`LockError::TimedOut`].
    pub fn write_before(&self, deadline: Time) -> impl Future<Output = Result<RecoverableWriteGuard<'_>>> {
        self.exclusive(Takes::Whole, deadline)
    }

    /// Take the lock exclusively though its data may be torn, to look at them: [`RecoverableWriteGuard::torn`] says whether. If they are whole again, say so by
    /// [`RecoverableWriteGuard::clear_torn`].
    ///
    /// # Errors
    /// As [`RecoverableLock::write`], never [`LockError::Torn`].
    pub fn mend(&self) -> impl Future<Output = Result<RecoverableWriteGuard<'_>>> {
        self.exclusive(Takes::Torn, Time::MAX)
    }

    /// Take the lock exclusively if nobody is inside or waits to write.
    ///
    /// # Errors
    /// As [`RecoverableLock::write`].
    pub async fn try_write(&self) -> Result<Option<RecoverableWriteGuard<'_>>> {
        loop {
            let (epoch, lock) = self.core.open();
            match lock.try_write().await {
                Ok(None) if !self.core.is_shut(epoch, lock).await? => return Ok(None),
                Ok(None) => {}
                Ok(Some(guard)) => return self.checked(guard, Takes::Whole).await.map(Some),
                Err(error) => self.core.go_on(epoch, error, Time::MAX).await?,
            }
        }
    }

    async fn exclusive(&self, takes: Takes, deadline: Time) -> Result<RecoverableWriteGuard<'_>> {
        loop {
            let (epoch, lock) = self.core.open();
            match lock.write_before(deadline).await {
                Ok(guard) => return self.checked(guard, takes).await,
                Err(error) => self.core.go_on(epoch, error, deadline).await?,
            }
        }
    }

    async fn checked<'a>(
        &'a self,
        guard: WriteGuard<'a, Surviving>,
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
    pub async fn suspect(&self, rank: Rank) -> Result<()> {
        self.core.tear(rank).await
    }
}

impl Survivor {
    /// An acquisition in `epoch` ended with `error`: come to the epoch in which to try again, or say why there is none.
    async fn go_on(self: &Arc<Self>, epoch: usize, error: LockError, deadline: Time) -> Result<()> {
        let reason = match &error {
            LockError::KeptOut => Reason::Closed,
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
        let end = if deadline == Time::MAX { Some(end.await) } else { self.fabric.before(deadline, end).await };
        match end {
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
