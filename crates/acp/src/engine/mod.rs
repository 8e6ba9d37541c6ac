//! The operations of one rank, in the order in which it issued them.
//!
//! Nobody works in the background: an operation is started by the call that issues it, or, if its
//! order makes it wait, by whichever later call sees that it need wait no longer. Completion is in
//! order, so what there is to know of handles is one number: all up to it are complete. An
//! operation that is over when it is posted, with nothing before it, is never stored.

mod delegated;
mod failures;
mod flight;
mod kind;
#[cfg(test)]
mod tests;

pub(crate) use failures::Failures;
pub(crate) use flight::{Flight, atomic, atomic_by_cpu, change_by_cpu, copy, of_reply, storing_reply};
pub(crate) use kind::{Kind, Pair};

use crate::{Handle, Order, Result};
use core::task::{Context, Poll, Waker};
use rdma_fabric::Fabric;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, VecDeque},
};

#[derive(Default)]
pub(crate) struct Engine {
    /// Whether direct puts need no barrier between them to become visible in order.
    in_order: bool,
    /// Number of operations issued; the last one's handle.
    issued: i64,
    /// All operations up to this one are over; those that were over when they were posted may not
    /// be visible yet.
    over: i64,
    /// Whether something was put directly since the last barrier.
    unseen: bool,
    /// The operations after `over`, in order.
    pending: VecDeque<Stage>,
    /// Of those that have not started, what each waits for, and its number.
    waiting: BinaryHeap<Reverse<(i64, i64)>>,
    /// The last copy of each pair, of those pending.
    pairs: BTreeMap<Pair, i64>,
    /// The last operation that each rank was asked to carry out, of those pending: one at a time.
    servers: BTreeMap<u32, i64>,
    /// The operations that other ranks carry out, of those pending.
    delegated: Vec<i64>,
    /// The last operation, if it was a copy: its pair, and what it waited for.
    last: Option<(Pair, i64)>,
    /// The failures that nobody has been told of.
    failed: Failures,
    /// Other tasks that wait for operations of this rank.
    wakers: Vec<Waker>,
}

/// Where a pending operation stands.
enum Stage {
    /// Waits for other operations.
    Waiting(Flight),
    Flying(Flight),
    /// Over, behind others that are not.
    Over,
}

impl Engine {
    pub(crate) fn new(fabric: &Fabric) -> Self {
        Engine { in_order: fabric.caps().puts_in_order, ..Engine::default() }
    }

    /// Returns whether an operation of this order may be posted at once, and is then over in order:
    /// nothing is pending. What it waits for is visible then.
    #[inline(always)]
    pub(crate) fn may_start(&mut self, fabric: &Fabric, order: Order) -> bool {
        self.pending.is_empty() && {
            self.show_before(fabric, order);
            true
        }
    }

    /// Makes visible what an operation of this order waits for and was over when it was posted: that
    /// may have been a copy of the same pair, which goes first whatever the order.
    #[inline(always)]
    fn show_before(&mut self, fabric: &Fabric, order: Order) {
        if !self.in_order || !matches!(order, Order::None) {
            self.show(fabric);
        }
    }

    /// Makes visible what was over when it was posted: it was put directly, by this thread or in an
    /// earlier turn of another one, which ended by a store after those of the puts.
    #[inline(always)]
    fn show(&mut self, fabric: &Fabric) {
        if self.unseen {
            fabric.barrier();
            self.unseen = false;
        }
    }

    /// Completes at once everything that was issued, if nothing is pending and no failure is to be
    /// reported; returns the last operation.
    #[inline(always)]
    pub(crate) fn complete_now(&mut self, fabric: &Fabric) -> Option<i64> {
        if !self.pending.is_empty() || !self.failed.is_empty() {
            return None;
        }
        self.show(fabric);
        Some(self.over)
    }

    /// Returns whether everything that is over is visible, and every failure was reported.
    #[inline(always)]
    pub(crate) fn is_settled(&self) -> bool {
        !self.unseen && self.failed.is_empty()
    }

    /// Counts an operation that was over when it was posted, with nothing before it. `put` says
    /// whether it needs a barrier to be visible.
    #[inline(always)]
    pub(crate) fn count_over(&mut self, put: bool) -> Handle {
        self.issued += 1;
        self.over = self.issued;
        self.unseen |= put;
        self.last = None;
        Handle(self.issued)
    }

