//! The operations of one rank, in the order in which it issued them.
//!
//! There is no background progress. An operation starts in the call that issues it, or, if its
//! order makes it wait, in the first later call after the operations that it waits for have
//! completed. Operations complete in order, so the state of all handles is one number: the last
//! completed one. An operation that completes immediately, with no pending operation before it, is
//! never stored.

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
    collections::{BinaryHeap, HashMap, VecDeque},
};

#[derive(Default)]
pub(crate) struct Engine {
    /// Whether direct puts become visible in order without a barrier in between.
    in_order: bool,
    /// The number of operations issued, which is the handle of the last one.
    issued: i64,
    /// Whether operations completed immediately since the last barrier.
    unseen: bool,
    /// The last operations, in order, from the first one that is not complete on.
    pending: VecDeque<Stage>,
    /// For operations that have not started: the last operation that each waits for, and its
    /// number.
    waiting: BinaryHeap<Reverse<(i64, i64)>>,
    /// The last pending copy of each pair.
    pairs: HashMap<Pair, i64>,
    /// The last pending operation delegated to each rank, which executes one at a time.
    servers: HashMap<u32, i64>,
    /// The pending operations that other ranks execute.
    delegated: Vec<i64>,
    /// The last stored operation, if it was a copy: its number, its pair, and the operation that it waited for.
    last: Option<(i64, Pair, i64)>,
    /// The operations that did not start when they were issued.
    ordered: u64,
    /// Failures that have not been reported.
    failed: Failures,
    /// The wakers of other tasks that wait for operations of this rank.
    wakers: Vec<Waker>,
}

/// The state of a pending operation.
enum Stage {
    /// Waits for other operations.
    Waiting(Flight),
    Flying(Flight),
    /// Completed, behind others that are not.
    Complete,
}

impl Engine {
    pub(crate) fn new(fabric: &Fabric) -> Self {
        Engine { in_order: fabric.caps().puts_in_order, ..Engine::default() }
    }

    /// Returns whether an operation of this order may be posted immediately: nothing is pending, so
    /// it completes in order. If so, the operations that it waits for are visible.
    #[inline(always)]
    pub(crate) fn may_start(&mut self, fabric: &Fabric, order: Order) -> bool {
        self.pending.is_empty() && {
            self.show_before(fabric, order);
            true
        }
    }

    /// Makes visible the immediately completed operations that an operation of this order waits
    /// for. This includes a copy of the same pair, which precedes it regardless of the order.
    #[inline(always)]
    fn show_before(&mut self, fabric: &Fabric, order: Order) {
        if !self.in_order || !matches!(order, Order::None) {
            self.show(fabric);
        }
    }

    /// Makes visible the operations that completed immediately: direct stores, by this thread or in
    /// an earlier turn of another thread; such a turn ends with a store after them.
    #[inline(always)]
    fn show(&mut self, fabric: &Fabric) {
        if self.unseen {
            fabric.direct().barrier();
            self.unseen = false;
        }
    }

    /// Completes all issued operations without waiting, if none is pending and there is no failure
    /// to report; returns the last operation.
    #[inline(always)]
    pub(crate) fn complete_now(&mut self, fabric: &Fabric) -> Option<i64> {
        if !self.pending.is_empty() || !self.failed.is_empty() {
            return None;
        }
        self.show(fabric);
        Some(self.issued)
    }

    /// Returns whether all completed operations are visible, and all failures were reported.
    #[inline(always)]
    pub(crate) fn is_settled(&self) -> bool {
        !self.unseen && self.failed.is_empty()
    }

    /// Counts an operation that completed immediately, with no pending operation before it. The last store of a copy
    /// or of an atomic's result needs a barrier to become visible.
    #[inline(always)]
    pub(crate) fn count_over(&mut self) -> Handle {
        self.issued += 1;
        self.unseen = true;
        Handle(self.issued)
    }

    /// Returns whether an operation waits for others.
    pub(crate) fn is_held_up(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns the last operation up to which all operations are complete, except that those which completed
    /// immediately may not be visible yet.
    pub(crate) fn over(&self) -> i64 {
        self.issued - self.pending.len() as i64
    }

    /// Returns the number of operations in flight.
    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }

