//! Jobs that detect the mutants of locks with queues.

use super::super::{
    mutants::QueuedMutant::{self, *},
    program::Role::{self, *},
};
use super::{QUEUED, READS_AGAIN, READS_TWICE, WRITES_AGAIN};
use rma_lock::locks::LockKind;

/// The locks with queues that count readers.
const COUNTED: &[LockKind] = &[LockKind::ReaderPreference, LockKind::Packed, LockKind::WritersFirst];

const BY_READERS: &[LockKind] = &[LockKind::ReaderPreference, LockKind::Packed];

const FLAT: &[LockKind] = &[LockKind::ReaderPreference];

const PACKED: &[LockKind] = &[LockKind::Packed];

const NAMING_HEADS: &[LockKind] = &[LockKind::Packed, LockKind::WritersFirst];

const WRITERS_FIRST: &[LockKind] = &[LockKind::WritersFirst];

const FAIR: &[LockKind] = &[LockKind::Fair];

const BARGING: &[LockKind] = &[LockKind::Barging];

/// A mutated step of a lock with queues, and the smallest job known to detect it.
#[derive(Clone, Copy, Debug)]
pub struct QueuedMutantCase {
    /// The lock.
    pub lock: LockKind,
    /// The mutant.
    pub mutant: QueuedMutant,
    /// The role of each rank.
    pub roles: &'static [Role],
    /// The number of rounds.
    pub rounds: usize,
}

/// A job that detects a mutant of some locks.
type Shown = (QueuedMutant, &'static [LockKind], &'static [Role], usize);

const MUTANTS: &[Shown] = &[
    (NoSecondLook, COUNTED, &[Read, Write], 1),
    (LateInitialisation, &QUEUED, &[Write, Write], 2),
    (HeadNotFlushed, FLAT, &[Read, Write], 1),
    (HeadClearedUnflushed, FLAT, &[Read, Write], 2),
    (HeadNotNamed, NAMING_HEADS, &[Read, Write], 1),
    (HeadKept, PACKED, &[Write, Write], 1),
    (ShortcutIgnored, NAMING_HEADS, &[Read, Write], 1),
    (HandOverIgnored, PACKED, &[Read, Write, Write], 1),
    (ComparisonIgnored, FLAT, &[Read, Write], 1),
    (ComparisonIgnored, NAMING_HEADS, &[Read, Read, Write], 1),
    (RememberedNext, FLAT, &[Read, Write, Write], 2),
    (LeaveMergedWithInterest, BY_READERS, &[Read, Write, Write], 1),
    (StaysCounted, WRITERS_FIRST, &[Read, Write], 1),
    (NobodyTold, WRITERS_FIRST, &[Read, Write], 1),
    (ToldTooLate, WRITERS_FIRST, &[Read, Read, Write, Write], 1),
    (OneComparison, WRITERS_FIRST, &[Read, Read, Write], 2),
    (LateLook, FAIR, &[Read, Read, Read, Write], 1),
    (ReadersIgnored, FAIR, &[Read, Read, Write], 1),
    (NotCounted, FAIR, &[Read, Write], 1),
    (NotSaid, FAIR, &[Read, Write], 1),
    (NotTakenBack, FAIR, &[Read, Write], 1),
    (NotInside, FAIR, &[Read, Read], 1),
    (InsideIgnored, FAIR, &[Read, Read], 1),
    (BlockedTakenForInside, FAIR, &[Read, Write], 2),
    (DataNotFlushed, &QUEUED, &[Read, Write], 1),
    (StoreForSubtract, BY_READERS, &[Read, Write], 1),
    (StoreForSubtract, WRITERS_FIRST, &[Read, Read, Write], 1),
    (StoreForSubtract, FAIR, &[Read, Read, Write], 1),
    (NoSweep, COUNTED, &[Read, Write], 1),
    (TailIgnored, &QUEUED, &[Write, Write], 1),
    (MarkIgnored, &QUEUED, &[Write, Write], 1),
    (MarkIgnored, FAIR, &[Read, Write], 1),
    (NoMark, &QUEUED, &[Write, Write], 1),
    (NoMark, FAIR, &[Read, Write], 1),
    (AbandonedTakenForWoken, &QUEUED, &[WriteBefore, Write], 1),
    (AbandonedTakenForWoken, BY_READERS, &[ReadDropped, Write], 1),
    (AbandonedTakenForWoken, FAIR, &[ReadDropped, Write], 1),
    (AbandonedTakenForWoken, WRITERS_FIRST, &[ReadDropped, Read, Write], 1),
    (DroppedAndForgotten, &QUEUED, &[ReadDropped, Write], 1),
    (DroppedAndForgotten, &QUEUED, &[WriteDropped, Write], 1),
    (FlushNotAwaited, &QUEUED, &[ReadAndPut, WriteAndLook], 1),
    (MarkNotAwaited, &QUEUED, &[WRITES_AGAIN, Write], 1),
    (MarkNotAwaited, FAIR, &[READS_AGAIN, Write], 1),
    (SweepAfterRegistration, BY_READERS, &[READS_TWICE, Write, Write], 1),
    (ReadyTooEarly, &QUEUED, &[READS_AGAIN, Write], 1),
    (NoSecondLook, BARGING, &[Read, Write], 1),
    (DataNotFlushed, BARGING, &[Read, Write], 1),
    (FlushNotAwaited, BARGING, &[ReadAndPut, WriteAndLook], 1),
    (StoreForSubtract, BARGING, &[Read, Write], 1),
    (NoSweep, BARGING, &[Read, Write], 1),
    (TailIgnored, BARGING, &[Write, Write, Write], 1),
    (MarkIgnored, BARGING, &[Write, Write, Write], 1),
    (NoMark, BARGING, &[Write, Write, Write], 1),
    (AbandonedTakenForWoken, BARGING, &[WriteBefore, Write], 1),
    (AbandonedTakenForWoken, BARGING, &[ReadDropped, Write], 1),
    (DroppedAndForgotten, BARGING, &[ReadDropped, Write], 1),
    (DroppedAndForgotten, BARGING, &[WriteDropped, Write], 1),
];

/// Returns all mutants of all locks with queues.
pub fn queued_mutants() -> impl Iterator<Item = QueuedMutantCase> {
    MUTANTS.iter().flat_map(|&(mutant, locks, roles, rounds)| {
        locks.iter().map(move |&lock| QueuedMutantCase { lock, mutant, roles, rounds })
    })
}

/// Mutants of steps that contending writers take there.
pub(super) const IN_ORDER_MUTANTS: &[Shown] = &[
    (HandOverIgnored, PACKED, &[Read, Write, Write], 1),
    (TailIgnored, COUNTED, &[Write, Write], 1),
    (MarkIgnored, COUNTED, &[Write, Write], 1),
    (AbandonedTakenForWoken, COUNTED, &[WriteBefore, Write], 1),
];
