//! The words of a queue under loom, and the mutants of its protocol.

use super::super::*;
use crate::memory::word::Word;
use core::sync::atomic::Ordering;
use loom::{
    sync::{Mutex, atomic::AtomicU64 as LoomWord},
    thread,
};
use std::sync::Arc as Shared;

/// A mutant of the protocol.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Mutant {
    None,
    /// After the release, the executor does not look again.
    NoSecondLook,
    /// No barrier follows the release.
    NoReleaseBarrier,
    /// Taking the claim is not a barrier.
    NoTakeBarrier,
    /// Advances set a flag instead of adding to a count.
    Boolean,
    /// An advance does not release.
    RelaxedAdvance,
    /// The poster has no barrier between its command and its check of the credit.
    NoPosterBarrier,
    /// The advance precedes the data.
    AdvanceFirst,
    /// A rank that finds the claim taken executes anyway.
    NoClaim,
}

pub(super) struct Cell {
    word: LoomWord,
    mutant: Mutant,
}

impl Word for Cell {
    fn load(&self, order: Ordering) -> u64 {
        self.word.load(order)
    }
    fn store(&self, value: u64, order: Ordering) {
        self.word.store(value, order);
    }
    fn replace(&self, current: u64, new: u64, success: Ordering, failure: Ordering) -> Result<(), u64> {
        if self.mutant == Mutant::NoClaim && current == 0 {
            let _ = self.word.compare_exchange(current, new, success, failure);
            return Ok(());
        }
        self.word.compare_exchange(current, new, success, failure).map(drop)
    }
}

impl Fencing for Cell {
    fn add_and_fence(&self, more: u64) -> u64 {
        match self.mutant {
            Mutant::Boolean => self.word.store(1, Release),
            Mutant::RelaxedAdvance => _ = self.word.fetch_add(more, Relaxed),
            _ => _ = self.word.fetch_add(more, AcqRel),
        }
        if self.mutant != Mutant::RelaxedAdvance {
            loom::sync::atomic::fence(Ordering::SeqCst);
        }
        self.word.load(Relaxed)
    }
    fn store_and_fence(&self, value: u64) {
        self.word.store(value, Release);
        if !matches!(self.mutant, Mutant::NoPosterBarrier | Mutant::NoReleaseBarrier) {
            loom::sync::atomic::fence(Ordering::SeqCst);
        }
    }
    fn fence_at_rmw(&self) {
        if self.mutant != Mutant::NoTakeBarrier {
            loom::sync::atomic::fence(Ordering::SeqCst);
        }
    }
}

/// A queue of commands that each copy a word of data, which the rank that releases the command has
/// written.
pub(super) struct Queue {
    claim: Cell,
    stage: Cell,
    started: Cell,
    scheduled: Cell,
    pub(super) data: [LoomWord; 2],
    mutant: Mutant,
    /// The position and data of each executed command. Never contended if one rank executes at a
    /// time.
    log: Mutex<Vec<(u64, u64)>>,
}

impl Queue {
    pub(super) fn new(mutant: Mutant) -> Shared<Self> {
        let of = |wanted: Mutant| Cell {
            word: LoomWord::new(0),
            mutant: if mutant == wanted { mutant } else { Mutant::None },
        };
        let of_claim = [Mutant::NoClaim, Mutant::NoReleaseBarrier, Mutant::NoTakeBarrier];
        Shared::new(Queue {
            mutant,
            // Only the claim may be taken twice.
            claim: of(of_claim.into_iter().find(|&wanted| wanted == mutant).unwrap_or(Mutant::None)),
            stage: of(Mutant::None),
            started: of(Mutant::NoPosterBarrier),
            scheduled: if mutant == Mutant::Boolean { of(Mutant::Boolean) } else { of(Mutant::RelaxedAdvance) },
            data: [LoomWord::new(0), LoomWord::new(0)],
            log: Mutex::new(Vec::new()),
        })
    }

    pub(super) fn words(&self) -> ClaimWords<'_, Cell> {
        let Queue { claim, stage, started, scheduled, .. } = self;
        ClaimWords { claim, stage, started, scheduled, depth: 8 }
    }

    fn execute(&self, due: DueCommand) -> Attempt {
        let data = self.data[due.position as usize].load(Relaxed);
        let mut log = self.log.try_lock().expect("two execute at once");
        log.push((due.position, data));
        Attempt::Took(1)
    }

    pub(super) fn turn(&self, me: u32, has_ended: impl Fn(u32) -> bool, most: u32) -> TurnEnd {
        if self.mutant != Mutant::NoSecondLook {
            return self.words().turn(me, has_ended, most, |due| self.execute(due));
        }
        if self.words().take(me, has_ended) {
            self.words().execute_due(&mut { most }, &mut |due| self.execute(due));
            self.words().release();
        }
        TurnEnd::Nothing
    }

    /// Advances by one; then takes a turn if a command is due and no other rank will look.
    pub(super) fn advance(&self, me: u32) {
        self.words().advance(1);
        if !self.words().is_taken(me, |_| false) && self.words().is_due() {
            assert_ne!(self.turn(me, |_| false, 8), TurnEnd::More);
        }
    }

    /// Waits as the owner, rank 0, which holds the claim between its looks.
    pub(super) fn attend(&self) {
        if self.words().take(0, |_| false) {
            for _ in 0..2 {
                self.words().execute_due(&mut 8, &mut |due| self.execute(due));
            }
            self.words().release();
            if self.mutant != Mutant::NoSecondLook && self.words().is_due() {
                assert_ne!(self.turn(0, |_| false, 8), TurnEnd::More);
            }
        }
    }

    /// Simulates an arrival: writes the data, advances, executes.
    pub(super) fn arrive(&self, me: u32, mutant: Mutant) {
        let store = || self.data.iter().for_each(|word| word.store(7, Relaxed));
        if mutant != Mutant::AdvanceFirst {
            store();
        }
        if mutant == Mutant::AdvanceFirst {
            self.words().advance(1);
            // So that another rank may execute first.
            thread::yield_now();
            let left = self.turn(me, |_| false, 8);
            store();
            assert_ne!(left, TurnEnd::More);
            return;
        }
        self.advance(me);
    }

    pub(super) fn log(&self) -> Vec<(u64, u64)> {
        core::mem::take(&mut self.log.lock().unwrap())
    }
}
