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
    queues::{executor::Executor, own::OwnSession, view::View},
};
use rdma_fabric::provider::QueueSide;

/// The number of looks: enough for an answer of another CPU, and a small part of the time before a
/// rank yields its CPU.
const LOOKS: u32 = 64;
/// The maximum number of claims that are held, since each costs time.
const MOST: usize = 8;

/// The rank's session queues whose claims this thread holds.
struct Attended<'a, 'q> {
    executor: &'a Executor<'a>,
    queues: [Option<View<'q>>; MOST],
}

impl Queue {
    /// Executes the commands of the rank's session queues as they are released, until there may be an
    /// entry on `side`, or for a short time. Returns whether there may be one.
    pub(super) fn attend(&self, side: QueueSide) -> bool {
        let job = self.endpoint.job();
        if job.oversubscribed || !self.is_session() {
            return false;
        }
        let executor = self.executor();
        let (Ok(queue), Some(sessions)) = (self.view(), self.endpoint.own_queues().sessions()) else { return false };
        let fetched = if side == QueueSide::Completion { self.poster().fetched() } else { 0 };
        let attended = Attended::new(&executor, &queue, &sessions);
        for _ in 0..LOOKS {
            attended.execute_due();
            let is_there = match side {
                QueueSide::Completion => queue.completed() != fetched,
                QueueSide::Notice => !ring::is_empty(&queue.mrq()),
            };
            if is_there || !queue.is_going() {
                return true;
            }
            core::hint::spin_loop();
        }
        false
    }
}

impl<'a, 'q> Attended<'a, 'q> {
    /// Takes the claims of `queue` and of others of `sessions`, unless another CPU holds them.
    fn new(executor: &'a Executor<'q>, queue: &View<'q>, sessions: &[OwnSession]) -> Self
    where
        'q: 'a,
    {
        let mut queues = [None; MOST];
        let others = sessions.iter().filter(|session| session.id != queue.id);
        let others = others.filter_map(|session| session.view(executor.segment));
        for (place, queue) in queues.iter_mut().zip(core::iter::once(*queue).chain(others)) {
            let me = executor.me.number();
            *place = queue.turns().take(me, |rank| executor.has_ended(rank)).then_some(queue);
        }
        Attended { executor, queues }
    }

    #[inline]
    fn execute_due(&self) {
        for queue in self.queues.iter().flatten() {
            if queue.turns().is_due() {
                self.executor.execute_held(queue);
            }
        }
    }
}

impl Drop for Attended<'_, '_> {
    /// Releases the claims, and looks again.
    fn drop(&mut self) {
        for queue in self.queues.iter().flatten() {
            let turns = queue.turns();
            turns.release();
            if turns.is_due() {
                self.executor.help(queue.id);
            }
        }
    }
}
