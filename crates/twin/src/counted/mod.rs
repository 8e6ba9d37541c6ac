//! The locks that count their readers in one word (flat, packed, writers first): one transition
//! system with each lock's own parameters.
//!
//! Steps are those of `docs/systems/rp-lock.md` and `docs/systems/queued-locks.md`, on the path
//! that the locks take where operations take time and puts are not ordered.

mod reader;
mod writer;

use crate::{
    model::{Lock, Model},
    op::{Flushed, Op, Pending},
    state::State,
    turn::{StepResult, Turn, wake},
    words::{COUNT, HEAD, PASSED, READER, READERS, READERS_WAIT, TAIL, WRITER_ACTIVE, WRITER_INTERESTED, Word},
};
use rdma_fabric::Amo;

/// The next step.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum At {
    R1,
    /// U1 of a reader that waits uncounted.
    Uncount,
    R3,
    R3Store,
    R4,
    R5Forget,
    R5,
    R5ForgetLate,
    R5Wake,
    R6,
    R6Retire,
    R7,
    U1,
    /// U2, W5, X7.
    Activate,
    /// U3, also as part of X7.
    Head,
    /// U4, also as part of X7.
    Wake,
    W2,
    /// The compare-and-swap in place of W3–W5.
    Free,
    W3,
    W4,
    W6,
    W7,
    /// Checking whether a known successor can be handed the lock.
    Known,
    HandOver,
    HandOverRetire,
    X2,
    X3Forget,
    X3,
    X3ForgetLate,
    X3Wake,
    X4Load,
    X4,
    X4Mark,
    X4Retire,
    X5,
    X6,
}

/// The reason for turning interest into activity, which decides what follows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Then {
    /// U2, X7: the round is over afterwards.
    End,
    /// U2 of a reader that waits afterwards.
    Wait,
    /// W5: the writer enters.
    Enter,
}

/// How a writer lets in a known successor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HandOver {
    Never,
    IfNoReaders,
    Always,
}

const ONE_LESS: Amo<u64> = Amo::Add(READER.wrapping_neg());
const HIGH: u32 = 32;
const LOW: u64 = 0xffff_ffff;

/// The rules of the schemes.
impl Model {
    fn keeps_out(&self) -> u64 {
        if self.lock == Lock::WritersFirst { WRITER_ACTIVE | WRITER_INTERESTED } else { WRITER_ACTIVE }
    }

    fn waits_counted(&self) -> bool {
        self.lock != Lock::WritersFirst
    }

    fn head_apart(&self) -> bool {
        matches!(self.lock, Lock::Flat | Lock::Aggregated)
    }

    fn hand_over(&self) -> HandOver {
        match self.lock {
            Lock::Packed => HandOver::IfNoReaders,
            Lock::WritersFirst => HandOver::Always,
            _ => HandOver::Never,
        }
    }

    pub(crate) fn interest(&self, node: u64) -> u64 {
        if self.head_apart() { WRITER_INTERESTED } else { node << HIGH | WRITER_INTERESTED }
    }

    fn active(&self, node: u64) -> u64 {
        if self.lock == Lock::Packed { node << HIGH | WRITER_ACTIVE } else { WRITER_ACTIVE }
    }

    fn granted(&self, word: u64) -> u64 {
        match self.lock {
            Lock::Packed => word - WRITER_INTERESTED + WRITER_ACTIVE,
            Lock::WritersFirst => word & READERS_WAIT | WRITER_ACTIVE,
            _ => WRITER_ACTIVE,
        }
    }

    fn is_last(&self, word: u64) -> bool {
        let last = READER + WRITER_INTERESTED;
        match self.lock {
            Lock::Packed => word & LOW == last,
            Lock::WritersFirst => word & LOW & !READERS_WAIT == last,
            _ => word == last,
        }
    }

    fn is_free(&self, word: u64) -> bool {
        if self.lock == Lock::WritersFirst { word & !READERS_WAIT == 0 } else { word == 0 }
    }

