//! Writers: G1–G5.

use super::{
    Core, Shut,
    gate::{CLOSE, Gate, Limit},
};
use crate::{
    LockError,
    error::Stopped,
    lock::{
        detach::{Cancelled, before},
        nodes::unless_cancelled,
    },
};
use rdma_fabric::{Amo, FabricError, RemoteWord, Time, op};

impl Core {
    /// Closes all gates, and waits until no reader is inside; without a deadline, does not wait.
    pub(super) async fn shut(&self, deadline: Option<Time>, cancelled: &Cancelled) -> Result<Option<Shut>, Stopped> {
        let kept = match deadline {
            Some(deadline) => unless_cancelled(cancelled, self.writers.keep(deadline)).await.map(Some),
            None => unless_cancelled(cancelled, self.writers.try_keep()).await,
        };
        let Some(kept) = kept.map_err(Stopped::GaveUp)? else { return Ok(None) };
        let gates = self.close().await?; // G1
        let shut = Shut { kept, gates };
        let awaited = self.look_for_readers(&shut.gates).await?;
        let left = match deadline {
            Some(deadline) => self.wait_for_readers(&awaited, deadline, cancelled).await.map(|()| true),
            None => Ok(awaited.is_empty()),
        };
        match left {
            Ok(true) if !cancelled.is_set() => return Ok(Some(shut)),
            _ => {}
        }
        // The writer gave up: the readers inside continue, and the writer does not wait for their
        // departures.
        for (node, _) in awaited {
            self.queue.fabric.swap(&self.flag_at(self.queue.me, node)?, 0).await?;
        }
        self.open(shut).await?;
        match left {
            Ok(true) => Err(Stopped::GaveUp(Cancelled::REASON)),
            Ok(false) => Ok(None),
            Err(error) => Err(Stopped::GaveUp(error)),
        }
    }

    /// Posts all of `atomics`, and awaits them.
    async fn all(
        &self,
        atomics: impl Iterator<Item = Result<(RemoteWord<u64>, Amo<u64>), FabricError>>,
    ) -> Result<Vec<u64>, Stopped> {
        let mut posted = Vec::new();
        for atomic in atomics {
            let (word, amo) = atomic?;
            posted.push(self.queue.fabric.post(op::Atomic { word: &word, amo }).await?);
        }
        let mut olds = Vec::with_capacity(posted.len());
        for handle in posted {
            olds.push(handle.await?);
        }
        Ok(olds)
    }

    /// G1: closes the gates; returns their previous values.
    async fn close(&self) -> Result<Vec<Gate>, Stopped> {
        let first = self.first_ranks().map_err(Stopped::Broken)?;
        let olds = self.all(first.iter().map(|first| Ok((self.gate_at(*first)?, CLOSE)))).await?;
        match olds.iter().find(|old| Gate(**old).is_closed()) {
            Some(old) => Err(Stopped::Broken(LockError::corrupt("gate", *old))),
            None => Ok(olds.into_iter().map(Gate).collect()),
        }
    }

    /// G2, G3: returns the nodes, by number, at which readers are still inside, and the limits at
    /// which they must notify the writer.
    async fn look_for_readers(&self, gates: &[Gate]) -> Result<Vec<(usize, Limit)>, Stopped> {
        let (fabric, me) = (&self.queue.fabric, self.queue.me);
        let first = self.first_ranks().map_err(Stopped::Broken)?;
        let busy = gates.iter().enumerate().filter(|(_, gate)| gate.readers() > 0);
        let busy: Vec<_> = busy.map(|(node, gate)| (node, Limit::after(*gate, me))).collect();
        if busy.is_empty() {
            return Ok(busy);
        }
        // Raises the flags before a reader can lower them.
        let raised = busy.iter().map(|(node, limit)| Ok((self.flag_at(me, *node)?, Amo::Swap(limit.0))));
        self.all(raised).await?;
        // G2
        for (node, limit) in &busy {
            fabric.put_word(&self.limit_at(first[*node])?, limit.0).await?;
        }
        fabric.flush_all().await?;
        // G3: a reader that departed before this may not have observed the limit.
        let looks = busy.iter().map(|(node, _)| Ok((self.gate_at(first[*node])?, Amo::Or(0))));
        let now = self.all(looks).await?;
        let mut awaited = Vec::new();
        for ((node, limit), now) in busy.into_iter().zip(now) {
            if limit.is(Gate(now).departures()) {
                fabric.swap(&self.flag_at(me, node)?, 0).await?;
            } else {
                awaited.push((node, limit));
            }
        }
        Ok(awaited)
    }

    /// G4.
    async fn wait_for_readers(
        &self,
        awaited: &[(usize, Limit)],
        deadline: Time,
        cancelled: &Cancelled,
    ) -> Result<(), LockError> {
        let fabric = &self.queue.fabric;
        for (node, _) in awaited {
            let flag = fabric.local_word::<u64>(self.flag_addr(*node)?)?;
            // Acquire: pairs with the release of the rank that lowers it.
            let lowered = fabric.wait_until(&flag, self.deps(), |bits| bits == 0 || cancelled.is_set());
            let bits = before(fabric, deadline, lowered).await.ok_or(LockError::TimedOut)??;
            if bits != 0 {
                return Err(Cancelled::REASON);
            }
        }
        Ok(())
    }

    /// G5: opens all gates, admits the waiting readers, and lets the next writer proceed.
    pub(super) async fn open(&self, shut: Shut) -> Result<(), Stopped> {
        let first = self.first_ranks().map_err(Stopped::Broken)?;
        let opened = first.iter().zip(&shut.gates).map(|(first, gate)| Ok((self.gate_at(*first)?, gate.reopening())));
        let olds = self.all(opened).await?;
        for (first, old) in first.iter().zip(olds) {
            if Gate(old).readers() > 0 {
                self.sweep(&self.waiting_at(*first)?).await?;
            }
        }
        self.writers.end_kept(shut.kept).await.map_err(Stopped::GaveUp)
    }
}
