//! Mutations of the fair lock, by the steps in its documentation.
//!
//! The lock must be the first symmetric region of the job.

use super::{
    Mutation, Step,
    words::{PASSED, next_word, ready, wake_word, wakes},
};
use rdma_fabric::{Amo, Rank, RemoteAddr};
use std::cell::Cell;

const STATE: u64 = 0;
const TAIL: u64 = 8;
const READER: u64 = 1;
/// Of the state: its readers.
const READERS: u64 = 0xffff_ffff;
const INSIDE: u64 = 1 << 33;

/// A [`Step`] at one rank.
#[derive(Debug)]
pub(crate) struct Fair {
    step: Step,
    /// A reader of this rank is inside.
    reads: Cell<bool>,
}

impl Fair {
    pub(crate) fn new(step: Step) -> Self {
        Fair { step, reads: Cell::default() }
    }
}

/// What an addition to the state is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    /// F3, G2.
    Count,
    /// F5.
    Register,
    /// G3, with the writer that comes next or without.
    Uncount { writer: bool },
    /// F5, G4.
    TakeBack,
}

fn word(addr: RemoteAddr, offset: u64) -> bool {
    addr.region.index == 0 && addr.offset == offset
}

fn at_state(addr: RemoteAddr, amo: Amo<u64>) -> Option<Move> {
    let Amo::Add(more) = amo else { return None };
    if !word(addr, STATE) {
        return None;
    }
    Some(match more & READERS {
        READER => Move::Count,
        READERS => Move::Uncount { writer: more != READER.wrapping_neg() },
        _ if more < 1 << 63 => Move::Register,
        _ => Move::TakeBack,
    })
}

impl Mutation for Fair {
    fn flushes(&self, _: Option<Rank>) -> bool {
        self.step != Step::DataNotFlushed
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
        if self.step == Step::ReadersIgnored && word(addr, STATE) { 0 } else { bits }
    }

    fn atomic(&self, addr: RemoteAddr, amo: Amo<u64>) -> Amo<u64> {
        if next_word(addr) && matches!(amo, Amo::CompareSwap { expected: 0, new: INSIDE }) {
            self.reads.set(true);
        }
        if let Some(Move::Uncount { .. }) = at_state(addr, amo) {
            self.reads.set(false);
        }
        // Or(0) reads and leaves what is there.
        match (self.step, at_state(addr, amo), amo) {
            (Step::NotCounted, Some(Move::Count), _) => Amo::Or(0),
            (Step::NotSaid, Some(Move::Uncount { .. }), _) => Amo::Add(READER.wrapping_neg()),
            (Step::NotTakenBack, Some(Move::TakeBack), _) => Amo::Or(0),
            (Step::StoreForSubtract, Some(Move::Uncount { .. }), _) => Amo::Swap(0),
            (Step::NoMark, _, Amo::CompareSwap { new: PASSED, .. }) if next_word(addr) => Amo::Or(0),
            (Step::NotInside, _, Amo::CompareSwap { expected: 0, new: INSIDE }) if next_word(addr) => Amo::Or(0),
            _ => amo,
        }
    }

    fn goes_on(&self, addr: RemoteAddr, amo: Amo<u64>) -> bool {
        match self.step {
            Step::LateLook => at_state(addr, amo) == Some(Move::Uncount { writer: false }),
            Step::ReadyTooEarly => wakes(addr, amo),
            _ => false,
        }
    }

    fn then(&self, addr: RemoteAddr, _: Amo<u64>, old: u64) -> Option<(RemoteAddr, Amo<u64>)> {
        if self.step == Step::ReadyTooEarly {
            return ready(addr, old);
        }
        (old == READER).then_some((addr, Amo::Or(0)))
    }

    /// A writer that waits for others: as if they did not count.
    fn after(&self, addr: RemoteAddr, _: Amo<u64>, old: u64, found: u64) -> u64 {
        if wake_word(addr) {
            return old;
        }
        if found & READERS == 0 { old } else { READER | found & !READERS }
    }

    fn result(&self, addr: RemoteAddr, amo: Amo<u64>, old: u64) -> u64 {
        match (self.step, amo) {
            (Step::TailIgnored, Amo::CompareSwap { expected, new: 0 }) if word(addr, TAIL) => expected,
            (Step::MarkIgnored, Amo::Swap(_)) if next_word(addr) && old == PASSED => 0,
            (Step::InsideIgnored, Amo::Swap(_)) if next_word(addr) && old == INSIDE => 0,
            (Step::BlockedTakenForInside, Amo::Swap(_)) if next_word(addr) && old == 0 => INSIDE,
            (Step::AbandonedTakenForWoken, Amo::CompareSwap { expected, .. }) if wakes(addr, amo) => expected,
            _ => old,
        }
    }

    fn late(&self, addr: RemoteAddr, bits: u64) -> bool {
        self.step == Step::LateInitialisation && next_word(addr) && bits == 0
    }
}
