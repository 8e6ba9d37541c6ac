//! Readers: one atomic in, one atomic out, unless a writer is about.

use super::{NodeId, READER, RpLock, WRITER_ACTIVE, WRITER_INTERESTED, layout::Part, publish::Readers, settle::Duties};
use crate::{LockError, ReadGuard, Result, guard::Reading};
use rdma_fabric::{Fabric, Time};

impl<F: Fabric> RpLock<F> {
    /// Take the lock shared.
    ///
    /// What earlier writers put is visible to gets posted afterwards. Without a writer inside this is 1
    /// remote atomic. Dropping the future before it is done leaves the lock in an unknown state
    /// ([`LockError::Interrupted`]); use [`RpLock::read_before`] to give up in an orderly way.
    ///
    /// # Errors
    /// [`LockError::Fabric`], [`LockError::GuardLeaked`], [`LockError::Interrupted`], [`LockError::TooManyWaiting`].
    pub async fn read(&self) -> Result<ReadGuard<'_, F>> {
        self.read_before(Time::MAX).await
    }

    /// Take the lock shared if no writer is inside. 1 remote atomic if so, 2 or more if not.
    ///
    /// # Errors
    /// As [`RpLock::read`].
    pub async fn try_read(&self) -> Result<Option<ReadGuard<'_, F>>> {
        let protocol = self.enter()?;
        if !self.announce_reader().await? {
            Box::pin(self.withdraw_reader()).await?;
            protocol.leave();
            return Ok(None);
        }
        protocol.leave();
        Ok(Some(ReadGuard::new(self, Reading)))
    }

    /// Take the lock shared, or give up at `deadline`. Giving up costs 1 atomic on own memory; whoever would have woken
    /// this rank takes its reader off the count.
    ///
    /// # Errors
    /// As [`RpLock::read`], and [`LockError::TimedOut`].
    pub async fn read_before(&self, deadline: Time) -> Result<ReadGuard<'_, F>> {
        let protocol = self.enter()?;
        if !self.announce_reader().await? {
            let outcome = Box::pin(self.wait_as_reader(deadline)).await;
            if let Err(LockError::TimedOut | LockError::TooManyWaiting { .. }) = outcome {
                protocol.leave();
                return Err(outcome.expect_err("just matched"));
            }
            outcome?;
        }
        protocol.leave();
        Ok(ReadGuard::new(self, Reading))
    }

    pub(crate) async fn release_read(&self, _: Reading) -> Result<()> {
        let protocol = self.begin();
        self.flush_data().await?;
        self.published.reader(&self.fabric, Some(Readers::Inside), Some(Readers::Leaving))?;
        if let Some(writer) = self.reader_leaves().await? {
            Box::pin(self.settle(Duties { writer: Some(writer), ..Duties::default() })).await?;
        }
        self.published.reader(&self.fabric, Some(Readers::Leaving), None)?;
        protocol.leave();
        Ok(())
    }

    /// R1: count me. True if no writer is inside, and so am I.
    #[inline]
    async fn announce_reader(&self) -> Result<bool> {
        self.published.reader(&self.fabric, None, Some(Readers::Arriving))?;
        let old = self.fabric.fetch_add(&self.count, READER).await?;
        if old & WRITER_ACTIVE != 0 {
            return Ok(false);
        }
        self.published.reader(&self.fabric, Some(Readers::Arriving), Some(Readers::Inside))?;
        Ok(true)
    }

    /// Take an announced reader back.
    async fn withdraw_reader(&self) -> Result<()> {
        let writer = self.reader_leaves().await?;
        self.published.reader(&self.fabric, Some(Readers::Arriving), None)?;
        match writer {
            Some(writer) => self.settle(Duties { writer: Some(writer), ..Duties::default() }).await,
            None => Ok(()),
        }
    }

    /// R2–R7, after R1 met a writer.
    async fn wait_as_reader(&self, deadline: Time) -> Result<()> {
        let own = match self.take_node().await {
            Ok(own) => own, // R2
            Err(error @ LockError::TooManyWaiting { .. }) => {
                self.withdraw_reader().await?;
                return Err(error);
            }
            Err(error) => return Err(error),
        };
        let id = own.id;
        // R3: onto the stack. Only the owner, or whoever finds it abandoned, reads its next.
        let below = self.fabric.swap(&self.readers, id.bits()).await?;
        let next = self.decode("readers", below)?;
        self.fabric.store(self.own(id.slot(), Part::Next)?, below)?;
        // R4: the writer may have left between R1 and R3 without seeing me.
        if self.fabric.get_word(&self.count).await? & WRITER_ACTIVE == 0 {
            // R5: whoever is there may enter; it may be me.
            let top = self.fabric.swap(&self.readers, 0).await?;
            if let Some(top) = self.decode("readers", top)? {
                self.settle(Duties { reader: Some(top), ..Duties::default() }).await?;
            }
        }
        // R6
        if !self.wait_to_be_woken(&own, deadline).await? {
            // The node stays on the stack; its waker will set it idle.
            self.published.reader(&self.fabric, Some(Readers::Arriving), None)?;
            return Err(LockError::TimedOut);
        }
        self.published.reader(&self.fabric, Some(Readers::Arriving), Some(Readers::Inside))?;
        self.retire(id).await?;
        drop(own);
        // R7
        match next {
            Some(_) => self.settle(Duties { reader: next, ..Duties::default() }).await,
            None => Ok(()),
        }
    }

    /// U1–U3: take a reader off the count. Yields the writer to be let in, if this was the last reader.
    #[inline]
    pub(super) async fn reader_leaves(&self) -> Result<Option<NodeId>> {
        let old = self.fabric.fetch_add(&self.count, READER.wrapping_neg()).await?; // U1
        if old != READER + WRITER_INTERESTED {
            return Ok(None);
        }
        Box::pin(self.let_writer_in()).await // U2, U3
    }

    /// U2, U3; X7: turn interest into activity. Fails if a reader came in, who will then do it. The head is read *after* the
    /// swap: it has no identity, and may have succeeded for a later writer than the one seen before.
    pub(super) async fn let_writer_in(&self) -> Result<Option<NodeId>> {
        let old = self.fabric.compare_swap(&self.count, WRITER_INTERESTED, WRITER_ACTIVE).await?;
        if old != WRITER_INTERESTED {
            return Ok(None);
        }
        let head = self.fabric.get_word(&self.head).await?;
        match self.decode("head", head)? {
            Some(writer) => Ok(Some(writer)),
            None => Err(LockError::Corrupt { word: "head", value: 0 }),
        }
    }
}