    /// Returns the number of the last operation issued.
    pub(crate) fn issued(&self) -> i64 {
        self.issued
    }

    /// Returns the number of operations that did not start when they were issued.
    pub(crate) fn ordered(&self) -> u64 {
        self.ordered
    }

    pub(crate) fn reset_ordered(&mut self) {
        self.ordered = 0;
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
            if let (Order::Continue, Some((last, of, waits_for))) = (order, self.last)
                && (last, of) == (self.issued, pair)
            {
                (after, inherited) = (0, waits_for);
            }
            // Copies of one pair become visible in the order issued, regardless of their `Order`;
            // no network guarantees that for two puts.
            let before = self.pairs.get(&pair).copied().unwrap_or(0);
            after = after.max(before).max(inherited);
        }
        let id = self.issued + 1;
        if let Some(pair) = pair {
            self.pairs.insert(pair, id);
            self.last = Some((id, pair, after));
        }
        if let Kind::Delegated { server, .. } = kind {
            after = after.max(self.servers.insert(server, id).unwrap_or(0));
            self.delegated.push(id);
        }
        let mut stage = Stage::Waiting(flight);
        if after <= self.over() {
            self.start(id, &mut stage);
        } else {
            self.ordered += 1;
            self.waiting.push(Reverse((after, id)));
        }
        self.pending.push_back(stage);
        self.issued = id;
        Handle(id)
    }

    /// Starts an operation: posts it, and checks whether it completes immediately.
    fn start(&mut self, id: i64, stage: &mut Stage) {
        if let Stage::Waiting(mut flight) = core::mem::replace(stage, Stage::Complete) {
            // No waker is needed: a waiting task polls the operation once it is the first pending
            // one.
            match flight.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Pending => *stage = Stage::Flying(flight),
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => self.fail(id, error),
            }
        }
    }

    /// Polls the first pending operation, and starts those that have waited only for it.
    pub(crate) fn poll_front(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let id = self.over() + 1;
        match self.pending.front_mut() {
            Some(Stage::Flying(flight)) => match flight.as_mut().poll(cx) {
                Poll::Pending => {
                    self.poll_delegated(cx);
                    return Poll::Pending;
                }
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => self.fail(id, error),
            },
            // The operation that the first one waits for is complete, so it has been started.
            Some(Stage::Waiting(_) | Stage::Complete) | None => {}
        }
        self.pending.pop_front();
        if self.pending.is_empty() {
            self.pairs.clear();
            self.servers.clear();
            self.delegated.clear();
        }
        while let Some(&Reverse((after, waiting))) = self.waiting.peek()
            && after <= id
        {
            self.waiting.pop();
            let at = (waiting - id - 1) as usize;
            if let Some(stage) = self.pending.get_mut(at) {
                let mut taken = core::mem::replace(stage, Stage::Complete);
                self.start(waiting, &mut taken);
                self.pending[at] = taken;
            }
        }
        self.wake();
        Poll::Ready(())
    }

    /// Wakes all waiting tasks.
    pub(crate) fn wake(&mut self) {
        self.wakers.drain(..).for_each(Waker::wake);
    }

    /// Makes progress until all operations up to `until` are complete; reports the first failure
    /// among them.
    pub(crate) fn poll_complete(&mut self, fabric: &Fabric, until: i64, cx: &mut Context<'_>) -> Poll<Result<()>> {
        while self.over() < until {
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

    /// Makes progress until fewer than `depth` operations are in flight.
    pub(crate) fn poll_room(&mut self, depth: usize, cx: &mut Context<'_>) -> Poll<()> {
        while self.pending.len() >= depth {
            if self.poll_front(cx).is_pending() {
                self.remember(cx);
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }

    /// Registers the waker of one of several waiting tasks: all of them poll the same operation,
    /// which keeps only the last waker.
    fn remember(&mut self, cx: &Context<'_>) {
        if !self.wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
            self.wakers.push(cx.waker().clone());
        }
    }
}
