//! An acquisition: up the levels to the first that is open or to what is above all of them, and down again, opening those that it leads.

use super::{
    Stair,
    above::Above,
    level::{COUNT_ME, HELD, ORPHAN, TOO_MANY},
};
use crate::{
    LockError, crowd,
    error::Trouble,
    owed::Quit,
    posting::NotOver,
    queue::{NodeId, Part, Wait},
};
use core::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};
use rdma_fabric::Time;

/// How long an acquisition waits.
#[derive(Clone, Copy)]
pub(super) enum Patience {
    Before(Time),
    /// Not at all.
    None,
}

/// What an arrival at a level leads to.
enum Arrival {
    Inside,
    /// It must take what is above, and tell this one then.
    Leads(Option<NodeId>),
    /// It would have to wait, and does not.
    NotNow,
}

/// Run `future`, but drop it when nobody awaits it any more.
pub(crate) async fn unless_quit<T>(
    quit: &Quit,
    future: impl Future<Output = Result<T, LockError>>,
) -> Result<T, LockError> {
    let mut future = pin!(future);
    poll_fn(|cx| if quit.is_set() { Poll::Ready(Err(Quit::REASON)) } else { future.as_mut().poll(cx) }).await
}

impl<A: Above> Stair<A> {
    /// Get inside. Ended by `quit` it is not inside. The first atomic may have been posted.
    pub(super) async fn enter(&self, first: NotOver, patience: Patience, quit: &Quit) -> Result<bool, Trouble> {
        // Whom to tell, for each level that this rank leads, from the lowest.
        let mut led = Vec::new();
        match self.climb(&mut led, first, patience, quit).await {
            Ok(true) => {
                while let Some(below) = led.pop() {
                    self.open(led.len(), below).await?;
                }
                if quit.is_set() {
                    self.leave_from(0, None).await?;
                    return Err(Trouble::GaveUp(Quit::REASON));
                }
                Ok(true)
            }
            outcome @ (Ok(false) | Err(Trouble::GaveUp(_))) => {
                while let Some(below) = led.pop() {
                    self.orphan(led.len(), below).await?;
                }
                outcome
            }
            broken => broken,
        }
    }

    async fn climb(
        &self,
        led: &mut Vec<Option<NodeId>>,
        mut first: NotOver,
        patience: Patience,
        quit: &Quit,
    ) -> Result<bool, Trouble> {
        for level in 0..self.levels.len() {
            let old = match first.take() {
                Some(posting) => posting.result().await?,
                None => self.queue.fabric.atomic(&self.levels[level].count, COUNT_ME).await?, // N1
            };
            match self.arrive(level, old, patience, quit).await? {
                Arrival::Inside => return Ok(true),
                Arrival::Leads(below) => led.push(below),
                Arrival::NotNow => return Ok(false),
            }
        }
        let entered = match patience {
            Patience::Before(deadline) => {
                unless_quit(quit, async { self.above.enter(deadline).await.map(|()| true) }).await
            }
            Patience::None => unless_quit(quit, self.above.try_enter()).await,
        };
        entered.map_err(Trouble::GaveUp)
    }

    /// N1 found `old` at `level`.
    async fn arrive(&self, level: usize, old: u64, patience: Patience, quit: &Quit) -> Result<Arrival, Trouble> {
        if old & TOO_MANY != 0 {
            self.leave_from(level, None).await?;
            return Err(Trouble::GaveUp(crowd::refusal()));
        }
        if old & HELD != 0 {
            return Ok(Arrival::Inside);
        }
        if old == 0 {
            return Ok(Arrival::Leads(None));
        }
        if old & ORPHAN != 0 {
            let old = self.claim(level).await?;
            if old & ORPHAN != 0 {
                return Ok(Arrival::Leads(None));
            }
            if old & HELD != 0 {
                return Ok(Arrival::Inside);
            }
        }
        match patience {
            Patience::None => self.leave_from(level, None).await.map(|()| Arrival::NotNow),
            Patience::Before(deadline) => self.wait(level, deadline, quit).await,
        }
    }

    /// N8–N13: counted at a level whose leader is on its way.
    async fn wait(&self, level: usize, deadline: Time, quit: &Quit) -> Result<Arrival, Trouble> {
        let (queue, fabric, words) = (&self.queue, &self.queue.fabric, &self.levels[level]);
        loop {
            let own = match queue.take_fresh_node(queue.published.lane()) {
                Some(own) => own,
                None => match queue.take_node(deadline, quit).await {
                    Ok(own) => own,
                    Err(Trouble::GaveUp(error)) => {
                        self.leave_from(level, None).await?;
                        return Err(Trouble::GaveUp(error));
                    }
                    Err(broken) => return Err(broken),
                },
            };
            let id = own.id;
            // N8: onto the stack. Only the owner, or whoever finds it abandoned, reads its next.
            let below = fabric.swap(&words.waiting, id.bits()).await?;
            let next = queue.decode("waiting", below)?;
            if next.is_some() {
                fabric.store(queue.own(id.slot(), Part::Next)?, below)?;
            }
            // N9: the leader may have come, or given up, between N1 and N8 without seeing me.
            let now = fabric.get_word(&words.count).await?;
            if now & HELD != 0 {
                self.sweep(level, Wait::Granted).await?; // N10
            } else if now & ORPHAN != 0 {
                self.sweep(level, Wait::Offered).await?;
            }
            // N11. Given up, the node stays on the stack; its waker will make it ready again.
            let how = queue.wait_for_any_wake(&own, deadline, quit).await?;
            queue.retire(id).await?;
            drop(own);
            // N12
            if how == Wait::Granted {
                self.wake(level, next, Wait::Granted).await?;
                return Ok(Arrival::Inside);
            }
            // N13
            let old = self.claim(level).await?;
            if old & ORPHAN != 0 {
                return Ok(Arrival::Leads(next));
            }
            if old & HELD != 0 {
                self.wake(level, next, Wait::Granted).await?;
                return Ok(Arrival::Inside);
            }
            // Somebody else leads.
            self.wake(level, next, Wait::Offered).await?;
        }
    }
}
