//! Data that may be half-written: the rank that tore it, and marking it as torn or consistent.

use super::{
    Core, EpochLock, RecoverableLock,
    words::{Agreement, State},
};
use crate::{LockError, Result};
use core::future::Future;
use rdma_fabric::{Rank, Time, provider::Boxed};
use std::sync::Arc;

/// The data that a lock protects may be half-written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Torn {
    /// The rank that was writing, and died, panicked, or is [suspected](RecoverableLock::suspect).
    pub by: Rank,
}

impl RecoverableLock {
    /// Declares that `rank` is suspected, without proof, to have died, or to hold the lock and
    /// never release it: the protected data counts as torn from now on. No hold of the lock is
    /// revoked; waiting ranks continue to wait.
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
    /// Returns the rank that tore the protected data, which must be torn.
    pub(super) async fn torn(&self) -> Result<Torn> {
        match self.fabric.get_word(&self.torn_by).await? {
            0 => Err(LockError::corrupt("torn by", 0)),
            by => Ok(Torn { by: Rank::new((by - 1) as u32) }),
        }
    }

    /// Records the rank that tore the data, before the data is marked as torn.
    pub(crate) async fn record_who_tore(&self, by: Rank) -> Result<()> {
        self.fabric.put_word(&self.torn_by, 1 + u64::from(by.number())).await?;
        self.fabric.flush(self.home).await?;
        Ok(())
    }

    /// Marks the protected data as consistent. This rank is inside in the epoch of `held`.
    pub(super) async fn make_whole(self: &Arc<Self>, held: &EpochLock) -> Result<()> {
        let mut closed = held.mark_whole().await?;
        // The rank that closed the previous epoch may have found it torn and carried the mark over.
        // This rank then has a stand-in inside in the next epoch.
        while closed {
            let seen = Agreement::of_bits(self.fabric.get_word(&self.agreement).await?)?;
            match seen.state {
                State::Opening { next, by } => self.await_opening(seen, next, by, Time::MAX).await?,
                State::Open => {
                    self.come_to(seen).await?;
                    closed = self.open().1.mark_whole().await?;
                }
                State::Exhausted => return Ok(()),
            }
        }
        Ok(())
    }

    /// Marks the protected data as torn, in the open epoch.
    async fn tear(self: &Arc<Self>, by: Rank) -> Result<()> {
        self.record_who_tore(by).await?;
        let mut seen = Agreement::of_bits(self.fabric.get_word(&self.agreement).await?)?;
        loop {
            self.come_to(seen).await?;
            self.open().1.mark_torn().await?;
            // A rank that closed this epoch before the mark was set may have missed it.
            match (seen.state, Agreement::of_bits(self.fabric.get_word(&self.agreement).await?)?) {
                (State::Open | State::Exhausted, after) if after.epoch == seen.epoch => return Ok(()),
                (State::Opening { next, by }, after) if after == seen => {
                    self.await_opening(seen, next, by, Time::MAX).await?
                }
                (_, after) => seen = after,
            }
        }
    }
}
