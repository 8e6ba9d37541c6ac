//! Moves from a closed epoch to the open one.

use super::{
    Core, EpochLock, opening,
    words::{self, Agreement, State},
};
use crate::{
    LockError, Result,
    lock::{
        counted::CountedLock,
        detach::{DetachOnDrop, before},
        queue::RECOVERABLE_BYTES,
    },
};
use core::sync::atomic::Ordering::AcqRel;
use rdma_fabric::{Deps, FabricError, GroupMemory, Rank, Time};
use std::sync::Arc;

/// The reason for leaving an epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reason {
    /// Its words show that it is closed.
    Closed,
    /// A member is lost: the epoch must be closed, if it is not closed yet.
    Loss,
}

impl Core {
    /// Moves to the epoch for the next attempt after an acquisition in `epoch` ended with `error`,
    /// or returns the reason why there is none.
    pub(super) async fn resume(self: &Arc<Self>, epoch: usize, error: LockError, deadline: Time) -> Result<()> {
        let reason = match &error {
            kept_out if *kept_out == LockError::KEPT_OUT => Reason::Closed,
            LockError::Fabric(cause) => match cause.gone().filter(|rank| *rank != self.home) {
                Some(_) if matches!(cause, FabricError::PeerLost { .. }) => Reason::Loss,
                Some(rank) => match self.departure_reason(epoch, rank, deadline).await? {
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

    /// Returns why `rank` has dropped its part of the lock while this rank acquired in `epoch`: it
    /// may have left after the epoch was closed, or is about to be lost. `None` if it has left an
    /// open epoch.
    async fn departure_reason(&self, epoch: usize, rank: Rank, deadline: Time) -> Result<Option<Reason>> {
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

    /// Returns whether a try in `epoch` was refused because that epoch is closed. If so, this rank
    /// has moved to the next one, and another try is worthwhile.
    pub(super) async fn is_shut(self: &Arc<Self>, epoch: usize, lock: &EpochLock) -> Result<bool> {
        let shut = lock.shut().await?;
        if shut.torn {
            return Err(LockError::Torn { by: self.torn().await?.by });
        }
        if shut.closed {
            self.catch_up(epoch, Reason::Closed, Time::MAX).await?;
        }
        Ok(shut.closed)
    }

    /// Moves to the epoch after `from`, which is left for `reason`: opens it, or waits until
    /// another rank has opened it.
    ///
    /// Dropping the future ends the wait; an opening continues in the background.
    pub(super) async fn catch_up(self: &Arc<Self>, from: usize, reason: Reason, deadline: Time) -> Result<()> {
        let mut awaited = None;
        loop {
            let seen = Agreement::of_bits(self.fabric.get_word(&self.agreement).await?)?;
            // The agreement changes before any rank is notified of an opening.
            if awaited == Some(seen) {
                return Err(LockError::corrupt("agreement", seen.bits()));
            }
            self.come_to(seen).await?;
            match seen.state {
                State::Exhausted => {
                    let (epochs, deaths) = (self.options.epochs as u32, self.options.deaths as u32);
                    return Err(LockError::Unrecoverable { epochs, deaths });
                }
                State::Open if seen.epoch > from => return Ok(()),
                State::Open if reason == Reason::Loss => self.propose(seen).await?,
                // An epoch is closed by the rank that has agreed to open the next one.
                State::Open => return Err(LockError::corrupt("agreement", seen.bits())),
                State::Opening { next, by } => {
                    self.await_opening(seen, next, by, deadline).await?;
                    awaited = Some(seen);
                }
            }
        }
    }

    /// Opens the next epoch, unless another rank has agreed to do it.
    async fn propose(self: &Arc<Self>, seen: Agreement) -> Result<()> {
        let proposal = seen.opened_by(self.me, self.options.epochs);
        // An agreed opening must be completed even if the future is dropped.
        DetachOnDrop::new(self, |core, _| async move {
            let old = core.fabric.compare_swap(&core.agreement, seen.bits(), proposal.bits()).await?;
            if old == seen.bits() { opening::open(&core, proposal).await } else { Ok(()) }
        })
        .await
    }

    /// Waits until `by` has opened `next`; if `by` dies, takes its place.
    pub(super) async fn await_opening(
        self: &Arc<Self>,
        seen: Agreement,
        next: usize,
        by: Rank,
        deadline: Time,
    ) -> Result<()> {
        let rung = self.fabric.wait_until(&self.doorbell, Deps::One(by), |epoch| epoch >= next as u64);
        match before(&self.fabric, deadline, rung).await {
            None => Err(LockError::TimedOut),
            Some(Ok(_)) => Ok(()),
            Some(Err(FabricError::PeerLost { rank })) if rank == by => self.propose(seen).await,
            // The rank has completed its part and left.
            Some(Err(FabricError::PeersLeft)) => Ok(()),
            Some(Err(error)) => Err(error.into()),
        }
    }

    /// Creates the lock of the epoch that is open, or was open last.
    pub(super) async fn come_to(self: &Arc<Self>, seen: Agreement) -> Result<()> {
        if self.open().0 >= seen.epoch {
            return Ok(());
        }
        let dead = self.dead(seen.deaths).await?;
        let lock = self.lock_of(seen.epoch, &dead)?;
        let _ = self.epochs[seen.epoch].set(lock);
        // Release: pairs with the acquire of the thread that uses it.
        self.current.fetch_max(seen.epoch, AcqRel);
        Ok(())
    }

    /// Returns the first `number` dead ranks.
    pub(super) async fn dead(&self, number: usize) -> Result<Vec<Rank>> {
        if number == 0 {
            return Ok(Vec::new());
        }
        let written = self.fabric.remote_span::<u64>(self.memory.at(self.home, words::dead(0))?, number)?;
        let written = self.fabric.get(&written, vec![0; number]).await?;
        Ok(written.into_iter().map(|rank| Rank::new(rank as u32)).collect())
    }

    /// Returns the lock of an epoch for its live members.
    pub(super) fn lock_of(self: &Arc<Self>, epoch: usize, dead: &[Rank]) -> Result<EpochLock> {
        let memory = self.words_of(epoch)?.without(dead);
        CountedLock::of_epoch(self, epoch, memory)
    }

    pub(super) fn words_of(&self, epoch: usize) -> Result<GroupMemory> {
        Ok(self.memory.part(words::epoch(&self.options, epoch), RECOVERABLE_BYTES)?)
    }
}
