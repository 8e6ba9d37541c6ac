//! The end of a queue: nobody executes its commands any more, and its words are given back.

use super::{Open, Queue};
use crate::shm::control_queue::{geometry::Stop, words::directory_at};
use core::sync::atomic::Ordering::SeqCst;
use rdma_fabric::control_queue::QueueError;
use std::sync::Arc;

/// Looks at who executes before a queue is closed all the same, its words never to be used again: a command takes less,
/// unless its process is stopped or the claim is damaged.
const CLOSING: u32 = 1 << 14;

impl Queue {
    /// Close it; how many commands were never started, and the error that was not reported.
    pub(super) fn shut(&mut self) -> (u64, Option<QueueError>) {
        let Ok(queue) = self.view() else { return (0, None) };
        let (segment, me) = (self.endpoint.segment(), self.endpoint.me());
        if let Some(at) = directory_at(self.id) {
            segment.word(at).store(0, SeqCst);
        }
        let executor = self.endpoint.executor();
        let mut quiet = true;
        if queue.is_session() {
            self.endpoint.own_queues().set_session(self.id, false);
            // Whoever executes now stops after its command, and nobody comes after this.
            queue.stop(Stop::Closed);
            let turns = queue.turns();
            let has_it = || turns.seize(me.number(), |rank| executor.has_ended(rank));
            quiet = (0..CLOSING).any(|_| {
                has_it() || {
                    std::thread::yield_now();
                    false
                }
            });
        }
        let mut poster = self.poster();
        let remaining = poster.remaining(&queue);
        let error = poster.take_error(&queue);
        drop(poster);
        if let Some(Open { words, tags }) = self.open.take() {
            let (mut own, segment) = (self.endpoint.own(), self.endpoint.segment());
            // Who still executes reads both.
            let taken = [Some(words), Arc::into_inner(tags).map(|table| table.taken)];
            for taken in taken.into_iter().flatten() {
                if quiet { own.free(segment, me, &taken) } else { own.leak(segment, &taken) }
            }
        }
        self.endpoint.own_queues().give_back(self.endpoint.job(), me, self.id);
        (remaining, error)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.shut();
    }
}
