//! Mutants specific to the locks that count their readers: reader preference, flat and packed,
//! and writer preference. Steps are named as in the locks' documentation.

use super::{
    QueuedMutant,
    words::{PASSED, next_word, wake, word},
};
use rdma_fabric::{Amo, Rank, RemoteAddr};
use std::cell::Cell;

/// The lock's home, if it matters.
const HOME: Rank = Rank::new(0);

const COUNT: u64 = 0;
const READERS: u64 = 8;
pub(super) const TAIL: u64 = 16;
const HEAD: u64 = 24;
const INTERESTED: u64 = 1;
const ACTIVE: u64 = 2;
const READER: u64 = 4;
const READERS_WAIT: u64 = 1 << 31;
/// X2 when there is no head to take out.
const LEAVE: Amo<u64> = Amo::Add(ACTIVE.wrapping_neg());

fn at_count(addr: RemoteAddr, amo: Amo<u64>) -> Option<Move> {
    if word(addr, COUNT) { Move::of(amo) } else { None }
}

/// The effect of an atomic on the count word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    /// U1.
    Uncount,
    /// W4, X6.
    ShowInterest,
    /// W3–W5 as one operation.
    EnterFree,
    /// U2, W5, X7.
    Activate,
    /// A hand-over from a writer to the next by one comparison.
    HandOver,
    /// X2.
    Leave,
    /// The first waiting reader announces that readers wait.
    TellOfReaders,
    /// The rank that takes the stack withdraws that announcement.
    ForgetReaders,
}

impl Move {
    fn of(amo: Amo<u64>) -> Option<Move> {
        let flags = |word: u64| word & (INTERESTED | ACTIVE);
        match amo {
            Amo::Add(more) if more == READER.wrapping_neg() => Some(Move::Uncount),
            Amo::Add(more) if flags(more) == INTERESTED => Some(Move::ShowInterest),
            Amo::Add(more) if more > 1 << 63 && flags(more.wrapping_neg()) == ACTIVE => Some(Move::Leave),
            Amo::CompareSwap { expected: 0, new } if flags(new) == ACTIVE => Some(Move::EnterFree),
            Amo::CompareSwap { expected, new } if flags(new) == ACTIVE => {
                Some(if flags(expected) == INTERESTED { Move::Activate } else { Move::HandOver })
            }
            Amo::Or(READERS_WAIT) => Some(Move::TellOfReaders),
            Amo::And(mask) if mask == !READERS_WAIT => Some(Move::ForgetReaders),
            _ => None,
        }
    }
}

/// A [`QueuedMutant`] at one rank.
#[derive(Debug)]
pub(super) struct Counted {
    mutant: QueuedMutant,
    /// The id that this rank last stored in the head.
    registered: Cell<Option<u64>>,
    /// Step X2, if it is still pending.
    active: Cell<Option<Amo<u64>>>,
    /// Whether the next subtraction undoes a refused addition.
    refused: Cell<bool>,
    /// Whether a reader of this rank is counted.
    reads: Cell<bool>,
    /// The progress of a late X3.
    sweep: Cell<Sweep>,
}

/// A late X3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sweep {
    #[default]
    Nothing,
    /// X2 is done, and X3 has not begun.
    Left,
    /// X3 is still pending.
    Owed,
    /// X3 is in progress; the reader on top of the stack is still to be woken.
    Begun,
}

impl Counted {
    pub(super) fn new(mutant: QueuedMutant) -> Self {
        Counted {
            mutant,
            registered: Cell::default(),
            active: Cell::default(),
            refused: Cell::default(),
            reads: Cell::default(),
            sweep: Cell::default(),
        }
    }

    /// Returns whether `amo` is X3 or R5.
    fn sweeps(&self, addr: RemoteAddr, amo: Amo<u64>) -> bool {
        self.mutant == QueuedMutant::SweepAfterRegistration && word(addr, READERS) && amo == Amo::Swap(0)
    }

    /// Whether a reader of this rank is counted.
    pub(super) fn reads(&self) -> bool {
        self.reads.get()
    }

    pub(super) fn got(&self, addr: RemoteAddr, bits: u64) -> u64 {
        match self.mutant {
            QueuedMutant::NoSecondLook if word(addr, COUNT) => bits | ACTIVE,
            QueuedMutant::RememberedNext if word(addr, HEAD) => self.registered.get().unwrap_or(bits),
            _ => bits,
        }
    }

    pub(super) fn first(&self, addr: RemoteAddr, amo: Amo<u64>) -> Option<(RemoteAddr, Amo<u64>)> {
        let ends_queue = word(addr, TAIL) && matches!(amo, Amo::CompareSwap { new: 0, .. });
        if self.mutant == QueuedMutant::SweepAsPrinted {
            return ends_queue.then_some((RemoteAddr { offset: READERS, ..addr }, Amo::Swap(0)));
        }
        let leave = if ends_queue { self.active.take() } else { None };
        leave.map(|leave| (RemoteAddr { offset: COUNT, ..addr }, leave))
    }

    pub(super) fn puts(&self, addr: RemoteAddr, amo: Amo<u64>) -> Option<(RemoteAddr, u64)> {
        let leaves = self.mutant == QueuedMutant::HeadClearedUnflushed && at_count(addr, amo) == Some(Move::Leave);
        leaves.then_some((RemoteAddr { offset: HEAD, ..addr }, 0))
    }

