//! Closing a queue.

use super::{Open, Queue};
use crate::queues::{config::Stop, view::directory_at};
use core::{sync::atomic::Ordering::SeqCst, time::Duration};
use rdma_fabric::control_queue::QueueError;
use std::{sync::Arc, time::Instant};

/// The number of checks whether a rank is still executing before the queue is closed anyway; its
/// words are then never reused. A command takes less time, unless its process is stopped or the
/// claim is damaged.
const CLOSING: u32 = 1 << 14;
/// The longest time that a queue that is being closed waits for replies. They arrive within a round
/// trip, or when the loss of their rank is reported.
const REPLIES: Duration = Duration::from_secs(30);

impl Queue {
    /// Closes the queue. Returns the number of commands that were never started, and an unreported
    /// error, if any.
    pub(crate) fn shut(&mut self) -> (u64, Option<QueueError>) {
        let Ok(queue) = self.view() else { return (0, None) };
        let (segment, me) = (self.endpoint.segment(), self.endpoint.me());
        if let Some(at) = directory_at(self.id) {
            segment.word(at).store(0, SeqCst);
        }
        let executor = self.endpoint.executor();
        let mut quiet = true;
        if queue.is_session() {
            self.endpoint.own_queues().remove_session(self.id);
            // A rank that is executing now stops after its command, and no rank starts executing
            // after this.
            queue.stop(Stop::Closed);
            let turns = queue.turns();
            let has_it = || turns.take(me.number(), |rank| executor.has_ended(rank));
            quiet = (0..CLOSING).any(|_| {
                has_it() || {
                    std::thread::yield_now();
                    false
                }
            });
        }
        self.settle();
        let mut poster = self.poster();
        let remaining = poster.remaining(&queue);
        let error = poster.take_error(&queue);
        drop(poster);
        self.endpoint.own_queues().set_remote(self.id, None);
        if let Some(Open { words, tags }) = self.open.take() {
            let (mut allocator, segment) = (self.endpoint.allocator(), self.endpoint.segment());
            // A rank that is still executing reads both.
            let taken = [Some(words), Arc::into_inner(tags).map(|table| table.taken)];
            for taken in taken.into_iter().flatten() {
                if quiet { allocator.free(segment, me, &taken) } else { allocator.leak(segment, &taken) }
            }
        }
        self.endpoint.own_queues().give_back(self.endpoint.job(), me, self.id);
        (remaining, error)
    }
}

impl Queue {
    /// Waits for the replies to commands that were sent to other nodes, which other threads
    /// receive: their errors must be reported.
    fn settle(&self) {
        let Some(remote) = &self.remote else { return };
        let begun = Instant::now();
        while !remote.is_idle() && begun.elapsed() < REPLIES {
            self.endpoint.job().work_between_nodes();
            std::thread::yield_now();
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.shut();
    }
}
