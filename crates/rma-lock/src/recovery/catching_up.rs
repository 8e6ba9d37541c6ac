//! From an epoch that is over to the one that is open.

use super::{
    Core, EpochLock, opening,
    words::{self, Agreement, State},
};
use crate::{
    LockError, Result,
    counted::CountedLock,
    detach::{DetachOnDrop, before},
    queue::RECOVERABLE_BYTES,
};
use core::sync::atomic::Ordering::AcqRel;
use rdma_fabric::{Deps, FabricError, GroupMemory, Rank, Time};
use std::sync::Arc;

/// Why an epoch is left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reason {
    /// Its words say that it is closed.
    Closed,
    /// A member is lost: it is to be closed, if nobody has done so.
    Loss,
}

impl Core {
    /// Come to the epoch after `from`, which is left for `reason`: open it, or wait until somebody else has.
    ///
    /// Dropped, it owes nothing, or goes on opening in the background.
    pub(super) async fn catch_up(self: &Arc<Self>, from: usize, reason: Reason, deadline: Time) -> Result<()> {
        loop {
            let seen = Agreement::of_bits(self.fabric.get_word(&self.agreement).await?)?;
            self.come_to(seen).await?;
            match seen.state {
                State::Over => {
                    let (epochs, deaths) = (self.options.epochs as u32, self.options.deaths as u32);
                    return Err(LockError::Unrecoverable { epochs, deaths });
                }
                State::Open if seen.epoch > from => return Ok(()),
                State::Open if reason == Reason::Loss => self.propose(seen).await?,
                // An epoch is closed by who has agreed to open the next.
                State::Open => return Err(LockError::corrupt("agreement", seen.bits())),
                State::Opening { next, by } => self.await_opening(seen, next, by, deadline).await?,
            }
        }
    }

    /// Open the next epoch, unless somebody else has agreed to do it.
    async fn propose(self: &Arc<Self>, seen: Agreement) -> Result<()> {
        let proposal = seen.opened_by(self.me, self.options.epochs);
        // What was agreed must be done, awaited or not.
        DetachOnDrop::new(self, |core, _| async move {
            let old = core.fabric.compare_swap(&core.agreement, seen.bits(), proposal.bits()).await?;
            if old == seen.bits() { opening::open(&core, proposal).await } else { Ok(()) }
        })
        .await
    }

    /// Wait until `by` has opened `next`; if it dies, take its place.
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
            // It has done its part and left.
            Some(Err(FabricError::PeersLeft)) => Ok(()),
            Some(Err(error)) => Err(error.into()),
        }
    }

    /// Make the lock of the epoch that is, or was last, open.
    pub(super) async fn come_to(self: &Arc<Self>, seen: Agreement) -> Result<()> {
        if self.open().0 >= seen.epoch {
            return Ok(());
        }
        let dead = self.dead(seen.deaths).await?;
        let lock = self.lock_of(seen.epoch, &dead)?;
        let _ = self.epochs[seen.epoch].set(lock);
        // Release: pairs with the acquire of who uses it.
        self.current.fetch_max(seen.epoch, AcqRel);
        Ok(())
    }

    /// The first `number` dead.
    pub(super) async fn dead(&self, number: usize) -> Result<Vec<Rank>> {
        if number == 0 {
            return Ok(Vec::new());
        }
        let written = self.fabric.remote_span::<u64>(self.memory.at(self.home, words::dead(0))?, number)?;
        let written = self.fabric.get(&written, vec![0; number]).await?;
        Ok(written.into_iter().map(|rank| Rank::new(rank as u32)).collect())
    }

    /// The lock of an epoch for those who live in it.
    pub(super) fn lock_of(self: &Arc<Self>, epoch: usize, dead: &[Rank]) -> Result<EpochLock> {
        let memory = self.words_of(epoch)?.without(dead);
        CountedLock::of_epoch(self, epoch, memory)
    }

    pub(super) fn words_of(&self, epoch: usize) -> Result<GroupMemory> {
        Ok(self.memory.part(words::epoch(&self.options, epoch), RECOVERABLE_BYTES)?)
    }
}
