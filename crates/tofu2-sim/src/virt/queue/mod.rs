//! The queue of pending events: earliest first, equal times in the order of pushing.
//!
//! Two implementations with the same order, so that the trace hash of a run can be checked against a second queue.

mod binary;
mod radix;

use super::event::Event;

/// Which event queue a job uses. Both give the same run.
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
    Radix(radix::RadixHeap),
    Binary(binary::StableHeap),
}

impl EventQueue {
    pub(super) fn new(kind: QueueKind) -> Self {
        match kind {
            QueueKind::Radix => EventQueue::Radix(radix::RadixHeap::default()),
            QueueKind::Binary => EventQueue::Binary(binary::StableHeap::default()),
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

    /// The next event if its time is exactly `time`, the time of the last event popped.
    #[inline]
    pub(super) fn pop_at(&mut self, time: u64) -> Option<Event> {
        match self {
            EventQueue::Radix(q) => q.pop_at(time),
            EventQueue::Binary(q) => q.pop_at(time),
        }
    }

    /// Most bytes the queue has held at once.
    /// A guess at what comes soon. It may be wrong, and must not matter.
    #[inline]
    pub(super) fn soon(&self) -> Option<Event> {
        match self {
            EventQueue::Radix(q) => q.soon(),
            EventQueue::Binary(_) => None,
        }
    }

    pub(super) fn peak_bytes(&self) -> usize {
        match self {
            EventQueue::Radix(q) => q.peak_bytes(),
            EventQueue::Binary(q) => q.peak_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::event::Kind, *};
    use proptest::prelude::*;

    proptest! {
        /// Any interleaving of pushes (not into the past) and pops gives the same events from both queues.
        #[test]
        fn radix_agrees_with_binary(steps in prop::collection::vec((0u8..4, 0u32..64, any::<u64>()), 0..400)) {
            let mut radix = EventQueue::new(QueueKind::Radix);
            let mut binary = EventQueue::new(QueueKind::Binary);
            let mut now = 0u64;
            for (number, (action, shift, raw)) in steps.into_iter().enumerate() {
                match action {
                    0 | 1 => {
                        let event = Event::new(now.saturating_add(raw >> shift), Kind::Resume, number as u32);
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
                queue.push(Event::new(7, Kind::Resume, subject));
            }
            for subject in 0..1000 {
                assert_eq!(queue.pop().unwrap().subject(), subject);
            }
        }
    }
}
