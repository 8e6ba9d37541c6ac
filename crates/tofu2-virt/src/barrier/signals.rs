//! The signals of gates, in one table for all of them.

use super::super::slots::{NONE, Slots, Slotted};
use rdma_fabric::barrier::Wave;

/// A signal: travelling to an input, waiting there, about to be sent, or for the host.
#[derive(Debug)]
pub(super) struct Signal {
    /// The arrival time, in picoseconds.
    pub(super) at: u64,
    pub(super) round: u64,
    /// `None` if it combines no inputs.
    pub(super) wave: Option<Wave>,
    next: u32,
}

/// The signals of all gates. A gate is idle most of the time, and then has none.
pub(super) type Signals = Slots<Signal>;

impl Signal {
    pub(super) fn new(at: u64, round: u64, wave: Option<Wave>) -> Self {
        Signal { at, round, wave, next: NONE }
    }
}

impl Slotted for Signal {
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

/// Signals in order of arrival: the slots of the first and the last, or [`NONE`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Input {
    first: u32,
    last: u32,
}

impl Default for Input {
    fn default() -> Self {
        Input { first: NONE, last: NONE }
    }
}

impl Input {
    pub(super) fn is_empty(self) -> bool {
        self.first == NONE
    }

    /// Returns whether it holds the signals of two rounds.
    pub(super) fn is_full(self) -> bool {
        self.first != self.last
    }

    pub(super) fn front(self, signals: &Signals) -> Option<&Signal> {
        (self.first != NONE).then(|| signals.get(self.first))
    }

    pub(super) fn back(self, signals: &Signals) -> Option<&Signal> {
        (self.last != NONE).then(|| signals.get(self.last))
    }

    pub(super) fn push(&mut self, signals: &mut Signals, signal: Signal) {
        let slot = signals.insert(signal);
        if self.last == NONE {
            self.first = slot;
        } else {
            signals.get_mut(self.last).next = slot;
        }
        self.last = slot;
    }

    /// Takes the signal at the front; returns what it carries.
    pub(super) fn pop(&mut self, signals: &mut Signals) -> Option<Option<Wave>> {
        if self.first == NONE {
            return None;
        }
        let slot = self.first;
        let signal = signals.get_mut(slot);
        let wave = signal.wave.take();
        self.first = signal.next;
        if self.first == NONE {
            self.last = NONE;
        }
        signals.free(slot);
        Some(wave)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdma_fabric::barrier::Values;

    #[test]
    fn signals_leave_in_order_and_their_slots_are_used_again() {
        let (mut signals, mut input) = (Signals::new(), Input::default());
        let round = |input: Input, signals: &Signals| input.front(signals).map(|signal| signal.round);
        for first in [1, 3, 5] {
            for round in [first, first + 1] {
                assert!(!input.is_full());
                input.push(&mut signals, Signal::new(10 * round, round, Some(Wave::Values(Values::BARRIER))));
            }
            assert!(input.is_full() && input.back(&signals).is_some_and(|last| last.at == 10 * (first + 1)));
            assert_eq!(round(input, &signals), Some(first));
            assert_eq!(input.pop(&mut signals), Some(Some(Wave::Values(Values::BARRIER))));
            assert_eq!(round(input, &signals), Some(first + 1));
            assert!(input.pop(&mut signals).is_some() && input.is_empty() && input.pop(&mut signals).is_none());
        }
        assert_eq!(signals.peak_bytes(), 2 * size_of::<Signal>());
    }
}
