//! Mutations of the locks with queues, by the steps in their documentation.
//!
//! The lock must be the first symmetric region of the job.

use super::Mutation;
use rdma_fabric::{Amo, Rank, RemoteAddr};
use std::cell::Cell;

const COUNT: u64 = 0;
const READERS: u64 = 8;
const TAIL: u64 = 16;
const HEAD: u64 = 24;
/// Queue nodes: wake and next alternate.
const NODES: [std::ops::Range<u64>; 2] = [48..64, 80..128];

/// What a rank publishes: two words, whose sum is zero when it does nothing. (Here one thread uses all.)
const PUBLISHED: std::ops::Range<u64> = 64..80;

pub(super) fn in_node(offset: u64) -> bool {
    NODES.iter().any(|nodes| nodes.contains(&offset))
}

/// Panics if any of these words of the lock, as rank, cell, value, says that somebody holds or waits. The lock's home is rank 0
/// and its words start at cell 0.
pub(crate) fn assert_idle(words: impl IntoIterator<Item = (usize, usize, u64)>) {
    for (rank, cell, value) in words {
        let offset = cell as u64 * 8;
        let left = match offset {
            COUNT | READERS | TAIL => rank == 0,
            _ if PUBLISHED.contains(&offset) => value != 0,
            _ if !in_node(offset) => false,
            _ if offset.is_multiple_of(16) => value & 0xff != 0,
            _ => value == u64::MAX,
        };
        assert!(!left, "residue: byte {offset} of rank {rank}'s part of the lock holds {value:#x}");
    }
}

const INTERESTED: u64 = 1;
const ACTIVE: u64 = 2;
const READER: u64 = 4;
const READERS_WAIT: u64 = 1 << 31;
const GRANTED: u64 = 1;

/// Which lock it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Flat,
    Packed,
    WritersFirst,
    Fair,
}

impl Subject {
    /// What tables call it.
    #[allow(dead_code, reason = "not every checker shows it")]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Subject::Flat => "RpLock",
            Subject::Packed => "PackedLock",
            Subject::WritersFirst => "WritersFirstLock",
            Subject::Fair => "FairLock",
        }
    }
}

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

/// One step of the lock done wrong.
#[allow(dead_code, reason = "not every checker needs all of them")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing is wrong: the wrapper itself must not matter.
    Right,
    /// R4 always finds the writer still there.
    NoSecondLook,
    /// Part of R2, W1 after R3, W2: the node's next is cleared when its rank may have got one.
    LateInitialisation,
    /// W3, X5 without flush.
    HeadNotFlushed,
    /// X1 as printed, the head cleared on leaving, and not flushed.
    HeadClearedUnflushed,
    /// X2 comes only with X6, after X3; without a successor, before X4's swap.
    LeaveMergedWithInterest,
    /// U2, W5, X7 believe that the comparison succeeded.
    ComparisonIgnored,
    /// So does a writer that wants to enter a free lock by one comparison.
    ShortcutIgnored,
    /// So does a writer that hands over by one.
    HandOverIgnored,
    /// A head in the count word is not written.
    HeadNotNamed,
    /// It is not taken out again.
    HeadKept,
    /// A reader that finds a writer registered stays counted while it waits.
    StaysCounted,
    /// The first of the readers that wait does not say so.
    NobodyTold,
    /// That readers wait is taken back after the stack was taken.
    ToldTooLate,
    /// U2, W5, X7 give up if readers began to wait meanwhile.
    OneComparison,
    /// F4 sees no readers.
    ReadersIgnored,
    /// A reader that is inside, or let in, is not counted.
    NotCounted,
    /// A reader that leaves does not say which writer comes next.
    NotSaid,
    /// G4 is left out.
    NotTakenBack,
    /// A reader that finds nobody registered when it leaves as the last looks again later, and lets in whom it finds: the lock as printed.
    LateLook,
    /// A reader that is inside does not say so in its node.
    NotInside,
    /// A reader does not see that the one before it is inside.
    InsideIgnored,
    /// It takes one that waits for one that is.
    BlockedTakenForInside,
    /// The release does not flush the data.
    DataNotFlushed,
    /// U1 stores what a lone reader would leave instead of subtracting.
    StoreForSubtract,
    /// X3 never takes the stack of waiting readers.
    NoSweep,
    /// U3, X7 wake the writer that this rank registered last instead of the head.
    RememberedNext,
    /// X4 believes that the tail was still its own.
    TailIgnored,
    /// W6 does not see the mark of a writer that has gone.
    MarkIgnored,
    /// X4 leaves no mark for a successor on its way.
    NoMark,
    /// A waker takes one who gave up for woken, and does not act for him.
    AbandonedTakenForWoken,
    /// What a dropped future owes is not done: its reader stays counted, its node blocked.
    DroppedAndForgotten,
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
}

impl Rp {
    pub(crate) fn new(step: Step) -> Self {
        Rp { step, registered: Cell::new(None), active: Cell::new(None), refused: Cell::new(false) }
    }

    /// Whether `addr` is a word of the lock: the first symmetric region has the lowest key.
    fn word(addr: RemoteAddr, offset: u64) -> bool {
        addr.region.index == 0 && addr.offset == offset
    }

    fn at_count(addr: RemoteAddr, amo: Amo<u64>) -> Option<Move> {
        if Rp::word(addr, COUNT) { Move::of(amo) } else { None }
    }

    fn wake_word(addr: RemoteAddr) -> bool {
        addr.region.index == 0 && in_node(addr.offset) && addr.offset.is_multiple_of(16)
    }

    fn next_word(addr: RemoteAddr) -> bool {
        addr.region.index == 0 && in_node(addr.offset) && addr.offset % 16 == 8
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
            (Step::NoMark, _, Amo::CompareSwap { new: u64::MAX, .. }) if Rp::next_word(addr) => Amo::Or(0),
            _ => amo,
        }
    }

    fn goes_on(&self, addr: RemoteAddr, amo: Amo<u64>) -> bool {
        self.step == Step::ToldTooLate && Rp::word(addr, READERS) && amo == Amo::Swap(0)
    }

    fn then(&self, addr: RemoteAddr, _: Amo<u64>, _: u64) -> Option<(RemoteAddr, Amo<u64>)> {
        Some((RemoteAddr { offset: COUNT, ..addr }, Amo::And(!READERS_WAIT)))
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
            (Step::TailIgnored, _, Amo::CompareSwap { expected, new: 0 }) if Rp::word(addr, TAIL) => expected,
            (Step::AbandonedTakenForWoken, _, Amo::CompareSwap { expected, new }) if Rp::wake_word(addr) => {
                if new & 0xff == GRANTED { expected } else { old }
            }
            (Step::MarkIgnored, _, Amo::Swap(_)) if Rp::next_word(addr) && old == u64::MAX => 0,
            _ => old,
        }
    }

    fn late(&self, addr: RemoteAddr, bits: u64) -> bool {
        self.step == Step::LateInitialisation && Rp::next_word(addr) && bits == 0
    }

    fn sees_put(&self, addr: RemoteAddr, bits: u64) {
        if Rp::word(addr, HEAD) {
            self.registered.set(Some(bits));
        }
    }
}