    /// Returns whether an operation waits for others.
    pub(crate) fn is_held_up(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns up to which operation all are over.
    pub(crate) fn over(&self) -> i64 {
        self.over
    }

    /// Returns how many operations are under way.
    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }

    /// Returns the number of the last operation issued.
    pub(crate) fn issued(&self) -> i64 {
        self.issued
    }

    /// Takes an operation and starts it, unless it has to wait.
    pub(crate) fn issue(&mut self, fabric: &Fabric, kind: Kind, flight: Flight, order: Order) -> Handle {
        self.show_before(fabric, order);
        let mut after = order.last_of(self.issued);
        let mut inherited = 0;
        let pair = match kind {
            Kind::Copy(pair) => Some(pair),
            Kind::Delegated { pair, .. } => pair,
            Kind::Atomic => None,
        };
        if let Some(pair) = pair {
            if let (Order::Continue, Some((last, waits_for))) = (order, self.last)
                && last == pair
            {
                (after, inherited) = (0, waits_for);
            }
            // Copies of one pair become visible in the order issued, whatever their order says; no
            // network promises that of two puts.
            let before = self.pairs.get(&pair).copied().unwrap_or(0);
            after = after.max(before).max(inherited);
        }
        self.issued += 1;
        let id = self.issued;
        self.last = None;
        if let Some(pair) = pair {
            self.pairs.insert(pair, id);
            self.last = Some((pair, after));
        }
        if let Kind::Delegated { server, .. } = kind {
            after = after.max(self.servers.insert(server, id).unwrap_or(0));
            self.delegated.push(id);
        }
        let mut stage = Stage::Waiting(flight);
        if after <= self.over {
            self.start(id, &mut stage);
        } else {
            self.waiting.push(Reverse((after, id)));
        }
        self.pending.push_back(stage);
        Handle(id)
    }

    /// Starts an operation: posts it, and sees whether it is over.
    fn start(&mut self, id: i64, stage: &mut Stage) {
        if let Stage::Waiting(mut flight) = core::mem::replace(stage, Stage::Over) {
            // Nobody need be woken: who waits for it polls it as soon as it is the first.
            match flight.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Pending => *stage = Stage::Flying(flight),
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => self.fail(id, error),
            }
        }
    }

    /// Polls the first pending operation, and starts what waited for it alone.
    pub(crate) fn poll_front(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let id = self.over + 1;
        match self.pending.front_mut() {
            Some(Stage::Flying(flight)) => match flight.as_mut().poll(cx) {
                Poll::Pending => {
                    self.poll_delegated(cx);
                    return Poll::Pending;
                }
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => self.fail(id, error),
            },
            // What the first one waits for is over, so it has been started.
            Some(Stage::Waiting(_) | Stage::Over) | None => {}
        }
        self.pending.pop_front();
        self.over = id;
        if self.pending.is_empty() {
            self.pairs.clear();
            self.servers.clear();
            self.delegated.clear();
        }
        while let Some(&Reverse((after, waiting))) = self.waiting.peek()
            && after <= self.over
        {
            self.waiting.pop();
            let at = (waiting - self.over - 1) as usize;
            if let Some(stage) = self.pending.get_mut(at) {
                let mut taken = core::mem::replace(stage, Stage::Over);
                self.start(waiting, &mut taken);
                self.pending[at] = taken;
            }
        }
        self.wake();
        Poll::Ready(())
    }

    /// Wakes all tasks that wait.
    pub(crate) fn wake(&mut self) {
        self.wakers.drain(..).for_each(Waker::wake);
    }

    /// Makes progress until all operations up to `until` are complete; reports the first failure
    /// among them.
    pub(crate) fn poll_complete(&mut self, fabric: &Fabric, until: i64, cx: &mut Context<'_>) -> Poll<Result<()>> {
        while self.over < until {
            if self.poll_front(cx).is_pending() {
                self.remember(cx);
                return Poll::Pending;
            }
        }
        if until > 0 {
            self.show(fabric);
        }
        Poll::Ready(self.failed.report(until))
    }

    /// Makes progress until fewer than `depth` operations are under way.
    pub(crate) fn poll_room(&mut self, depth: usize, cx: &mut Context<'_>) -> Poll<()> {
        while self.pending.len() >= depth {
            if self.poll_front(cx).is_pending() {
                self.remember(cx);
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }

    /// Keeps the waker of one of several tasks that wait: each polls the same operation, which knows
    /// only the last one.
    fn remember(&mut self, cx: &Context<'_>) {
        if !self.wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
            self.wakers.push(cx.waker().clone());
        }
    }
}
