//! The ring of entries between the program and its helper.
//!
//! # Protocol
//! One producer at a time, one consumer. Commands are numbered from 1; command `n` is in
//! entry `(n − 1) mod length`. The producer writes the words of a free entry, and then its state (release). The
//! consumer reads the state (acquire) before it reads the words; while it has the command, only it
//! changes the state, and it frees the entry last (release), which the producer reads (acquire)
//! before it writes the entry again.

use super::EntryState;
use core::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// Words of a command.
pub(crate) const WORDS: usize = 6;

/// A word that both sides use: an atomic of the processor or of a model checker.
pub(crate) trait Word {
    fn new(value: u64) -> Self;
    fn load(&self, acquire: bool) -> u64;
    fn store(&self, value: u64, release: bool);
}

impl Word for AtomicU64 {
    fn new(value: u64) -> Self {
        AtomicU64::new(value)
    }

    #[inline]
    fn load(&self, acquire: bool) -> u64 {
        self.load(if acquire { Acquire } else { Relaxed })
    }

    #[inline]
    fn store(&self, value: u64, release: bool) {
        self.store(value, if release { Release } else { Relaxed });
    }
}

#[derive(Debug)]
pub(crate) struct Ring<W = AtomicU64> {
    entries: Box<[Entry<W>]>,
    /// The number of times that the consumer, the only writer, has set each [`EntryState`]. Read
    /// and written relaxed: they synchronize nothing.
    entered: [AtomicU64; EntryState::ALL.len()],
}

#[derive(Debug)]
struct Entry<W> {
    /// An [`EntryState`].
    state: W,
    words: [W; WORDS],
}

impl<W: Word> Ring<W> {
    /// Creates a ring of free entries.
    pub(crate) fn new(length: usize) -> Self {
        let entry = |_| Entry { state: W::new(EntryState::Free as u64), words: [(); WORDS].map(|()| W::new(0)) };
        Ring { entries: (0..length).map(entry).collect(), entered: Default::default() }
    }

    fn entry(&self, number: i64) -> &Entry<W> {
        &self.entries[(number - 1) as usize % self.entries.len()]
    }

    /// Writes command `number`, for the producer; returns false if its entry is not free yet.
    pub(crate) fn offer(&self, number: i64, command: [u64; WORDS]) -> bool {
        let entry = self.entry(number);
        // Acquire: pairs with the release in `free`, so that the consumer has read the words.
        if entry.state.load(true) != EntryState::Free as u64 {
            return false;
        }
        entry.words.iter().zip(command).for_each(|(word, value)| word.store(value, false));
        // Release: pairs with the acquire in `read`.
        entry.state.store(EntryState::Queued as u64, true);
        true
    }

    /// Returns whether command `number` could be written now. For the producer.
    pub(crate) fn has_room(&self, number: i64) -> bool {
        self.state(number) == Some(EntryState::Free)
    }

    /// Reads command `number`, for the consumer; `None` if it has not been written yet.
    pub(crate) fn read(&self, number: i64) -> Option<[u64; WORDS]> {
        let entry = self.entry(number);
        // Acquire: pairs with the release in `offer`.
        if entry.state.load(true) != EntryState::Queued as u64 {
            return None;
        }
        Some(core::array::from_fn(|at| entry.words[at].load(false)))
    }

    /// Sets the state of command `number`, for the consumer.
    pub(crate) fn set(&self, number: i64, state: EntryState) {
        self.entry(number).state.store(state as u64, false);
        self.record(state);
    }

    /// Frees the entry of command `number`, for the consumer.
    pub(crate) fn free(&self, number: i64) {
        // Release: pairs with the acquire in `offer`.
        self.entry(number).state.store(EntryState::Free as u64, true);
        self.record(EntryState::Free);
    }

    fn record(&self, state: EntryState) {
        let entered = &self.entered[state as usize];
        entered.store(entered.load(Relaxed) + 1, Relaxed);
    }

    /// Returns the number of times that the consumer has set each state, in the order of
    /// [`EntryState::ALL`]; 0 for [`EntryState::Queued`], which the producer sets.
    pub(crate) fn entered(&self) -> [u64; EntryState::ALL.len()] {
        self.entered.each_ref().map(|entered| entered.load(Relaxed))
    }

    /// Returns the state of the entry of command `number`.
    pub(crate) fn state(&self, number: i64) -> Option<EntryState> {
        EntryState::from_word(self.entry(number).state.load(true))
    }
}

#[cfg(test)]
mod model;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_used_in_turn() {
        let ring = Ring::<AtomicU64>::new(2);
        assert!(ring.offer(1, [1; WORDS]) && ring.offer(2, [2; WORDS]) && !ring.offer(3, [3; WORDS]));
        assert_eq!(ring.read(1), Some([1; WORDS]));
        ring.set(1, EntryState::Executing);
        assert_eq!((ring.read(1), ring.state(1), ring.has_room(3)), (None, Some(EntryState::Executing), false));
        ring.free(1);
        assert_eq!(ring.entered(), [1, 0, 0, 0, 1, 0, 0]);
        assert!(ring.has_room(3) && ring.offer(3, [3; WORDS]));
        assert_eq!((ring.read(2), ring.read(3)), (Some([2; WORDS]), Some([3; WORDS])));
    }
}
