//! Steps done wrong, named like the mutations of the locks' own code. The search must find what
//! they break, and no run of the code may fit a model with one of them.

use crate::{
    counted::At,
    fair::AtFair,
    level::AtLevel,
    model::Model,
    op::{Flushed, Op, Pending},
    state::{Pc, Rank},
    words::{HELD, INSIDE, PASSED, READER, WRITER_ACTIVE, WRITER_INTERESTED},
};
use rdma_fabric::Amo;

/// A step of a lock done wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mistake {
    /// R4, N9: the second look finds no reason to stop waiting.
    NoSecondLook,
    /// R2, W1: the node is cleared after it is in its queue.
    LateInitialisation,
    /// W3, X5: the put of the head is not flushed.
    HeadNotFlushed,
    /// Interest names no node.
    HeadNotNamed,
    /// X2 leaves the head in the count word.
    HeadKept,
    /// U2, W5, X7 assume that the compare-and-swap succeeded.
    ComparisonIgnored,
    /// The compare-and-swap in place of W3–W5 is assumed to have succeeded.
    ShortcutIgnored,
    /// The compare-and-swap that hands over is assumed to have succeeded.
    HandOverIgnored,
    /// X7 wakes the successor that was registered instead of the head.
    RememberedNext,
    /// X2 is merged with X6.
    LeaveMergedWithInterest,
    /// U1 of a reader that will wait uncounted is skipped.
    StaysCounted,
    /// R4 does not say that readers wait.
    NobodyTold,
    /// X3, R5 take the stack before they clear the flag that readers wait.
    ToldTooLate,
    /// U2 fails if readers have begun to wait meanwhile.
    OneComparison,
    /// A release does not flush the data.
    DataNotFlushed,
    /// U1, G3 store what they have computed instead of subtracting.
    StoreForSubtract,
    /// U1, G3, N5 are skipped.
    NotUncounted,
    /// X3, R5, N3, N10 find nobody.
    NoSweep,
    /// X4, G1: a rank that leaves assumes that it is the last.
    TailIgnored,
    /// W6, F2 take the mark for an empty link.
    MarkIgnored,
    /// X4, G1 leave no mark.
    NoMark,
    /// A wake is skipped.
    NotWoken,
    /// F4 sees no reader.
    ReadersIgnored,
    /// F3, F7, G2 do not count.
    NotCounted,
    /// G3 does not say which writer comes next.
    NotSaid,
    /// F5, G4 do not take the writer out of the state again.
    NotTakenBack,
    /// F7 does not say that a reader is inside.
    NotInside,
    /// F2 does not see that a reader is inside.
    InsideIgnored,
    /// F2 takes any reader for one inside.
    BlockedTakenForInside,
    /// Every rank that leaves a node lets go of the lock above.
    OthersIgnored,
    /// N6 assumes that the compare-and-swap succeeded.
    LetGoIgnored,
}

/// Reads the word and leaves it unchanged.
const NOTHING: Amo<u64> = Amo::Or(0);

