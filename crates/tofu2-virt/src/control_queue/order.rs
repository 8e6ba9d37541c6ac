//! Strong order: the commands of a queue that must wait at their target for others.
//!
//! The network keeps the order of one queue's commands to one target, and that of the answers, with
//! or without jitter. So only an atomic can be overtaken: it takes effect only when the atomic unit
//! has executed it. Each pair of queue and target counts the atomics sent and executed. A strongly
//! ordered command records how many were sent before it, and waits at the target until the same
//! number have been executed.

use super::super::core::Core;
use super::{Queues, flight::Flight};
use rdma_fabric::control_queue::QueueId;
use std::collections::VecDeque;

/// A queue's state for one target.
#[derive(Debug)]
pub(super) struct Pair {
    target: QueueId,
    /// Only with jitter or shuffled ties: the times at which the last command and the last answer
    /// arrive, in picoseconds.
    last: u64,
    last_answer: u64,
    /// The numbers of atomics sent, and of those that took effect or failed. Both wrap.
    sent: u32,
    served: u32,
    /// Flights that have arrived and are waiting, in order.
    held: VecDeque<u32>,
}

impl Pair {
    /// Returns whether some of the `after` atomics before a command have not been executed yet.
    fn is_behind(&self, after: u32) -> bool {
        self.served.wrapping_sub(after) > u32::MAX / 2
    }
}

impl Queues {
    fn pair(&mut self, queue: u32, target: QueueId) -> &mut Pair {
        let pairs = &mut self.get_mut(queue).pairs;
        let at = match pairs.binary_search_by_key(&target, |pair| pair.target) {
            Ok(at) => at,
            Err(at) => {
                let new = Pair { target, last: 0, last_answer: 0, sent: 0, served: 0, held: VecDeque::new() };
                pairs.insert(at, new);
                at
            }
        };
        &mut pairs[at]
    }

    /// Assigns a command that is being sent its place among the atomics.
    #[inline]
    pub(super) fn line_up(&mut self, flight: &mut Flight) {
        let atomic = flight.opcode.is_atomic();
        if atomic || !self.get(flight.queue).pairs.is_empty() {
            let pair = self.pair(flight.queue, flight.to);
            flight.after = pair.sent;
            pair.sent = pair.sent.wrapping_add(u32::from(atomic));
        }
    }

    /// Returns the arrival time of a flight that would arrive at `arrival`, in a run with
    /// randomness. Called in sending order.
    pub(super) fn arrives_in_order(&mut self, slot: u32, arrival: u64) -> u64 {
        let Flight { queue, to, .. } = *self.flights.get(slot);
        let pair = self.pair(queue, to);
        pair.last = arrival.max(pair.last.saturating_add(1));
        pair.last
    }

    /// Returns the arrival time of an answer that would arrive at `arrival`, in a run with
    /// randomness. Called in the order in which answers leave the target.
    pub(super) fn answers_in_order(&mut self, slot: u32, arrival: u64) -> u64 {
        let Flight { queue, to, .. } = *self.flights.get(slot);
        let pair = self.pair(queue, to);
        pair.last_answer = arrival.max(pair.last_answer.saturating_add(1));
        pair.last_answer
    }

    /// Returns whether a flight that has arrived must wait at the target, and keeps it if so.
    #[inline]
    pub(super) fn holds(&mut self, slot: u32) -> bool {
        let flight = self.flights.get(slot);
        let (queue, to, after) = (flight.queue, flight.to, flight.after);
        let (strong, atomic) = (flight.wants.strong_order, flight.opcode.is_atomic());
        if !(strong || atomic) || self.get(queue).pairs.is_empty() {
            return false;
        }
        let pair = self.pair(queue, to);
        // Atomics are served in order anyway.
        let waits = !pair.held.is_empty() || strong && !atomic && pair.is_behind(after);
        if waits {
            pair.held.push_back(slot);
        }
        waits
    }

    /// Takes the next flight that no longer has to wait.
    fn let_go(&mut self, queue: u32, target: QueueId) -> Option<u32> {
        let head = *self.pair(queue, target).held.front()?;
        let after = self.flights.get(head).after;
        let pair = self.pair(queue, target);
        if pair.is_behind(after) { None } else { pair.held.pop_front() }
    }
}

impl Core {
    /// Counts an atomic of the queue to this target that has taken effect or failed, and lets the
    /// flights waiting behind it continue.
    pub(super) fn atomic_over(&mut self, queue: u32, target: QueueId) {
        let pair = self.queues.pair(queue, target);
        pair.served = pair.served.wrapping_add(1);
        if !pair.held.is_empty() {
            while let Some(slot) = self.queues.let_go(queue, target) {
                self.take_effect(slot);
            }
        }
    }
}
