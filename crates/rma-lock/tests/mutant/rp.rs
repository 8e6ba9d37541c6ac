//! Mutations of the locks with queues, by the steps in their documentation.
//!
//! The lock must be the first symmetric region of the job.

use super::{
    Mutation, Step,
    words::{PASSED, next_word, ready, wake, wake_word, wakes},
};
use rdma_fabric::{Amo, Rank, RemoteAddr};
use std::cell::Cell;

/// The lock's home, where that matters.
const HOME: Rank = Rank::new(0);

const COUNT: u64 = 0;
const READERS: u64 = 8;
const TAIL: u64 = 16;
const HEAD: u64 = 24;
const INTERESTED: u64 = 1;
const ACTIVE: u64 = 2;
const READER: u64 = 4;
const READERS_WAIT: u64 = 1 << 31;

/// What an atomic does to the count word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    /// U1.
    Uncount,
    /// W4, X6.
    ShowInterest,
    /// W3–W5 in one.
    EnterFree,
    /// U2, W5, X7.
    Activate,
    /// One comparison from a writer to the next.
    HandOver,
    /// X2.
    Leave,
    /// The first of those that wait says so.
    TellOfReaders,
    /// Who takes the stack takes that back.
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

/// A [`Step`] at one rank.
#[derive(Debug)]
pub(crate) struct Rp {
    step: Step,
    /// The id this rank put to the head last.
    registered: Cell<Option<u64>>,
    /// X2, if it is still to come.
    active: Cell<Option<Amo<u64>>>,
    /// The next subtraction takes back what was refused.
    refused: Cell<bool>,
    /// A reader of this rank is counted.
    reads: Cell<bool>,
    /// Where X3 stands, if it comes too late.
    sweep: Cell<Sweep>,
}

/// An X3 that comes too late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sweep {
    #[default]
    Nothing,
    /// X2 is done, and X3 not begun.
    Left,
    /// X3 is still to come.
    Owed,
    /// It is done now; who is on top of the stack is still to be woken.
    Begun,
}

impl Rp {
    pub(crate) fn new(step: Step) -> Self {
        Rp {
            step,
            registered: Cell::default(),
            active: Cell::default(),
            refused: Cell::default(),
            reads: Cell::default(),
            sweep: Cell::default(),
        }
    }

    /// Whether `addr` is a word of the lock: the first symmetric region has the lowest key.
    fn word(addr: RemoteAddr, offset: u64) -> bool {
        addr.region.index == 0 && addr.offset == offset
    }

    fn at_count(addr: RemoteAddr, amo: Amo<u64>) -> Option<Move> {
        if Rp::word(addr, COUNT) { Move::of(amo) } else { None }
    }

    /// X3 or R5.
    fn sweeps(&self, addr: RemoteAddr, amo: Amo<u64>) -> bool {
        self.step == Step::SweepAfterRegistration && Rp::word(addr, READERS) && amo == Amo::Swap(0)
    }
}

impl Mutation for Rp {
    fn flushes(&self, target: Option<Rank>) -> bool {
        match self.step {
            Step::HeadNotFlushed => target.is_none(),
            Step::DataNotFlushed => target.is_some(),
            _ => true,
        }
    }

    fn awaits_flush(&self, _: Option<Rank>) -> bool {
        self.step != Step::FlushNotAwaited || !self.reads.get()
    }

    fn waits(&self, addr: RemoteAddr) -> bool {
        self.step != Step::MarkNotAwaited || !next_word(addr)
    }

    fn taken_for(&self, _: RemoteAddr, _: u64) -> u64 {
        0
    }

    /// It was done before.
    fn put(&self, addr: RemoteAddr, bits: u64) -> Option<u64> {
        (self.step != Step::ReadyTooEarly || !wake_word(addr)).then_some(bits)
    }

    fn detaches(&self) -> bool {
        self.step != Step::DroppedAndForgotten
    }

    fn got(&self, addr: RemoteAddr, bits: u64) -> u64 {
        match self.step {
            Step::NoSecondLook if Rp::word(addr, COUNT) => bits | ACTIVE,
            Step::RememberedNext if Rp::word(addr, HEAD) => self.registered.get().unwrap_or(bits),
            _ => bits,
        }
    }

    fn first(&self, addr: RemoteAddr, amo: Amo<u64>) -> Option<(RemoteAddr, Amo<u64>)> {
        let ends_queue = Rp::word(addr, TAIL) && matches!(amo, Amo::CompareSwap { new: 0, .. });
        let leave = if ends_queue { self.active.take() } else { None };
        leave.map(|leave| (RemoteAddr { offset: COUNT, ..addr }, leave))
    }

    fn puts(&self, addr: RemoteAddr, amo: Amo<u64>) -> Option<(RemoteAddr, u64)> {
        let leaves = self.step == Step::HeadClearedUnflushed && Rp::at_count(addr, amo) == Some(Move::Leave);
        leaves.then_some((RemoteAddr { offset: HEAD, ..addr }, 0))
    }

