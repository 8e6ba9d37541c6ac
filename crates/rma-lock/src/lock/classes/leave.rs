//! Leaving, and passing turns on: C7–C9.

use super::{Class, Classes, Counts, NEXT_EPOCH, later};
use crate::{error::Stopped, lock::queue::NodeId};
use rdma_fabric::Amo;

/// The remaining work of this rank for others.
pub(super) struct Duties {
    /// The class of the waiters in the chain, and of those that leave.
    pub(super) class: Class,
    /// A waiter to wake; it wakes the rest of its chain.
    pub(super) chain: Option<NodeId>,
    /// The number of waiters that gave up and are still counted, although their turn has come.
    pub(super) leaving: u32,
    /// Whether the next epoch must be started. If so, no rank of this epoch is left in the chain or
    /// counted.
    pub(super) flip: bool,
}

impl Default for Duties {
    fn default() -> Self {
        Duties { class: Class::Even, chain: None, leaving: 0, flip: false }
    }
}

impl Classes {
    /// Makes one member of `class` leave. Waits only for operations.
    pub(super) async fn leave(&self, class: Class) -> Result<(), Stopped> {
        self.do_duties(Duties { class, leaving: 1, ..Duties::default() }, 0).await
    }

    /// Executes all duties, and those that result from them. `inside` is the number of ranks that
    /// are counted for the epoch that is started first and need not be woken.
    pub(super) async fn do_duties(&self, mut duties: Duties, mut inside: u64) -> Result<(), Stopped> {
        let queue = &self.queue;
        loop {
            if let Some(waiter) = duties.chain.take() {
                if !queue.wake(waiter).await? {
                    duties.chain = queue.pop_abandoned(waiter).await?;
                    duties.leaving += 1;
                }
            } else if duties.leaving > 0 {
                duties.leaving -= 1;
                duties.flip = self.uncount(duties.class).await?;
            } else if duties.flip {
                duties = self.flip(inside).await?;
                inside = 0;
            } else {
                return Ok(());
            }
        }
    }

    /// C7, C8. Returns whether the next epoch must be started.
    async fn uncount(&self, class: Class) -> Result<bool, Stopped> {
        let fabric = &self.queue.fabric;
        let old = Counts(fabric.atomic(&self.counts, Amo::Add(class.one().wrapping_neg())).await?);
        if old.of(class) == 0 {
            return Err(self.corrupt(old.0));
        }
        if old.of(class.other()) == 0 {
            return Ok(false);
        }
        Ok(fabric.atomic(&self.open, Amo::Add(1u64.wrapping_neg())).await? == 1)
    }

    /// C9: starts the next epoch, closes its batch if the other class waits, and takes its stack.
    async fn flip(&self, inside: u64) -> Result<Duties, Stopped> {
        let old = Counts(self.queue.fabric.atomic(&self.counts, Amo::Add(NEXT_EPOCH)).await?);
        let class = old.turn().other();
        let batch = old.of(class);
        let flip = old.of(class.other()) > 0 && self.close(batch).await?;
        let chain = if batch > inside { self.take_stack(later(old.epoch(), 1)).await? } else { None };
        Ok(Duties { class, chain, leaving: 0, flip })
    }

    /// Takes the stack of the waiters for an epoch that has begun; returns its top.
    pub(super) async fn take_stack(&self, epoch: u64) -> Result<Option<NodeId>, Stopped> {
        let top = self.queue.fabric.swap(self.stack(epoch), 0).await?;
        self.queue.decode("waiting", top)
    }
}
