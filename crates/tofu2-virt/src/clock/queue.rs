//! The queue of pending events: earliest first, simultaneous ones in the order in which they were
//! pushed.
//!
//! There are two implementations with the same order, so that the trace hash of a run can be
//! checked against a second queue.

use super::{Event, radix::RadixHeap};
use std::{cmp::Reverse, collections::BinaryHeap};

/// The event queue that a job uses. Both give the same run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueKind {
    /// Monotone radix heap with first-in-first-out buckets.
    #[default]
    Radix,
    /// The standard library's binary heap with sequence numbers: slower, for checking.
    Binary,
}

/// A monotone queue: nothing is pushed for a time before the last one popped.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "one per job")]
pub(super) enum EventQueue {
    Radix(RadixHeap<Event>),
    Binary(StableHeap),
}

impl EventQueue {
    pub(super) fn new(kind: QueueKind) -> Self {
        match kind {
            QueueKind::Radix => EventQueue::Radix(RadixHeap::default()),
            QueueKind::Binary => EventQueue::Binary(StableHeap::default()),
        }
    }

    #[inline]
    pub(super) fn push(&mut self, event: Event) {
        match self {
            EventQueue::Radix(q) => q.push(event),
            EventQueue::Binary(q) => q.push(event),
        }
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<Event> {
        match self {
            EventQueue::Radix(q) => q.pop(),
            EventQueue::Binary(q) => q.pop(),
        }
    }

    /// Takes the next event if its time is exactly `time`, which must be the time of the last event
    /// popped.
    #[inline]
    pub(super) fn pop_at(&mut self, time: u64) -> Option<Event> {
        match self {
            EventQueue::Radix(q) => q.pop_at(time),
            EventQueue::Binary(q) => q.pop_at(time),
        }
    }

    /// Returns an event that will probably be popped soon. The guess may be wrong and must not
    /// affect results.
    #[inline]
    pub(super) fn soon(&self) -> Option<Event> {
        match self {
            EventQueue::Radix(q) => q.soon(),
            EventQueue::Binary(_) => None,
        }
    }

    /// Returns the peak size of the queue, in bytes.
    pub(super) fn peak_bytes(&self) -> usize {
        match self {
            EventQueue::Radix(q) => q.peak_bytes(),
            EventQueue::Binary(q) => q.peak_bytes(),
        }
    }
}

/// The standard library's heap, made stable by a sequence number.
#[derive(Debug, Default)]
pub(super) struct StableHeap {
    /// Events with their times and sequence numbers, ordered by these.
    heap: BinaryHeap<Reverse<(u64, u64, Event)>>,
    pushed: u64,
    peak: usize,
}

impl StableHeap {
    fn push(&mut self, event: Event) {
        self.heap.push(Reverse((event.time, self.pushed, event)));
        self.pushed += 1;
        self.peak = self.peak.max(self.heap.len());
    }

    fn pop(&mut self) -> Option<Event> {
        self.heap.pop().map(|Reverse((.., event))| event)
    }

    fn pop_at(&mut self, time: u64) -> Option<Event> {
        if self.heap.peek()?.0.0 == time { self.pop() } else { None }
    }

    fn peak_bytes(&self) -> usize {
        self.peak * size_of::<(u64, u64, Event)>()
    }
}

#[cfg(test)]
mod tests {
    use super::{super::EventKind, *};
    use proptest::prelude::*;

    proptest! {
        /// Any interleaving of pushes (not into the past) and pops gives the same events from both
        /// queues.
        #[test]
        fn radix_agrees_with_binary(steps in prop::collection::vec((0u8..4, 0u32..64, any::<u64>()), 0..400)) {
            let mut radix = EventQueue::new(QueueKind::Radix);
            let mut binary = EventQueue::new(QueueKind::Binary);
            let mut now = 0u64;
            for (number, (action, shift, raw)) in steps.into_iter().enumerate() {
                match action {
                    0 | 1 => {
                        let event = Event::new(now.saturating_add(raw >> shift), EventKind::Resume, number as u32, 0);
                        radix.push(event);
                        binary.push(event);
                    }
                    2 => {
                        let (a, b) = (radix.pop(), binary.pop());
                        prop_assert_eq!(a, b);
                        now = a.map_or(now, |e| e.time);
                    }
                    _ => prop_assert_eq!(radix.pop_at(now), binary.pop_at(now)),
                }
            }
            loop {
                let (a, b) = (radix.pop(), binary.pop());
                prop_assert_eq!(a, b);
                if a.is_none() {
                    break;
                }
            }
        }
    }

    #[test]
    fn equal_times_stay_in_order() {
        for kind in [QueueKind::Radix, QueueKind::Binary] {
            let mut queue = EventQueue::new(kind);
            for subject in 0..1000 {
                queue.push(Event::new(7, EventKind::Resume, subject, 0));
            }
            for subject in 0..1000 {
                assert_eq!(queue.pop().unwrap().subject, subject);
            }
        }
    }
}
