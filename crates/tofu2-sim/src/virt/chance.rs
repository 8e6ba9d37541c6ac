//! Seeded chance: jitter on latencies and the order of events at one moment. Off by default.

use super::{chacha::ChaCha8, event::Event, queue::EventQueue};

/// Explores schedules that the model allows; the same seed gives the same run.
#[derive(Debug)]
pub(super) struct Chance {
    rng: ChaCha8,
    /// Longest extra latency of a leg, in picoseconds.
    jitter: u64,
    /// Events of one moment, drawn from in random order. Unused if `shuffle` is off.
    ties: Vec<Event>,
    shuffle: bool,
}

impl Chance {
    pub(super) fn new(seed: u64, jitter: u64, shuffle: bool) -> Self {
        Chance { rng: ChaCha8::seed_from_u64(seed), jitter, ties: Vec::new(), shuffle }
    }

    /// Whether anything is left to chance, so that order between messages must be kept explicitly where it is promised.
    #[inline]
    pub(super) fn is_active(&self) -> bool {
        self.jitter > 0 || self.shuffle
    }

    /// Extra latency for one leg, in picoseconds.
    #[inline]
    pub(super) fn extra(&mut self) -> u64 {
        if self.jitter == 0 { 0 } else { self.rng.below(self.jitter.saturating_add(1)) }
    }

    /// The next event: the earliest, and with shuffling any of those at that moment.
    #[inline]
    pub(super) fn next(&mut self, queue: &mut EventQueue) -> Option<Event> {
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