    fn must_sweep(&self, word: u64) -> bool {
        match self.lock {
            Lock::Packed => word & LOW >= READER,
            Lock::WritersFirst => word & READERS_WAIT != 0,
            _ => word >= READER,
        }
    }

    /// Returns the first step of a writer's release.
    pub(crate) fn first_of_release(&self) -> At {
        if self.hand_over() == HandOver::Never { At::X2 } else { At::Known }
    }

    /// Returns what `me` is about to do.
    pub(crate) fn counted(&self, at: At, s: &State, me: usize) -> Pending {
        let rank = &s.ranks[me];
        let id = self.own_id(s, me);
        let count = |amo| Op::Atomic(COUNT, amo);
        let op = match at {
            At::R1 => count(Amo::Add(READER)),
            At::Uncount | At::U1 => count(ONE_LESS),
            At::R3 => Op::Atomic(READERS, Amo::Swap(id)),
            At::R3Store => Op::Store(rank.next_word(me), rank.link),
            At::R4 if self.waits_counted() => Op::Get(COUNT),
            At::R4 => count(Amo::Or(READERS_WAIT)),
            At::R5Forget | At::R5ForgetLate | At::X3Forget | At::X3ForgetLate => count(Amo::And(!READERS_WAIT)),
            At::R5 | At::X3 => Op::Atomic(READERS, Amo::Swap(0)),
            At::R5Wake | At::X3Wake | At::Wake => wake(self, rank.other, false),
            At::R6 | At::W7 => rank.wait(me),
            At::R6Retire | At::HandOverRetire | At::X4Retire => rank.retire(me),
            At::R7 => wake(self, rank.link, false),
            At::Activate => count(Amo::CompareSwap { expected: rank.word, new: self.granted(rank.word) }),
            At::Head => Op::Get(HEAD),
            At::W2 => Op::Atomic(TAIL, Amo::Swap(id)),
            At::Free => count(Amo::CompareSwap { expected: 0, new: self.active(id) }),
            At::W3 => Op::Put(HEAD, id),
            At::W4 => count(Amo::Add(self.interest(id))),
            At::W6 => Op::Atomic(self.next_of(rank.other), Amo::Swap(id)),
            At::Known | At::X4Load => Op::Load(rank.next_word(me)),
            At::HandOver => count(Amo::CompareSwap { expected: self.active(id), new: self.active(rank.link) }),
            At::X2 => count(Amo::Add(self.active(id).wrapping_neg())),
            At::X4 => Op::Atomic(TAIL, Amo::CompareSwap { expected: id, new: 0 }),
            At::X4Mark => Op::Atomic(rank.next_word(me), Amo::CompareSwap { expected: 0, new: PASSED }),
            At::X5 => Op::Put(HEAD, rank.link),
            At::X6 => count(Amo::Add(self.interest(rank.link))),
        };
        let after = match at {
            At::U1 | At::Known | At::X2 => Flushed::All,
            At::W4 | At::X6 if self.head_apart() => Flushed::Head,
            _ => Flushed::Nothing,
        };
        Pending { op, after }
    }

    /// Returns the next word of a node of the lock.
    pub(crate) fn next_of(&self, node: u64) -> Word {
        let id = crate::words::Id::of(node, self.ranks()).expect("a node");
        Word::Next(id.rank() as u8, id.slot())
    }
}

impl Turn<'_> {
    /// Continues after the step `at` has found `found`.
    pub(crate) fn counted(&mut self, at: At, found: u64) -> StepResult {
        match at {
            At::R1
            | At::Uncount
            | At::R3
            | At::R3Store
            | At::R4
            | At::R5Forget
            | At::R5
            | At::R5ForgetLate
            | At::R5Wake
            | At::R6
            | At::R6Retire
            | At::R7
            | At::U1 => self.reads(at, found),
            At::Activate => self.activated(found),
            At::Head => match self.decode("head", found)? {
                0 => Err(crate::Violation::Corrupt { what: "head", bits: 0 }),
                writer => self.wake_writer(writer),
            },
            At::Wake => self.woke_writer(),
            _ => self.writes(at, found),
        }
    }
}
