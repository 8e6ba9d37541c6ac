//! The standard library's heap, made stable by a sequence number.

use super::super::event::Event;
use std::{cmp::Reverse, collections::BinaryHeap};

#[derive(Debug, Default)]
pub(in super::super) struct StableHeap {
    heap: BinaryHeap<Reverse<Entry>>,
    pushed: u64,
    peak: usize,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    event: Event,
}

impl Entry {
    fn key(&self) -> (u64, u64) {
        (self.event.time, self.number)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl StableHeap {
    pub(super) fn push(&mut self, event: Event) {
        self.heap.push(Reverse(Entry { number: self.pushed, event }));
        self.pushed += 1;
        self.peak = self.peak.max(self.heap.len());
    }

    pub(super) fn pop(&mut self) -> Option<Event> {
        self.heap.pop().map(|Reverse(entry)| entry.event)
    }

    pub(super) fn pop_at(&mut self, time: u64) -> Option<Event> {
        if self.heap.peek()?.0.event.time == time { self.pop() } else { None }
    }

    pub(super) fn peak_bytes(&self) -> usize {
        self.peak * size_of::<Entry>()
    }
}
