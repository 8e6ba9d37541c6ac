//! Writers: G1–G5.

use super::{
    gate::{CLOSE, Gate, Limit},
    lock::{Core, Shut},
};
use crate::{Guard, KeptExclusive, LockError, error::Trouble, lock::OURS, nodes::climb::unless_quit, owed::Quit};
use rdma_fabric::{Amo, FabricError, RemoteWord, Time, op};

impl<L: KeptExclusive> Core<L> {
    /// Close all gates, and wait until nobody is inside; `None` for a deadline is not to wait at all.
    pub(super) async fn shut(&self, deadline: Option<Time>, quit: &Quit) -> Result<Option<Shut<L::Kept>>, Trouble> {
        let guard = match deadline {
            Some(deadline) => unless_quit(quit, self.lock.write_before(deadline)).await.map(Some),
            None => unless_quit(quit, self.lock.try_write()).await,
        };
        let Some(guard) = guard.map_err(Trouble::GaveUp)? else { return Ok(None) };
        let kept = L::keep(guard, OURS);
        let gates = self.close().await?; // G1
        let shut = Shut { kept, gates };
        let awaited = self.look_for_readers(&shut.gates).await?;
        let left = match deadline {
            Some(deadline) => self.wait_for_readers(&awaited, deadline, quit).await.map(|()| true),
            None => Ok(awaited.is_empty()),
        };
        match left {
            Ok(true) if !quit.is_set() => return Ok(Some(shut)),
            _ => {}
        }
        // Given up: those inside go on, and nobody is to tell.
        for (node, _) in awaited {
            self.queue.fabric.swap(&self.flag_at(self.queue.me, node)?, 0).await?;
        }
        self.open(shut).await?;
        match left {
            Ok(true) => Err(Trouble::GaveUp(Quit::REASON)),
            Ok(false) => Ok(None),
            Err(error) => Err(Trouble::GaveUp(error)),
        }
    }

    /// Post an atomic for each of some words, and await them all.
    async fn all(
        &self,
        atomics: impl Iterator<Item = Result<(RemoteWord<u64>, Amo<u64>), FabricError>>,
    ) -> Result<Vec<u64>, Trouble> {
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

    /// G1: what the gates were.
    async fn close(&self) -> Result<Vec<Gate>, Trouble> {
        let first = self.first_ranks().map_err(Trouble::Broken)?;
        let olds = self.all(first.iter().map(|first| Ok((self.gate_at(*first)?, CLOSE)))).await?;
        match olds.iter().find(|old| Gate(**old).is_closed()) {
            Some(old) => Err(Trouble::Broken(LockError::corrupt("gate", *old))),
            None => Ok(olds.into_iter().map(Gate).collect()),
        }
    }

    /// G2, G3: at which nodes readers are still inside, by number, and the limits that they are to tell of.
    async fn look_for_readers(&self, gates: &[Gate]) -> Result<Vec<(usize, Limit)>, Trouble> {
        let (fabric, me) = (&self.queue.fabric, self.queue.me);
        let first = self.first_ranks().map_err(Trouble::Broken)?;
        let busy = gates.iter().enumerate().filter(|(_, gate)| gate.readers() > 0);
        let busy: Vec<_> = busy.map(|(node, gate)| (node, Limit::after(*gate, me))).collect();
        if busy.is_empty() {
            return Ok(busy);
        }
        // The flags, before anybody can lower them.
        let raised = busy.iter().map(|(node, limit)| Ok((self.flag_at(me, *node)?, Amo::Swap(limit.0))));
        self.all(raised).await?;
        // G2
        for (node, limit) in &busy {
            fabric.put_word(&self.limit_at(first[*node])?, limit.0).await?;
        }
        fabric.flush_all().await?;
        // G3: who departed before that may not have seen the limit.
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
    async fn wait_for_readers(&self, awaited: &[(usize, Limit)], deadline: Time, quit: &Quit) -> Result<(), LockError> {
        let fabric = &self.queue.fabric;
        for (node, _) in awaited {
            let flag = fabric.local_word::<u64>(self.flag_addr(*node)?)?;
            // Acquire: pairs with the release of who lowers it.
            let lowered = fabric.wait_until(&flag, self.deps(), |bits| bits == 0 || quit.is_set());
            let bits = if deadline == Time::MAX {
                lowered.await?
            } else {
                fabric.before(deadline, lowered).await.ok_or(LockError::TimedOut)??
            };
            if bits != 0 {
                return Err(Quit::REASON);
            }
        }
        Ok(())
    }

    /// G5: open all gates, let those in that wait, and let the next writer go on.
    pub(super) async fn open(&self, shut: Shut<L::Kept>) -> Result<(), Trouble> {
        let first = self.first_ranks().map_err(Trouble::Broken)?;
        let opened = first.iter().zip(&shut.gates).map(|(first, gate)| Ok((self.gate_at(*first)?, gate.reopening())));
        let olds = self.all(opened).await?;
        for (first, old) in first.iter().zip(olds) {
            if Gate(old).readers() > 0 {
                self.sweep(&self.waiting_at(*first)?).await?;
            }
        }
        self.lock.take_up(shut.kept, OURS).release().await.map_err(Trouble::GaveUp)
    }
}