    fn atomic(&self, addr: RemoteAddr, amo: Amo<u64>) -> Amo<u64> {
        if Rp::word(addr, COUNT) {
            self.reads.set(amo == Amo::Add(READER));
            if self.sweep.get() == Sweep::Left {
                self.sweep.set(Sweep::Nothing);
            }
        }
        // Or(0) reads and leaves what is there.
        match (self.step, Rp::at_count(addr, amo), amo) {
            (Step::LeaveMergedWithInterest, Some(Move::Leave), _) => {
                self.active.set(Some(amo));
                Amo::Or(0)
            }
            (Step::LeaveMergedWithInterest, Some(Move::ShowInterest), Amo::Add(interest)) => match self.active.get() {
                Some(Amo::Add(less)) => Amo::Add(interest.wrapping_add(less)),
                _ => amo,
            },
            (Step::HeadNotNamed, Some(Move::ShowInterest), _) => Amo::Add(INTERESTED),
            (Step::HeadKept, Some(Move::Leave), _) => Amo::Add(ACTIVE.wrapping_neg()),
            (Step::StaysCounted, Some(Move::Uncount), _) if self.refused.take() => Amo::Or(0),
            (Step::NobodyTold, Some(Move::TellOfReaders), _) => Amo::Or(0),
            (Step::ToldTooLate, Some(Move::ForgetReaders), _) => Amo::Or(0),
            (Step::StoreForSubtract, Some(Move::Uncount), _) => Amo::Swap(0),
            (Step::NoSweep, _, Amo::Swap(0)) if Rp::word(addr, READERS) => Amo::Or(0),
            (Step::SweepAfterRegistration, Some(Move::Leave), _) => {
                self.sweep.set(Sweep::Left);
                amo
            }
            _ if self.sweeps(addr, amo) && self.sweep.get() == Sweep::Left => {
                self.sweep.set(Sweep::Owed);
                Amo::Or(0)
            }
            (Step::NoMark, _, Amo::CompareSwap { new: PASSED, .. }) if next_word(addr) => Amo::Or(0),
            _ => amo,
        }
    }

    fn goes_on(&self, addr: RemoteAddr, amo: Amo<u64>) -> bool {
        match self.sweep.get() {
            Sweep::Owed => {
                let last = matches!(amo, Amo::CompareSwap { new: 0, .. }) && Rp::word(addr, TAIL);
                let marks = matches!(amo, Amo::CompareSwap { new: PASSED, .. }) && next_word(addr);
                last || marks || Rp::at_count(addr, amo) == Some(Move::ShowInterest)
            }
            Sweep::Begun => self.sweeps(addr, amo),
            _ => match self.step {
                Step::ToldTooLate => Rp::word(addr, READERS) && amo == Amo::Swap(0),
                Step::ReadyTooEarly => wakes(addr, amo),
                _ => false,
            },
        }
    }

    fn then(&self, addr: RemoteAddr, amo: Amo<u64>, old: u64) -> Option<(RemoteAddr, Amo<u64>)> {
        match (self.sweep.get(), amo) {
            // Somebody comes next: with X6.
            (Sweep::Owed, Amo::CompareSwap { expected, .. }) if old != expected => None,
            (Sweep::Owed, _) => {
                self.sweep.set(Sweep::Begun);
                Some((RemoteAddr { rank: HOME, offset: READERS, ..addr }, Amo::Swap(0)))
            }
            (Sweep::Begun, _) => {
                self.sweep.set(Sweep::Nothing);
                (old != 0).then(|| wake(addr, old))
            }
            _ if wake_word(addr) => ready(addr, old),
            _ => Some((RemoteAddr { offset: COUNT, ..addr }, Amo::And(!READERS_WAIT))),
        }
    }

    fn result(&self, addr: RemoteAddr, amo: Amo<u64>, old: u64) -> u64 {
        match (self.step, Rp::at_count(addr, amo), amo) {
            (Step::NoSecondLook, Some(Move::TellOfReaders), _) => old | ACTIVE,
            (Step::StaysCounted, None, Amo::Add(READER)) if Rp::word(addr, COUNT) => {
                self.refused.set(old & (INTERESTED | ACTIVE) != 0);
                old
            }
            (Step::ComparisonIgnored, Some(Move::Activate), Amo::CompareSwap { expected, .. })
            | (Step::HandOverIgnored, Some(Move::HandOver), Amo::CompareSwap { expected, .. })
            | (Step::ShortcutIgnored, Some(Move::EnterFree), Amo::CompareSwap { expected, .. }) => expected,
            (Step::OneComparison, Some(Move::Activate), Amo::CompareSwap { expected, .. }) if old != expected => {
                old | READER
            }
            (Step::LeaveMergedWithInterest, Some(Move::ShowInterest), _) => match self.active.take() {
                Some(Amo::Add(less)) => old.wrapping_add(less),
                _ => old,
            },
            (Step::NoSweep, _, Amo::Swap(0)) if Rp::word(addr, READERS) => 0,
            (Step::SweepAfterRegistration, ..) if self.sweeps(addr, amo) && self.sweep.get() == Sweep::Owed => 0,
            (Step::TailIgnored, _, Amo::CompareSwap { expected, new: 0 }) if Rp::word(addr, TAIL) => expected,
            (Step::AbandonedTakenForWoken, _, Amo::CompareSwap { expected, .. }) if wakes(addr, amo) => expected,
            (Step::MarkIgnored, _, Amo::Swap(_)) if next_word(addr) && old == PASSED => 0,
            _ => old,
        }
    }

    fn late(&self, addr: RemoteAddr, bits: u64) -> bool {
        self.step == Step::LateInitialisation && next_word(addr) && bits == 0
    }

    fn sees_put(&self, addr: RemoteAddr, bits: u64) {
        if Rp::word(addr, HEAD) {
            self.registered.set(Some(bits));
        }
    }
}
