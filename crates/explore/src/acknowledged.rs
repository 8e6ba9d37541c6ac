//! A network interface that acknowledges an atomic before it has written the word to memory.
//!
//! Puts need no rule of their own: in every exploration they are complete before they are visible,
//! and a flush, the provider's read behind them, makes them visible. An atomic is *executed* at one
//! moment, when other atomics and its poster's operations find its result, and *written* at a later
//! one, when everything else finds it; then the provider's read behind it returns, and it is
//! complete. Whatever a CPU or a put has written to the word in between is lost. Atomics on a word
//! that is not yet written change the waiting value, so one write may stand for several of them. A
//! comparison that fails writes nothing; the read behind it waits for the value that it has found.

use crate::{
    act::{Act, NO_HANDLE},
    cell::CellPart,
    dropped::Holding,
    loss::{Ranks, bit},
    mix::Mix,
    rules::overlap,
    schedule::MOST_RANKS,
    state::{ALL, Item, ItemKind, Operand, Phase, State},
    world::{Halt, Move, World},
};
use rdma_fabric::{Amo, Rank};

/// Operations that a faulty provider completes when they are
/// [acknowledged](crate::Explorer::acknowledged), without a read behind them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unread {
    /// Flushes: they complete at any time. Against O5.
    Flushes,
    /// Atomics. Against O3.
    Atomics,
    /// Comparisons that fail, although others' atomics have been waited for. Against O15: the value
    /// that they have found may not be visible.
    FailedComparisons,
}

/// The way in which an atomic takes effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Execution {
    /// In memory, at one moment.
    Memory,
    /// In the network interface. It is complete when its word is written, unless it is of the
    /// operations without a read.
    Interface(Option<Unread>),
}

/// A word that atomics have changed in a network interface and not in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Unwritten {
    /// The region of the word.
    pub(crate) at: Holding,
    pub(crate) word: CellPart,
    /// The bits to be written.
    pub(crate) bits: u64,
    /// The posters of the atomics.
    pub(crate) by: Ranks,
}

impl Unwritten {
    pub(crate) fn mix(&self, mix: &mut Mix) {
        mix.add(u64::from(self.word.cell) | u64::from(self.by) << 32);
        mix.add(self.word.mask);
        mix.add(self.bits);
    }
}

impl State {
    /// Returns the bits that an atomic finds at `word`.
    pub(crate) fn found_by_atomics(&self, word: CellPart) -> u64 {
        let unwritten = self.unwritten.iter().filter(|unwritten| overlap(unwritten.word, word));
        unwritten.fold(self.read(word), |bits, newer| bits & !newer.word.mask | newer.bits & word.mask)
    }

    /// Lets a network interface execute the atomic at `place` and write its word later.
    pub(crate) fn execute(&mut self, place: usize, unread: Option<Unread>) {
        let atomic = self.items[place];
        let word = atomic.at;
        let old = word.get(self.found_by_atomics(word));
        if matches!(atomic.amo(), Amo::CompareSwap { expected, .. } if expected != old) {
            let complete =
                !self.is_unwritten(word) || matches!(unread, Some(Unread::Atomics | Unread::FailedComparisons));
            return self.executed(place, old, complete);
        }
        let mut by = bit(atomic.by);
        // Words of another width that overlap are written first.
        while let Some(place) = self.unwritten.iter().position(|unwritten| overlap(unwritten.word, word)) {
            if self.unwritten[place].word == word {
                by |= self.unwritten.remove(place).by;
            } else {
                self.write_out(place);
            }
        }
        let new = Unwritten { at: atomic.there(), word, bits: word.place(atomic.amo().apply(old)), by };
        let at = self.unwritten.partition_point(|known| (known.word.cell, known.word.mask) < (word.cell, word.mask));
        self.unwritten.insert(at, new);
        self.executed(place, old, unread == Some(Unread::Atomics));
    }

    /// Records that the atomic at `place` has found `old`, and whether it is complete.
    fn executed(&mut self, place: usize, old: u64, complete: bool) {
        if complete || self.items[place].slot == NO_HANDLE {
            return self.over(place, old);
        }
        let executed = &mut self.items[place];
        (executed.kind, executed.operand, executed.bits) = (ItemKind::Executed, Operand::None, old);
    }

    /// Writes an unwritten word to memory. Returns the posters of the atomics, and of those that have
    /// found its value.
    pub(crate) fn write_out(&mut self, place: usize) -> Ranks {
        let Unwritten { word, bits, mut by, .. } = self.unwritten.remove(place);
        self.write(word, bits);
        for place in 0..self.items.len() {
            let Item { kind, at, bits, by: poster, .. } = self.items[place];
            if kind == ItemKind::Executed && overlap(at, word) && !self.is_unwritten(at) {
                by |= bit(poster);
                self.over(place, bits);
            }
        }
        by
    }

    /// Drops a region. Its words are written first.
    pub(crate) fn drop_region(&mut self, holding: Holding) {
        while let Some(place) = self.unwritten.iter().position(|unwritten| unwritten.at == holding) {
            self.write_out(place);
        }
        self.drops.add(holding);
    }