impl Model {
    /// Returns what a rank is about to do, with the step done wrong.
    pub(crate) fn mistaken_pending(&self, rank: &Rank, right: Pending) -> Pending {
        use Mistake::*;
        let Some(mistake) = self.mistake else { return right };
        let Pending { op, after } = right;
        let word = op.word();
        let amo = |amo| Pending { op: Op::Atomic(word, amo), after };
        match (mistake, rank.pc) {
            (HeadNotFlushed, _) if after == Flushed::Head => Pending { op, after: Flushed::Nothing },
            (DataNotFlushed, _) if after == Flushed::All => Pending { op, after: Flushed::Nothing },
            (HeadNotNamed, Pc::Counted(At::W4 | At::X6)) => amo(Amo::Add(WRITER_INTERESTED)),
            (HeadKept, Pc::Counted(At::X2)) => amo(Amo::Add(WRITER_ACTIVE.wrapping_neg())),
            (LeaveMergedWithInterest, Pc::Counted(At::X2)) => amo(NOTHING),
            (LeaveMergedWithInterest, Pc::Counted(At::X6)) => {
                amo(Amo::Add(self.interest(rank.link).wrapping_sub(WRITER_ACTIVE)))
            }
            (StaysCounted, Pc::Counted(At::Uncount)) => amo(NOTHING),
            (NobodyTold, Pc::Counted(At::R4)) => amo(NOTHING),
            (ToldTooLate, Pc::Counted(At::X3Forget | At::R5Forget)) => amo(NOTHING),
            (StoreForSubtract, Pc::Counted(At::U1 | At::Uncount) | Pc::Fair(AtFair::G3)) => amo(Amo::Swap(0)),
            (NotUncounted, Pc::Counted(At::U1) | Pc::Fair(AtFair::G3) | Pc::Level(AtLevel::N5)) => amo(NOTHING),
            (NoSweep, Pc::Counted(At::R5 | At::X3) | Pc::Level(AtLevel::N3Sweep | AtLevel::N10)) => amo(NOTHING),
            (NoMark, Pc::Counted(At::X4Mark) | Pc::Fair(AtFair::G1Mark)) => amo(NOTHING),
            (NotWoken, Pc::Counted(At::X3Wake | At::Wake) | Pc::Fair(AtFair::G5) | Pc::Level(AtLevel::N3Wake)) => {
                amo(NOTHING)
            }
            (NotCounted, Pc::Fair(AtFair::F3 | AtFair::F7Count | AtFair::G2)) => amo(NOTHING),
            (NotSaid, Pc::Fair(AtFair::G3)) => amo(Amo::Add(1u64.wrapping_neg())),
            (NotTakenBack, Pc::Fair(AtFair::F5Back | AtFair::G4)) => amo(NOTHING),
            (NotInside, Pc::Fair(AtFair::F7)) => amo(NOTHING),
            (OthersIgnored, Pc::Level(AtLevel::N6)) => amo(Amo::And(!HELD)),
            _ => right,
        }
    }

    /// Returns what the rank's operation appears to have found, with the step done wrong.
    pub(crate) fn mistaken_result(&self, rank: &Rank, op: Op, found: u64) -> u64 {
        use Mistake::*;
        let Some(mistake) = self.mistake else { return found };
        let expected = if let Op::Atomic(_, Amo::CompareSwap { expected, .. }) = op { expected } else { found };
        match (mistake, rank.pc) {
            (NoSecondLook, Pc::Counted(At::R4)) => found | WRITER_ACTIVE,
            (NoSecondLook, Pc::Level(AtLevel::N9)) => found & !HELD,
            (ComparisonIgnored, Pc::Counted(At::Activate)) => expected,
            (ShortcutIgnored, Pc::Counted(At::Free)) => expected,
            (HandOverIgnored, Pc::Counted(At::HandOver)) => expected,
            (TailIgnored, Pc::Counted(At::X4) | Pc::Fair(AtFair::G1)) => expected,
            (MarkIgnored, Pc::Counted(At::W6) | Pc::Fair(AtFair::F2)) if found == PASSED => 0,
            (NoSweep, Pc::Counted(At::R5 | At::X3) | Pc::Level(AtLevel::N3Sweep | AtLevel::N10)) => 0,
            (ReadersIgnored, Pc::Fair(AtFair::F4)) => 0,
            (InsideIgnored, Pc::Fair(AtFair::F2)) if found == INSIDE => 0,
            (BlockedTakenForInside, Pc::Fair(AtFair::F2)) if found == 0 => INSIDE,
            (OthersIgnored, Pc::Level(AtLevel::N5)) => READER + HELD,
            (OthersIgnored | LetGoIgnored, Pc::Level(AtLevel::N6)) => HELD,
            _ => found,
        }
    }
}
