//! The clock of a run: pending events, randomness, and a hash of the history.

mod queue;
mod radix;

pub use queue::QueueKind;

use super::chacha::ChaCha8;
use queue::EventQueue;
pub(crate) use radix::{RadixHeap, Timed};

/// Virtual time and the events that advance it.
#[derive(Debug)]
pub(super) struct Clock {
    /// Picoseconds.
    now: u64,
    /// The number of events handled.
    events: u64,
    queue: EventQueue,
    chance: Chance,
    hash: TraceHash,
}

impl Clock {
    pub(super) fn new(kind: QueueKind, chance: Chance) -> Self {
        Clock { now: 0, events: 0, queue: EventQueue::new(kind), chance, hash: TraceHash(0x243f_6a88_85a3_08d3) }
    }

    /// Returns the time of the event being handled, in picoseconds.
    #[inline]
    pub(super) fn now(&self) -> u64 {
        self.now
    }

    /// Returns the number of events handled so far.
    #[inline]
    pub(super) fn events(&self) -> u64 {
        self.events
    }

    pub(super) fn trace_hash(&self) -> u64 {
        self.hash.0 ^ self.hash.0 >> 32
    }

    /// Returns the peak size of the pending events, in bytes.
    pub(super) fn peak_bytes(&self) -> usize {
        self.queue.peak_bytes()
    }

    #[inline]
    pub(super) fn push(&mut self, time: u64, kind: EventKind, subject: u32) {
        self.queue.push(Event::new(time, kind, subject, 0));
    }

    #[inline]
    pub(super) fn push_detailed(&mut self, time: u64, kind: EventKind, subject: u32, detail: u16) {
        self.queue.push(Event::new(time, kind, subject, detail));
    }

    /// Schedules a poll of a rank's task at `time`, or never if that is the end of time.
    #[inline]
    pub(super) fn wake_at(&mut self, rank: u32, time: u64) {
        if time != u64::MAX {
            self.push(time.max(self.now), EventKind::Resume, rank);
        }
    }

    /// Takes the earliest event and advances the time to it. With shuffling, takes any of the
    /// events at the earliest time.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Event> {
        let event = self.chance.next(&mut self.queue)?;
        self.now = event.time;
        self.events += 1;
        Some(event)
    }

    /// Returns an event that will probably be handled soon. The guess may be wrong and must not
    /// affect results.
    #[inline]
    pub(super) fn soon(&self) -> Option<Event> {
        self.queue.soon()
    }

    /// Folds an event and the number of its subject into the trace hash.
    #[inline]
    pub(super) fn trace(&mut self, event: Event, who: u32) {
        self.hash.fold(event.time, event.kind as u8, who);
    }

    /// Returns a random extra latency for one leg, in picoseconds.
    #[inline]
    pub(super) fn extra(&mut self) -> u64 {
        self.chance.extra()
    }

    /// Returns whether the run has any randomness, so that message order must be enforced wherever
    /// it is guaranteed.
    #[inline]
    pub(super) fn is_random(&self) -> bool {
        self.chance.jitter > 0 || self.chance.shuffle
    }
}

/// Seeded randomness: jitter on latencies, and the order of simultaneous events. It explores
/// schedules that the model allows; the same seed gives the same run.
#[derive(Debug)]
pub(super) struct Chance {
    rng: ChaCha8,
    /// The longest extra latency of a leg, in picoseconds.
    jitter: u64,
    /// Simultaneous events, drawn in random order. Unused if `shuffle` is off.
    ties: Vec<Event>,
    shuffle: bool,
}

impl Chance {
    pub(super) fn new(seed: u64, jitter: u64, shuffle: bool) -> Self {
        Chance { rng: ChaCha8::seed_from_u64(seed), jitter, ties: Vec::new(), shuffle }
    }

    #[inline]
    fn extra(&mut self) -> u64 {
        if self.jitter == 0 { 0 } else { self.rng.below(self.jitter.saturating_add(1)) }
    }

    #[inline]
    fn next(&mut self, queue: &mut EventQueue) -> Option<Event> {
        if !self.shuffle {
            return queue.pop();
        }
        if self.ties.is_empty() {
            self.ties.push(queue.pop()?);
        }
        let time = self.ties[0].time;
        while let Some(event) = queue.pop_at(time) {
            self.ties.push(event);
        }
        let drawn = self.rng.below(self.ties.len() as u64) as usize;
        Some(self.ties.swap_remove(drawn))
    }
}

/// A 64-bit hash of a run's history. The function is fixed, so that tests may record the value.
#[derive(Clone, Copy, Debug)]
struct TraceHash(u64);

impl TraceHash {
    #[inline]
    fn fold(&mut self, time: u64, kind: u8, who: u32) {
        const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
        let what = u64::from(kind) << 32 | u64::from(who);
        let mixed = (self.0.rotate_left(23) ^ time).wrapping_mul(MULTIPLIER);
        self.0 = (mixed ^ mixed >> 29 ^ what).wrapping_mul(MULTIPLIER);
    }
}

/// The kind of an event. It determines the subject: a rank, an operation slot, a place in a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub(crate) enum EventKind {
    /// A rank's task is to be polled. Subject: rank.
    Resume,
    /// A command or its data has passed the target's receive engine. Subject: operation slot.
    Arrive,
    /// An atomic has reached the entrance of an idle atomic unit. Subject: node.
    Door,
    /// The atomic unit has finished one operation. Subject: node.
    Served,
    /// A result has reached the poster. Subject: operation slot.
    Complete,
    /// The head packet of an input queue is ready to move. Subject: node; detail: input queue.
    Head,
    /// A link or a receive engine is free again. Subject: node; detail: output.
    Output,
    /// A send engine starts the next command of a control queue. Subject: queue.
    Start,
    /// A command of a control queue has passed its target's receive engine. Subject: flight.
    Reach,
    /// The answer to a command of a control queue has reached its poster. Subject: flight.
    Answer,
    /// A fault begins. Subject: its index.
    Fault,
    /// A delayed advance takes place. Subject: its index.
    Credit,
    /// The first half of a put becomes visible. Subject: operation slot, or flight if the detail is 1.
    Half,
    /// A signal has reached a barrier gate. Subject: gate; detail: its half and life.
    Signal,
    /// A barrier gate has fired. Subject: gate; detail: its half and life.
    Fired,
}

/// A time and the event that happens then. Simultaneous events happen in the order in which they
/// were scheduled.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Event {
    /// Picoseconds.
    pub(crate) time: u64,
    pub(crate) subject: u32,
    pub(crate) detail: u16,
    pub(crate) kind: EventKind,
}

impl Event {
    #[inline]
    pub(super) fn new(time: u64, kind: EventKind, subject: u32, detail: u16) -> Self {
        Event { time, subject, detail, kind }
    }
}

impl Timed for Event {
    #[inline]
    fn time(&self) -> u64 {
        self.time
    }

    #[inline]
    fn at(self, time: u64) -> Self {
        Event { time, ..self }
    }
}

const _: () = assert!(size_of::<Event>() == 16);
