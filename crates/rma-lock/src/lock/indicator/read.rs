//! Readers: I1–I8.

use super::{
    Core,
    gate::{ARRIVE, DEPART, Gate, Limit, refusal},
};
use crate::{
    error::Stopped,
    lock::{detach::Cancelled, posting::Unfinished, queue::NodeId},
};
use rdma_fabric::{Rank, RemoteWord, Time};

impl Core {
    /// Enters; without a deadline, does not wait. The first atomic may have been posted.
    pub(super) async fn arrive(
        &self,
        first: Unfinished,
        deadline: Option<Time>,
        cancelled: &Cancelled,
    ) -> Result<bool, Stopped> {
        let old = Gate(match first {
            Some(posting) => posting.result().await?,
            None => self.queue.fabric.atomic(&self.gate, ARRIVE).await?, // I1
        });
        if old.is_over_limit() {
            // If the gate is open, a writer that arrives now waits for this reader.
            if old.is_closed() {
                self.withdraw(old.epoch()).await?
            } else {
                self.depart(None).await?
            }
            return Err(Stopped::GaveUp(refusal()));
        }
        if old.is_closed() {
            let Some(deadline) = deadline else {
                self.withdraw(old.epoch()).await?;
                return Ok(false);
            };
            self.wait(old.epoch(), deadline, cancelled).await?;
        }
        if cancelled.is_set() {
            self.depart(None).await?;
            return Err(Stopped::GaveUp(Cancelled::REASON));
        }
        Ok(true)
    }

    /// I2–I6: waits; the reader was counted while the gate was closed in `epoch`. A reader that is
    /// counted when the next epoch begins is inside in that epoch.
    async fn wait(&self, epoch: u64, deadline: Time, cancelled: &Cancelled) -> Result<(), Stopped> {
        let (queue, fabric) = (&self.queue, &self.queue.fabric);
        let waiting = self.waiting_at(self.my_first())?;
        loop {
            let own = match queue.take_node(deadline, cancelled).await {
                Ok(own) => own,
                Err(Stopped::GaveUp(error)) => {
                    self.withdraw(epoch).await?;
                    return Err(Stopped::GaveUp(error));
                }
                Err(broken) => return Err(broken),
            };
            let next = queue.push(&waiting, "waiting", &own).await?; // I2
            // I3: the gate may have been opened between I1 and I2 without observing this reader.
            if Gate(fabric.get_word(&self.gate).await?).epoch() != epoch {
                self.sweep(&waiting).await?; // I4
            }
            // I5. An abandoned node stays on the stack; the rank that takes the stack makes it
            // ready again.
            match queue.wait_to_be_woken(&own, deadline, cancelled).await {
                Err(Stopped::GaveUp(error)) => {
                    self.withdraw(epoch).await?;
                    // If no counted reader is left, the writer will not take the stack.
                    self.sweep(&waiting).await?;
                    return Err(Stopped::GaveUp(error));
                }
                woken => woken?,
            }
            queue.retire(own.id).await?;
            drop(own);
            self.wake(next).await?;
            // I6: a reader that was late with I4, or gave up, may have woken readers that have to
            // wait.
            if Gate(fabric.get_word(&self.gate).await?).epoch() != epoch {
                return Ok(());
            }
        }
    }

    /// Takes the stack and wakes its top node, whose owner wakes the next.
    pub(super) async fn sweep(&self, waiting: &RemoteWord<u64>) -> Result<(), Stopped> {
        let top = self.queue.fabric.swap(waiting, 0).await?;
        self.wake(self.queue.decode("waiting", top)?).await
    }

    /// Wakes `node`, if any, and the nodes below it as long as they were given up. The owners of
    /// the latter have uncounted themselves.
    async fn wake(&self, mut node: Option<NodeId>) -> Result<(), Stopped> {
        while let Some(reader) = node.take() {
            if !self.queue.wake(reader).await? {
                node = self.queue.pop_abandoned(reader).await?;
            }
        }
        Ok(())
    }

    /// Uncounts a reader that was counted while the gate was closed in `epoch`: like a reader that
    /// never was inside or, if that epoch has ended, like one that is. The compare-and-swap fails
    /// only if another rank has changed the gate since it was read.
    async fn withdraw(&self, epoch: u64) -> Result<(), Stopped> {
        let fabric = &self.queue.fabric;
        let mut seen = fabric.get_word(&self.gate).await?;
        while Gate(seen).epoch() == epoch {
            let found = fabric.compare_swap(&self.gate, seen, seen - 1).await?;
            if found == seen {
                return Ok(());
            }
            seen = found;
        }
        self.depart(None).await
    }

    /// I7, I8. The first atomic may have been posted. Waits only for operations.
    pub(super) async fn depart(&self, first: Unfinished) -> Result<(), Stopped> {
        let fabric = &self.queue.fabric;
        let old = Gate(match first {
            Some(posting) => posting.result().await?,
            None => fabric.atomic(&self.gate, DEPART).await?,
        });
        if !old.is_closed() {
            return Ok(());
        }
        // I8: the writer puts the limit before it reads the departures; this rank has departed
        // before it reads the limit.
        let limit = Limit(fabric.get_word(&self.limit).await?);
        if let Some(writer) = limit.writer()
            && limit.is(old.departures() + 1)
        {
            // Fails if the writer has observed the departures itself, or has given up.
            let flag = self.flag_at(Rank::new(writer as u32), self.node)?;
            fabric.compare_swap(&flag, limit.0, 0).await?;
        }
        Ok(())
    }
}
