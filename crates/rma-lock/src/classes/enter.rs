//! Entering: C1–C6.

use super::{Class, Classes, Counts, NEXT_EPOCH, later, leave::Duties};
use crate::{
    LockError, crowd,
    error::Trouble,
    owed::Quit,
    queue::{Own, Part},
};
use rdma_fabric::{Amo, Time};

/// How long an acquisition waits.
#[derive(Clone, Copy)]
pub(super) enum Patience {
    Before(Time),
    /// Not at all.
    None,
}

impl Classes {
    /// Be inside. Ended by `quit` it is not inside.
    pub(super) async fn enter(&self, class: Class, patience: Patience, quit: &Quit) -> Result<bool, Trouble> {
        let inside = match patience {
            Patience::Before(deadline) => self.enter_before(class, deadline, quit).await.map(|()| true)?,
            Patience::None => self.enter_now(class).await?,
        };
        if inside && quit.is_set() {
            self.leave(class).await?;
            return Err(Trouble::GaveUp(Quit::REASON));
        }
        Ok(inside)
    }

    async fn enter_before(&self, class: Class, deadline: Time, quit: &Quit) -> Result<(), Trouble> {
        // Before anything is counted: who is counted and finds that it must wait can't take itself back.
        let own = match self.queue.take_fresh_node(self.queue.published.lane()) {
            Some(own) => own,
            None => self.queue.take_node(deadline, quit).await?,
        };
        let old = Counts(self.queue.fabric.atomic(&self.counts, Amo::Add(class.one())).await?); // C1
        let others = old.of(class.other());
        let crowded = old.of(class) >= crowd::MOST;
        let after = if old.turn() == class {
            if others == 0 {
                own.give_back_fresh();
                return if crowded { self.refuse(class).await } else { Ok(()) };
            }
            2
        } else {
            if old.of(class) == 0 && self.close(others).await? {
                // Nobody was there, or all are gone: the turn is mine to begin, and I am counted for it.
                self.settle(Duties { class, flip: true, ..Duties::default() }, 1).await?;
                own.give_back_fresh();
                return Ok(());
            }
            1
        };
        // Who is refused gives up at once. Whoever would wake it uncounts it.
        let deadline = if crowded { self.queue.fabric.now() } else { deadline };
        match self.wait(own, class, later(old.epoch(), after), deadline, quit).await {
            Ok(()) if crowded => self.refuse(class).await,
            Err(Trouble::GaveUp(LockError::TimedOut)) if crowded => Err(Trouble::GaveUp(crowd::refusal())),
            waited => waited,
        }
    }

    /// Inside, as one too many: leave.
    async fn refuse(&self, class: Class) -> Result<(), Trouble> {
        self.leave(class).await?;
        Err(Trouble::GaveUp(crowd::refusal()))
    }

    /// C3. Close the batch that has its turn, of which so many are counted. True if all of them have left.
    pub(super) async fn close(&self, inside: u64) -> Result<bool, Trouble> {
        Ok(inside == 0 || self.queue.fabric.atomic(&self.open, Amo::Add(inside)).await?.wrapping_add(inside) == 0)
    }

    /// C4–C6: until `epoch`, which can't end before this rank has been inside.
    async fn wait(&self, own: Own<'_>, class: Class, epoch: u64, deadline: Time, quit: &Quit) -> Result<(), Trouble> {
        let (queue, fabric, id) = (&self.queue, &self.queue.fabric, own.id);
        // C4: onto the stack. Only the owner, or whoever finds it abandoned, reads its next.
        let below = fabric.swap(self.stack(epoch), id.bits()).await?;
        let next = queue.decode("waiting", below)?;
        if next.is_some() {
            fabric.store(queue.own(id.slot(), Part::Next)?, below)?;
        }
        // C5: the epoch may have begun between C1 and C4 without seeing me.
        if Counts(fabric.get_word(&self.counts).await?).epoch() == epoch {
            let top = self.take_stack(epoch).await?;
            self.settle(Duties { class, chain: top, ..Duties::default() }, 0).await?;
        }
        // C6. Given up, the node stays on the stack; its waker will make it ready again.
        queue.wait_to_be_woken(&own, deadline, quit).await?;
        queue.retire(id).await?;
        drop(own);
        self.settle(Duties { class, chain: next, ..Duties::default() }, 0).await
    }

    /// C1 only if that means to be inside. Each comparison that fails is one that another rank has changed the counts since.
    async fn enter_now(&self, class: Class) -> Result<bool, Trouble> {
        let fabric = &self.queue.fabric;
        let mut seen = fabric.get_word(&self.counts).await?;
        loop {
            let counts = Counts(seen);
            if counts.of(class) >= crowd::MOST {
                return Err(Trouble::GaveUp(crowd::refusal()));
            }
            let nobody = counts.of(Class::Even) == 0 && counts.of(Class::Odd) == 0;
            let new = match counts.turn() == class {
                true if counts.of(class.other()) == 0 => seen + class.one(),
                // Nobody is there whose turn would have to end.
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

    pub(super) fn corrupt(&self, counts: u64) -> Trouble {
        Trouble::Broken(LockError::corrupt("counts", counts))
    }
}