    /// Returns whether any of `word` waits for the write of an atomic.
    fn is_unwritten(&self, word: CellPart) -> bool {
        self.unwritten.iter().any(|unwritten| overlap(unwritten.word, word))
    }

    /// Returns whether `word` waits for the write of an atomic of `by`, which that rank's later
    /// operations are behind.
    pub(crate) fn awaits_own_atomic(&self, by: Rank, word: CellPart) -> bool {
        self.unwritten.iter().any(|unwritten| unwritten.by & bit(by) != 0 && overlap(unwritten.word, word))
    }

    /// Returns whether all atomics of `by` that were executed at `target`, or at any rank if that is
    /// [`ALL`], have been written.
    pub(crate) fn has_written(&self, by: Rank, target: Rank) -> bool {
        let at = |unwritten: &Unwritten| target == ALL || unwritten.at.rank == target;
        !self.unwritten.iter().any(|unwritten| unwritten.by & bit(by) != 0 && at(unwritten))
    }

    /// Returns the index of the n-th unwritten word of `rank`.
    pub(crate) fn unwritten_of(&self, rank: Rank, number: u8) -> Option<usize> {
        let mut of = (0..self.unwritten.len()).filter(|place| self.unwritten[*place].at.rank == rank);
        of.nth(number.into())
    }
}

impl World<'_> {
    /// Returns the way in which the item at `place`, if it is an atomic, takes effect. A word that
    /// only atomics access could as well be written at once.
    pub(crate) fn execution(&self, state: &State, place: usize) -> Execution {
        let Item { kind, at: CellPart { cell, .. }, .. } = state.items[place];
        let by_interface = self.acknowledged && !self.coherent && kind == ItemKind::Atomic;
        let by_interface = by_interface && !self.is_by_own_cpu(state, place);
        // Atomics by the owner's CPU are plain accesses, too.
        let by_all = !self.reduced || self.own_by_cpu || self.automaton.job.cells.borrow().is_accessed_plainly(cell);
        if by_interface && by_all { Execution::Interface(self.unread) } else { Execution::Memory }
    }

    /// Collects the words that may be written, unless that could make no difference yet: a write
    /// commutes with everything but accesses to the word, and flushes that wait for it.
    pub(crate) fn writes(&mut self, state: &State, into: &mut Vec<Move>) -> Result<(), Halt> {
        let mut numbers = [0; MOST_RANKS];
        let mut last = None;
        for Unwritten { at, word, by, .. } in &state.unwritten {
            let number = &mut numbers[at.rank.index()];
            let write = Move::Write(at.rank.number() as u8, *number);
            *number += 1;
            let awaits = |item: &Item| match item.kind {
                ItemKind::Flush => {
                    item.phase == Phase::Posted
                        && by & bit(item.by) != 0
                        && (item.target == ALL || item.target == at.rank)
                }
                _ => overlap(item.at, *word) || overlap(item.own, *word),
            };
            if !self.reduced || state.items.iter().any(awaits) || self.may_touch_next(state, at.rank, *word)? {
                into.push(write);
            }
            last = Some(write);
        }
        if into.iter().all(|which| matches!(which, Move::Die(_))) {
            into.extend(last);
        }
        Ok(())
    }

    /// Returns whether the next act of `rank` may access `word`.
    fn may_touch_next(&mut self, state: &State, rank: Rank, word: CellPart) -> Result<bool, Halt> {
        if state.losses.is_dead(rank) {
            return Ok(false);
        }
        let mut touches = false;
        for task in self.next_tasks(state, rank) {
            self.request_ahead(state, rank.number() as u8, task, |act| {
                touches |=
                    matches!(act, Act::Load(part) | Act::Watch(part) | Act::Store(part, _) if overlap(*part, word));
            })?;
        }
        Ok(touches)
    }

    /// Returns whether the item at `place` is a flush that waits for acknowledgements only, which
    /// may arrive at any time.
    pub(crate) fn is_flush_without_read(&self, state: &State, place: usize) -> bool {
        let item = &state.items[place];
        self.unread == Some(Unread::Flushes) && item.kind == ItemKind::Flush && item.phase == Phase::Posted
    }

    /// Writes the n-th unwritten word of `rank`. Flushes that have waited for it may be complete.
    pub(crate) fn write_out(&mut self, state: &mut State, rank: Rank, number: u8) -> Result<(), Halt> {
        let Some(place) = state.unwritten_of(rank, number) else {
            return Err(Halt::Failure(format!("the schedule names unwritten word {number} of {rank}: there is none")));
        };
        self.note(|timeline, cells| timeline.writes_out(cells, state, place));
        let by = state.write_out(place);
        let posters = (0..state.ranks.len() as u32).map(Rank::new).filter(|rank| by & bit(*rank) != 0);
        for poster in posters.collect::<Vec<_>>() {
            self.resume_immediately(state, poster)?;
        }
        Ok(())
    }
}
