//! An acquisition: climbs the levels to the first that is open, or to the lock above all of them,
//! and descends again, opening the levels that it leads.

use super::{
    Patience, Stair,
    level::{COUNT_ME, HELD, ORPHAN, OVER_LIMIT},
};
use crate::{
    LockError,
    error::Stopped,
    lock::{
        detach::Cancelled,
        holder_limit,
        posting::Unfinished,
        queue::{NodeId, Wait},
    },
};
use core::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};
use rdma_fabric::Time;

/// The outcome of an arrival at a level.
enum Arrival {
    Inside,
    /// This rank must take the level above, and then wake this node.
    Leads(Option<NodeId>),
    /// This rank would have to wait, but must not.
    NotNow,
}

/// Runs `future`, but drops it when the operation is cancelled.
pub(crate) async fn unless_cancelled<T>(
    cancelled: &Cancelled,
    future: impl Future<Output = Result<T, LockError>>,
) -> Result<T, LockError> {
    let mut future = pin!(future);
    poll_fn(|cx| if cancelled.is_set() { Poll::Ready(Err(Cancelled::REASON)) } else { future.as_mut().poll(cx) }).await
}

impl Stair {
    /// Enters; returns false or an error if the rank is not inside, also if the future was dropped
    /// (`cancelled`). The first atomic may have been posted.
    pub(super) async fn enter(
        &self,
        first: Unfinished,
        patience: Patience,
        cancelled: &Cancelled,
    ) -> Result<bool, Stopped> {
        // The node to wake for each level that this rank leads, starting with the lowest level.
        let mut led = Vec::new();
        match self.climb(&mut led, first, patience, cancelled).await {
            Ok(true) => {
                while let Some(below) = led.pop() {
                    self.open(led.len(), below).await?;
                }
                if cancelled.is_set() {
                    self.leave_from(0, None).await?;
                    return Err(Stopped::GaveUp(Cancelled::REASON));
                }
                Ok(true)
            }
            outcome @ (Ok(false) | Err(Stopped::GaveUp(_))) => {
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
        mut first: Unfinished,
        patience: Patience,
        cancelled: &Cancelled,
    ) -> Result<bool, Stopped> {
        for level in 0..self.levels.len() {
            let old = match first.take() {
                Some(posting) => posting.result().await?,
                None => self.queue.fabric.atomic(&self.levels[level].count, COUNT_ME).await?, // N1
            };
            match self.arrive(level, old, patience, cancelled).await? {
                Arrival::Inside => return Ok(true),
                Arrival::Leads(below) => led.push(below),
                Arrival::NotNow => return Ok(false),
            }
        }
        let entered = match patience {
            Patience::Before(deadline) => {
                unless_cancelled(cancelled, async { self.above.enter(deadline).await.map(|()| true) }).await
            }
            Patience::None => unless_cancelled(cancelled, self.above.try_enter()).await,
        };
        entered.map_err(Stopped::GaveUp)
    }

    /// Continues after N1 has found `old` at `level`.
    async fn arrive(
        &self,
        level: usize,
        old: u64,
        patience: Patience,
        cancelled: &Cancelled,
    ) -> Result<Arrival, Stopped> {
        if old & OVER_LIMIT != 0 {
            self.leave_from(level, None).await?;
            return Err(Stopped::GaveUp(holder_limit::refusal()));
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
            Patience::Before(deadline) => self.wait(level, deadline, cancelled).await,
        }
    }

    /// N8–N13: waits at a level where this rank is counted and whose leader is still taking the
    /// level above.
    async fn wait(&self, level: usize, deadline: Time, cancelled: &Cancelled) -> Result<Arrival, Stopped> {
        let (queue, fabric, words) = (&self.queue, &self.queue.fabric, &self.levels[level]);
        loop {
            let own = match queue.take_node(deadline, cancelled).await {
                Ok(own) => own,
                Err(Stopped::GaveUp(error)) => {
                    self.leave_from(level, None).await?;
                    return Err(Stopped::GaveUp(error));
                }
                Err(broken) => return Err(broken),
            };
            let next = queue.push(&words.waiting, "waiting", &own).await?; // N8
            // N9: the leader may have opened the level, or given up, between N1 and N8 without
            // observing this rank.
            let now = fabric.get_word(&words.count).await?;
            if now & HELD != 0 {
                self.sweep(level, Wait::Granted).await?; // N10
            } else if now & ORPHAN != 0 {
                self.sweep(level, Wait::Offered).await?;
            }
            // N11. An abandoned node stays on the stack; its waker makes it ready again.
            let how = queue.wait_for_any_wake(&own, deadline, cancelled).await?;
            queue.retire(own.id).await?;
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
            // Another rank leads.
            self.wake(level, next, Wait::Offered).await?;
        }
    }
}
