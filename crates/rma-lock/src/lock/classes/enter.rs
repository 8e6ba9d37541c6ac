//! Entering: C1–C6.

use super::{Class, Classes, Counts, NEXT_EPOCH, later, leave::Duties};
use crate::{
    LockError,
    error::Stopped,
    lock::{detach::Cancelled, holder_limit, nodes::Patience, queue::Own},
};
use rdma_fabric::{Amo, Time};

impl Classes {
    /// Enters; returns false or an error if the rank is not inside. If the future was dropped
    /// (`cancelled`), the rank leaves again.
    pub(super) async fn enter(&self, class: Class, patience: Patience, cancelled: &Cancelled) -> Result<bool, Stopped> {
        let inside = match patience {
            Patience::Before(deadline) => self.enter_before(class, deadline, cancelled).await.map(|()| true)?,
            Patience::None => self.enter_fast(class).await?,
        };
        if inside && cancelled.is_set() {
            self.leave(class).await?;
            return Err(Stopped::GaveUp(Cancelled::REASON));
        }
        Ok(inside)
    }

    async fn enter_before(&self, class: Class, deadline: Time, cancelled: &Cancelled) -> Result<(), Stopped> {
        // This comes before any counting: a rank that was counted and then has to wait cannot
        // withdraw.
        let own = self.queue.take_node(deadline, cancelled).await?;
        let old = Counts(self.queue.fabric.atomic(&self.counts, Amo::Add(class.one())).await?); // C1
        let others = old.of(class.other());
        let over_limit = old.of(class) >= holder_limit::MAX_HOLDERS;
        let after = if old.turn() == class {
            if others == 0 {
                own.give_back_clean();
                return if over_limit { self.refuse(class).await } else { Ok(()) };
            }
            2
        } else {
            if old.of(class) == 0 && self.close(others).await? {
                // The lock was empty, or all others have left: this rank starts the turn, and is
                // counted for it.
                self.do_duties(Duties { class, flip: true, ..Duties::default() }, 1).await?;
                own.give_back_clean();
                return Ok(());
            }
            1
        };
        // A rank that is refused gives up immediately. The rank that would wake it uncounts it.
        let deadline = if over_limit { self.queue.fabric.now() } else { deadline };
        match self.wait(own, class, later(old.epoch(), after), deadline, cancelled).await {
            Ok(()) if over_limit => self.refuse(class).await,
            Err(Stopped::GaveUp(LockError::TimedOut)) if over_limit => Err(Stopped::GaveUp(holder_limit::refusal())),
            waited => waited,
        }
    }

    /// Leaves again, because the holder limit was exceeded.
    async fn refuse(&self, class: Class) -> Result<(), Stopped> {
        self.leave(class).await?;
        Err(Stopped::GaveUp(holder_limit::refusal()))
    }

    /// C3: closes the batch that has its turn, of which `inside` ranks are counted. Returns whether
    /// all of them have left.
    pub(super) async fn close(&self, inside: u64) -> Result<bool, Stopped> {
        Ok(inside == 0 || self.queue.fabric.atomic(&self.open, Amo::Add(inside)).await?.wrapping_add(inside) == 0)
    }

    /// C4–C6: waits until `epoch`, which cannot end before this rank has been inside.
    async fn wait(
        &self,
        own: Own<'_>,
        class: Class,
        epoch: u64,
        deadline: Time,
        cancelled: &Cancelled,
    ) -> Result<(), Stopped> {
        let (queue, fabric) = (&self.queue, &self.queue.fabric);
        let next = queue.push(self.stack(epoch), "waiting", &own).await?; // C4
        // C5: the epoch may have begun between C1 and C4 without observing this rank.
        if Counts(fabric.get_word(&self.counts).await?).epoch() == epoch {
            let top = self.take_stack(epoch).await?;
            self.do_duties(Duties { class, chain: top, ..Duties::default() }, 0).await?;
        }
        // C6. An abandoned node stays on the stack; its waker makes it ready again.
        queue.wait_to_be_woken(&own, deadline, cancelled).await?;
        queue.retire(own.id).await?;
        drop(own);
        self.do_duties(Duties { class, chain: next, ..Duties::default() }, 0).await
    }

    /// C1, only if the rank can enter immediately. The compare-and-swap fails only if another rank
    /// has changed the counts since they were read.
    async fn enter_fast(&self, class: Class) -> Result<bool, Stopped> {
        let fabric = &self.queue.fabric;
        let mut seen = fabric.get_word(&self.counts).await?;
        loop {
            let counts = Counts(seen);
            if counts.of(class) >= holder_limit::MAX_HOLDERS {
                return Err(Stopped::GaveUp(holder_limit::refusal()));
            }
            let nobody = counts.of(Class::Even) == 0 && counts.of(Class::Odd) == 0;
            let new = match counts.turn() == class {
                true if counts.of(class.other()) == 0 => seen + class.one(),
                // No turn has to end first.
                false if nobody => seen.wrapping_add(NEXT_EPOCH) + class.one(),
                _ => return Ok(false),
            };
            let found = fabric.compare_swap(&self.counts, seen, new).await?;
            if found == seen {
                return Ok(true);
            }
            seen = found;
        }
    }

    pub(super) fn corrupt(&self, counts: u64) -> Stopped {
        Stopped::Broken(LockError::corrupt("counts", counts))
    }
}
