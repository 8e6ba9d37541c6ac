//! Mutated steps, named like the mutants of the locks' own code. The search must find the
//! violation that each of them causes, and no run of the code may match a mutated model.

use crate::{
    level::AtLevel,
    model::Model,
    op::{Flushed, Op, Pending},
    state::{Pc, Rank},
    words::{COUNT, HELD, INSIDE, PASSED, READER, READERS, READERS_WAIT, WRITER_ACTIVE, WRITER_INTERESTED},
};
use rdma_fabric::Amo;
use rma_lock::steps::{CountedAt as At, FairAt as AtFair};

/// A mutant of one step of a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// R4, N9: the second check finds no reason to stop waiting.
    NoSecondLook,
    /// R2, W1: the node is cleared after it has entered its queue.
    LateInitialisation,
    /// W3, X5: the put of the head is not flushed.
    HeadNotFlushed,
    /// The interest flag is set without identifying a node.
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
    /// U1 of a reader that is about to wait uncounted is skipped.
    StaysCounted,
    /// R4 does not set the flag that readers wait.
    NobodyTold,
    /// X3, R5 take the stack before they clear the flag that readers wait.
    ToldTooLate,
    /// U2 fails if readers have begun to wait in the meantime.
    OneComparison,
    /// A release does not flush the data.
    DataNotFlushed,
    /// U1, G3 store a computed value instead of subtracting.
    StoreForSubtract,
    /// U1, G3, N5 are skipped.
    NotUncounted,
    /// X3, R5, N3, N10 find the stack empty.
    NoSweep,
    /// W8: a head that was passed does not check once more after it has announced itself.
    NoLastLook,
    /// A writer that leaves readers behind releases the lock before it takes their stack.
    NoDowngrade,
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
    /// G3 does not name the next writer.
    NotSaid,
    /// F5, G4 do not remove the writer from the state.
    NotTakenBack,
    /// F7 does not record that a reader is inside.
    NotInside,
    /// F2 does not detect that a reader is inside.
    InsideIgnored,
    /// F2 treats every reader as inside.
    BlockedTakenForInside,
    /// Every rank that leaves a node releases the lock above.
    OthersIgnored,
    /// N6 assumes that the compare-and-swap succeeded.
    LetGoIgnored,
}

/// The position of a rank.
#[derive(Clone, Copy)]
enum Place {
    Counted(At),
    Fair(AtFair),
    Level(AtLevel),
    Elsewhere,
}

impl Place {
    fn of(model: &Model, rank: &Rank) -> Place {
        let mut walk = rank.walk;
        model.flush(&mut walk);
        match (rank.pc, walk.counted(), walk.fair()) {
            (Pc::Level(at), ..) => Place::Level(at),
            (Pc::Walk, Some(at), _) => Place::Counted(at),
            (Pc::Walk, _, Some(at)) => Place::Fair(at),
            _ => Place::Elsewhere,
        }
    }
}

/// Reads the word and leaves it unchanged.
const NOTHING: Amo<u64> = Amo::Or(0);