    pub(super) fn atomic(&self, addr: RemoteAddr, amo: Amo<u64>) -> Amo<u64> {
        if word(addr, COUNT) {
            self.reads.set(amo == Amo::Add(READER));
            if self.sweep.get() == Sweep::Left {
                self.sweep.set(Sweep::Nothing);
            }
        }
        // Or(0) reads and leaves the value unchanged.
        match (self.mutant, at_count(addr, amo), amo) {
            (QueuedMutant::LeaveMergedWithInterest, Some(Move::Leave), _) => {
                self.active.set(Some(amo));
                Amo::Or(0)
            }
            (QueuedMutant::LeaveMergedWithInterest, Some(Move::ShowInterest), Amo::Add(interest)) => {
                match self.active.get() {
                    Some(Amo::Add(less)) => Amo::Add(interest.wrapping_add(less)),
                    _ => amo,
                }
            }
            (QueuedMutant::FlagsAsPrinted, Some(Move::ShowInterest), Amo::Add(INTERESTED)) => Amo::Or(INTERESTED),
            (QueuedMutant::FlagsAsPrinted, Some(Move::Leave), _) if amo == LEAVE => Amo::And(!ACTIVE),
            (QueuedMutant::HeadNotNamed, Some(Move::ShowInterest), _) => Amo::Add(INTERESTED),
            (QueuedMutant::HeadKept, Some(Move::Leave), _) => Amo::Add(ACTIVE.wrapping_neg()),
            (QueuedMutant::StaysCounted, Some(Move::Uncount), _) if self.refused.take() => Amo::Or(0),
            (QueuedMutant::NobodyTold, Some(Move::TellOfReaders), _) => Amo::Or(0),
            (QueuedMutant::ToldTooLate, Some(Move::ForgetReaders), _) => Amo::Or(0),
            (QueuedMutant::StoreForSubtract, Some(Move::Uncount), _) => Amo::Swap(0),
            (QueuedMutant::NoSweep, _, Amo::Swap(0)) if word(addr, READERS) => Amo::Or(0),
            (QueuedMutant::SweepAfterRegistration, Some(Move::Leave), _) => {
                self.sweep.set(Sweep::Left);
                amo
            }
            _ if self.sweeps(addr, amo) && self.sweep.get() == Sweep::Left => {
                self.sweep.set(Sweep::Owed);
                Amo::Or(0)
            }
            _ => amo,
        }
    }

    pub(super) fn continues(&self, addr: RemoteAddr, amo: Amo<u64>) -> bool {
        match self.sweep.get() {
            Sweep::Owed => {
                let last = matches!(amo, Amo::CompareSwap { new: 0, .. }) && word(addr, TAIL);
                let marks = matches!(amo, Amo::CompareSwap { new: PASSED, .. }) && next_word(addr);
                last || marks || at_count(addr, amo) == Some(Move::ShowInterest)
            }
            Sweep::Begun => self.sweeps(addr, amo),
            _ => self.mutant == QueuedMutant::ToldTooLate && word(addr, READERS) && amo == Amo::Swap(0),
        }
    }

    pub(super) fn then(&self, addr: RemoteAddr, amo: Amo<u64>, old: u64) -> Option<(RemoteAddr, Amo<u64>)> {
        match (self.sweep.get(), amo) {
            // A writer comes next: X3 comes with X6.
            (Sweep::Owed, Amo::CompareSwap { expected, .. }) if old != expected => None,
            (Sweep::Owed, _) => {
                self.sweep.set(Sweep::Begun);
                Some((RemoteAddr { rank: HOME, offset: READERS, ..addr }, Amo::Swap(0)))
            }
            (Sweep::Begun, _) => {
                self.sweep.set(Sweep::Nothing);
                (old != 0).then(|| wake(addr, old))
            }
            _ => Some((RemoteAddr { offset: COUNT, ..addr }, Amo::And(!READERS_WAIT))),
        }
    }

    pub(super) fn result(&self, addr: RemoteAddr, amo: Amo<u64>, old: u64) -> u64 {
        match (self.mutant, at_count(addr, amo), amo) {
            (QueuedMutant::NoSecondLook, Some(Move::TellOfReaders), _) => old | ACTIVE,
            (QueuedMutant::StaysCounted, None, Amo::Add(READER)) if word(addr, COUNT) => {
                self.refused.set(old & (INTERESTED | ACTIVE) != 0);
                old
            }
            (QueuedMutant::ComparisonIgnored, Some(Move::Activate), Amo::CompareSwap { expected, .. })
            | (QueuedMutant::HandOverIgnored, Some(Move::HandOver), Amo::CompareSwap { expected, .. })
            | (QueuedMutant::ShortcutIgnored, Some(Move::EnterFree), Amo::CompareSwap { expected, .. }) => expected,
            (QueuedMutant::OneComparison, Some(Move::Activate), Amo::CompareSwap { expected, .. })
                if old != expected =>
            {
                old | READER
            }
            (QueuedMutant::LeaveMergedWithInterest, Some(Move::ShowInterest), _) => match self.active.take() {
                Some(Amo::Add(less)) => old.wrapping_add(less),
                _ => old,
            },
            (QueuedMutant::NoSweep, _, Amo::Swap(0)) if word(addr, READERS) => 0,
            (QueuedMutant::SweepAfterRegistration, ..) if self.sweeps(addr, amo) && self.sweep.get() == Sweep::Owed => {
                0
            }
            _ => old,
        }
    }

    pub(super) fn sees_put(&self, addr: RemoteAddr, bits: u64) {
        if word(addr, HEAD) {
            self.registered.set(Some(bits));
        }
    }
}
