//! Waiting at a session queue, while this CPU executes the rank's commands.
//!
//! A rank that waits at one of its session queues looks at it repeatedly, and meanwhile holds the
//! claims of its session queues. A peer that advances one of them leaves the commands to this CPU,
//! which finds them, their data and their completions in its own caches; the peer would have to
//! fetch each of these lines, and this rank to fetch it back. The claims are released before the
//! call returns, so that peers execute the commands whenever this rank does anything else.

use super::Queue;
use crate::{
    notices::ring,
    queues::{
        executor::{Executor, WorkList},
        lock::LockGuard,
        own::Cached,
        view::View,
    },
};
use rdma_fabric::{control_queue::ExpectedReports, provider::QueueSide};

/// The number of looks: enough for an answer of another CPU, and a small part of the time before a
/// rank yields its CPU.
const LOOKS: u32 = 64;
/// The maximum number of claims that are held, since each costs time.
const MOST: usize = 8;

impl Queue {
    /// Executes the commands of the rank's session queues as they are released, until there may be an
    /// entry on `side`, or for a short time. Returns whether there may be one.
    pub(super) fn attend(&self, side: QueueSide) -> bool {
        let Ok(queue) = self.view() else { return false };
        match side {
            QueueSide::Completion => {
                let fetched = self.poster().fetched();
                self.attend_until(&queue, || queue.completed() != fetched)
            }
            QueueSide::Notice => self.attend_until(&queue, || !ring::is_empty(&queue.mrq())),
        }
    }

    /// Takes expected reports that have arrived or, if `is_wait`, arrive while it executes the commands
    /// of the rank's session queues for a short time.
    pub(super) fn take_reports(&self, expected: &mut ExpectedReports, is_wait: bool) {
        let Ok(queue) = self.view() else { return };
        self.take_arrived(&queue, expected);
        if is_wait && !expected.is_empty() {
            self.attend_until(&queue, || {
                self.take_arrived(&queue, expected);
                expected.is_empty()
            });
        }
    }

    #[inline(always)]
    fn take_arrived(&self, queue: &View<'_>, expected: &mut ExpectedReports) {
        while expected.notices > 0 {
            if !queue.mrq().take_put(expected.edata) {
                return;
            }
            expected.notices -= 1;
        }
        if expected.completions > 0 {
            self.poster().take_completions(queue, &mut expected.completions);
        }
    }

    /// Executes the commands of the rank's session queues as they are released, until this `queue` has
    /// stopped, `is_over` returns true, or for a short time. Returns whether one of the first two is
    /// the case.
    #[inline(always)]
    fn attend_until(&self, queue: &View<'_>, mut is_over: impl FnMut() -> bool) -> bool {
        if self.endpoint.job().oversubscribed || !self.is_session() {
            return false;
        }
        let executor = self.executor();
        let Some(cached) = self.endpoint.own_queues().cached() else { return false };
        let mut attended = Attended::new(&executor, queue, cached);
        for _ in 0..LOOKS {
            attended.execute_due();
            if is_over() || !queue.is_going() {
                return true;
            }
            core::hint::spin_loop();
        }
        false
    }
}

/// The rank's session queues whose claims this thread holds.
struct Attended<'a, 'q> {
    executor: &'a Executor<'q>,
    /// The first [`Attended::held`] hold a queue.
    queues: [Option<View<'q>>; MOST],
    held: usize,
    work: WorkList<'q>,
}

impl<'a, 'q> Attended<'a, 'q> {
    /// Takes the claims of `queue` and of others of the rank, unless another CPU holds them. The queues
    /// stay open until `cached` is released.
    fn new(executor: &'a Executor<'q>, queue: &View<'q>, cached: LockGuard<'q, Cached>) -> Self {
        let mut attended = Attended { executor, queues: [None; MOST], held: 0, work: WorkList::new() };
        let others = cached.sessions.iter().filter(|session| session.id != queue.id);
        let others = others.filter_map(|session| session.view(executor.segment));
        for queue in core::iter::once(*queue).chain(others).take(MOST) {
            let me = executor.me.number();
            if queue.turns().take(me, |rank| executor.has_ended(rank)) {
                attended.queues[attended.held] = Some(queue);
                attended.held += 1;
            }
        }
        attended.work.cached = Some(cached);
        attended
    }

    #[inline(always)]
    fn execute_due(&mut self) {
        for queue in self.queues[..self.held].iter().flatten() {
            if queue.turns().is_due() {
                self.executor.execute_held(queue, &mut self.work);
            }
        }
    }
}

impl Drop for Attended<'_, '_> {
    /// Releases the claims, and looks again.
    fn drop(&mut self) {
        for queue in self.queues[..self.held].iter().flatten() {
            let turns = queue.turns();
            turns.release();
            if turns.is_due() {
                self.executor.help_with(queue.id, &mut self.work);
            }
        }
    }
}