impl Model {
    /// Returns the pending operation of a rank, with the step mutated.
    pub(crate) fn mutated_pending(&self, rank: &Rank, right: Pending) -> Pending {
        use Mutant::*;
        let Some(mutant) = self.mutant else { return right };
        let Pending { op, after } = right;
        let word = op.word();
        let amo = |amo| Pending { op: Op::Atomic(word, amo), after };
        let place = Place::of(self, rank);
        match (mutant, place) {
            (HeadNotFlushed, _) if after == Flushed::Head => Pending { op, after: Flushed::Nothing },
            (DataNotFlushed, _) if after == Flushed::All => Pending { op, after: Flushed::Nothing },
            (HeadNotNamed, Place::Counted(At::W4 | At::X6)) => amo(Amo::Add(WRITER_INTERESTED)),
            (RememberedNext, Place::Counted(At::Head)) if rank.other != 0 => amo(NOTHING),
            (HeadKept, Place::Counted(At::X2)) => amo(Amo::Add(WRITER_ACTIVE.wrapping_neg())),
            (LeaveMergedWithInterest, Place::Counted(At::X2)) => amo(NOTHING),
            (LeaveMergedWithInterest, Place::Counted(At::X6)) => {
                let Op::Atomic(_, Amo::Add(interest)) = op else { return right };
                amo(Amo::Add(interest.wrapping_sub(WRITER_ACTIVE)))
            }
            (NoDowngrade, Place::Counted(At::Downgrade)) => {
                let Op::Atomic(_, Amo::Add(less)) = op else { return right };
                amo(Amo::Add(less.wrapping_sub(READER)))
            }
            (NoDowngrade, Place::Counted(At::U1ForAnother)) => amo(NOTHING),
            (StaysCounted, Place::Counted(At::Uncount)) => amo(NOTHING),
            (NobodyTold, Place::Counted(At::R4)) => amo(NOTHING),
            (ToldTooLate, Place::Counted(At::X3Forget | At::R5Forget)) => {
                Pending { op: Op::Atomic(READERS, Amo::Swap(0)), after }
            }
            (ToldTooLate, Place::Counted(At::X3 | At::R5)) => {
                Pending { op: Op::Atomic(COUNT, Amo::And(!READERS_WAIT)), after }
            }
            (StoreForSubtract, Place::Counted(At::U1 | At::Uncount) | Place::Fair(AtFair::G3)) => amo(Amo::Swap(0)),
            (
                NotUncounted,
                Place::Counted(At::U1 | At::U1ForAnother) | Place::Fair(AtFair::G3) | Place::Level(AtLevel::N5),
            ) => amo(NOTHING),
            (NoSweep, Place::Counted(At::R5 | At::X3) | Place::Level(AtLevel::N3Sweep | AtLevel::N10)) => amo(NOTHING),
            (NoMark, Place::Counted(At::X4Mark) | Place::Fair(AtFair::G1Mark)) => amo(NOTHING),
            (
                NotWoken,
                Place::Counted(At::WakeReader | At::Wake) | Place::Fair(AtFair::G5) | Place::Level(AtLevel::N3Wake),
            ) => amo(NOTHING),
            (NotCounted, Place::Fair(AtFair::F3 | AtFair::F7Count | AtFair::G2)) => amo(NOTHING),
            (NotSaid, Place::Fair(AtFair::G3)) => amo(Amo::Add(1u64.wrapping_neg())),
            (NotTakenBack, Place::Fair(AtFair::F5Back | AtFair::G4)) => amo(NOTHING),
            (NotInside, Place::Fair(AtFair::F7)) => amo(NOTHING),
            (OthersIgnored, Place::Level(AtLevel::N6)) => amo(Amo::And(!HELD)),
            _ => right,
        }
    }

    /// Returns the value that the rank's operation appears to have found, with the step mutated.
    pub(crate) fn mutated_result(&self, rank: &Rank, op: Op, found: u64) -> u64 {
        use Mutant::*;
        let Some(mutant) = self.mutant else { return found };
        let expected = if let Op::Atomic(_, Amo::CompareSwap { expected, .. }) = op { expected } else { found };
        match (mutant, Place::of(self, rank)) {
            (NoSecondLook, Place::Counted(At::R4)) => found | WRITER_ACTIVE,
            (NoSecondLook, Place::Level(AtLevel::N9)) => found & !HELD,
            (ComparisonIgnored, Place::Counted(At::Activate | At::W8)) => expected,
            (NoLastLook, Place::Counted(At::W8Next)) => found | WRITER_ACTIVE,
            (OneComparison, Place::Counted(At::Activate)) if found ^ expected == READERS_WAIT => !expected,
            (RememberedNext, Place::Counted(At::Head)) if rank.other != 0 => rank.other,
            (ToldTooLate, Place::Counted(At::X3 | At::R5)) => rank.other,
            (LeaveMergedWithInterest, Place::Counted(At::X6)) => found.wrapping_sub(WRITER_ACTIVE),
            (ShortcutIgnored, Place::Counted(At::Free | At::B1 | At::B2)) => expected,
            (HandOverIgnored, Place::Counted(At::HandOver | At::XQ | At::XB)) => expected,
            (TailIgnored, Place::Counted(At::X4) | Place::Fair(AtFair::G1)) => expected,
            (MarkIgnored, Place::Counted(At::W6) | Place::Fair(AtFair::F2)) if found == PASSED => 0,
            (NoSweep, Place::Counted(At::R5 | At::X3) | Place::Level(AtLevel::N3Sweep | AtLevel::N10)) => 0,
            (ReadersIgnored, Place::Fair(AtFair::F4)) => 0,
            (InsideIgnored, Place::Fair(AtFair::F2)) if found == INSIDE => 0,
            (BlockedTakenForInside, Place::Fair(AtFair::F2)) if found == 0 => INSIDE,
            (OthersIgnored, Place::Level(AtLevel::N5)) => READER + HELD,
            (OthersIgnored | LetGoIgnored, Place::Level(AtLevel::N6)) => HELD,
            _ => found,
        }
    }
}
