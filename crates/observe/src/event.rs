//! Events: operations and waits, in the order in which they ended.

use crate::counts::WaitKind;
use rdma_fabric::{Amo, Notice, RemoteAddr};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A put.
    Put,
    /// A put with a notice.
    PutNotify,
    /// A get.
    Get,
    /// A third-party copy, to the peer.
    Copy,
    /// Fetch-and-add.
    Add,
    /// Fetch-and-store.
    Swap,
    /// Compare-and-swap.
    CompareSwap,
    /// Or.
    Or,
    /// And.
    And,
    /// Exclusive or.
    Xor,
    /// An operation that does nothing.
    Nop,
    /// A notice was taken, waited for or not.
    Notice,
    /// A flush.
    Flush,
    /// A wait for a word of local memory.
    WaitWord,
    /// A wait for a notice that ended without one.
    WaitNotice,
    /// A wait for room in a queue.
    WaitRoom,
    /// A wait for barrier gates.
    WaitGate,
    /// Symmetric allocation, or the end of operations inside a region.
    Registration,
    /// The program slept.
    Sleep,
    /// The program computed, in virtual time.
    Compute,
}

impl EventKind {
    /// Returns its name in a timeline viewer.
    pub fn name(self) -> &'static str {
        match self {
            EventKind::Put => "put",
            EventKind::PutNotify => "put with notice",
            EventKind::Get => "get",
            EventKind::Copy => "third-party copy",
            EventKind::Add => "fetch-add",
            EventKind::Swap => "swap",
            EventKind::CompareSwap => "compare-swap",
            EventKind::Or => "fetch-or",
            EventKind::And => "fetch-and",
            EventKind::Xor => "fetch-xor",
            EventKind::Nop => "nop",
            EventKind::Notice => "notice",
            EventKind::Flush => "flush",
            EventKind::WaitWord => "wait for word",
            EventKind::WaitNotice => "wait for notice",
            EventKind::WaitRoom => "wait for room",
            EventKind::WaitGate => "wait for gates",
            EventKind::Registration => "registration",
            EventKind::Sleep => "sleep",
            EventKind::Compute => "compute",
        }
    }

    /// Returns its category in a viewer: `operation`, `wait` or `program`.
    pub fn category(self) -> &'static str {
        match self {
            EventKind::Notice
            | EventKind::Flush
            | EventKind::WaitWord
            | EventKind::WaitNotice
            | EventKind::WaitRoom
            | EventKind::WaitGate
            | EventKind::Registration => "wait",
            EventKind::Sleep | EventKind::Compute => "program",
            _ => "operation",
        }
    }

    /// Returns the kind of an atomic.
    pub(crate) fn of_atomic<W>(amo: &Amo<W>) -> EventKind {
        match amo {
            Amo::Add(_) => EventKind::Add,
            Amo::Swap(_) => EventKind::Swap,
            Amo::CompareSwap { .. } => EventKind::CompareSwap,
            Amo::Or(_) => EventKind::Or,
            Amo::And(_) => EventKind::And,
            Amo::Xor(_) => EventKind::Xor,
        }
    }

    /// Returns the kind of event of a wait, if it has one.
    pub(crate) fn of_wait(kind: WaitKind) -> Option<EventKind> {
        Some(match kind {
            WaitKind::Word => EventKind::WaitWord,
            WaitKind::Notice => EventKind::WaitNotice,
            WaitKind::Room => EventKind::WaitRoom,
            WaitKind::Flush => EventKind::Flush,
            WaitKind::Registration => EventKind::Registration,
            WaitKind::Gate => EventKind::WaitGate,
            // The operation is an event itself.
            WaitKind::Operation => return None,
        })
    }
}

/// One operation or wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Its kind.
    pub kind: EventKind,
    /// The other rank, if there was one.
    pub peer: Option<u32>,
    /// When it was posted or began, in picoseconds of the job's time.
    pub begin_ps: u64,
    /// When the program observed its completion, in picoseconds of the job's time.
    pub end_ps: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// The region, as [`rdma_fabric::RegionKey::to_bits`].
    pub region: Option<u64>,
    /// The offset of the first byte in the region.
    pub offset: Option<u64>,
    /// The notice's number among those between the two ranks, from 0. Both ends know it.
    pub notice: Option<u64>,
}

impl Event {
    /// Creates an event without details.
    pub(crate) fn new(kind: EventKind, peer: Option<u32>, begin_ps: u64) -> Self {
        Event { kind, peer, begin_ps, end_ps: begin_ps, bytes: 0, region: None, offset: None, notice: None }
    }

    /// Adds the address: the event concerns `bytes` bytes at `addr`.
    pub(crate) fn at(self, addr: RemoteAddr, bytes: usize) -> Self {
        Event { bytes: bytes as u64, region: Some(addr.region.to_bits()), offset: Some(addr.offset), ..self }
    }

    /// Turns the event into the arrival of its poster's `number`-th notice.
    pub(crate) fn arrived(self, notice: &Notice, number: u64) -> Self {
        let region = Some(notice.region.to_bits());
        Event { kind: EventKind::Notice, region, offset: Some(notice.end), notice: Some(number), ..self }
    }
}

/// The latest events of a rank.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Events {
    /// Never longer than `limit`.
    latest: VecDeque<Event>,
    limit: usize,
    /// The number of earlier events that were dropped.
    dropped: u64,
}

impl Events {
    pub(crate) fn new(limit: usize) -> Self {
        Events { latest: VecDeque::new(), limit, dropped: 0 }
    }

    pub(crate) fn push(&mut self, event: Event) {
        if self.latest.len() >= self.limit {
            self.dropped += 1;
            if self.latest.pop_front().is_none() {
                return;
            }
        }
        self.latest.push_back(event);
    }

    /// Returns the newest event for which `is_it` holds, if it is among the latest 64.
    pub(crate) fn newest(&mut self, is_it: impl Fn(&Event) -> bool) -> Option<&mut Event> {
        self.latest.iter_mut().rev().take(64).find(|event| is_it(event))
    }

    /// Iterates over the events in the order in which they ended.
    pub fn iter(&self) -> impl Iterator<Item = &Event> {
        self.latest.iter()
    }

    /// Returns the number of events that are kept.
    pub fn len(&self) -> usize {
        self.latest.len()
    }

    /// Returns whether no event is kept.
    pub fn is_empty(&self) -> bool {
        self.latest.is_empty()
    }

    /// Returns the number of earlier events that were dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_kept_and_the_rest_is_counted() {
        for (limit, kept) in [(0, vec![]), (1, vec![9]), (4, vec![6, 7, 8, 9]), (20, (0..10).collect())] {
            let mut events = Events::new(limit);
            (0..10).for_each(|at| events.push(Event::new(EventKind::Put, None, at)));
            assert_eq!(events.iter().map(|event| event.begin_ps).collect::<Vec<_>>(), kept);
            assert_eq!(events.dropped(), 10 - kept.len() as u64);
        }
    }
}
