//! What is explored, and what is known of it.

use super::{
    mutant::{
        Step::{self, *},
        Subject,
    },
    program::Role::{self, *},
};

/// What the ranks of a job do.
#[derive(Clone, Copy, Debug)]
struct Shape {
    name: &'static str,
    roles: &'static [Role],
    rounds: usize,
    quick: bool,
}

const fn shape(name: &'static str, roles: &'static [Role], rounds: usize, quick: bool) -> Shape {
    Shape { name, roles, rounds, quick }
}

/// The fewest acquisitions in which a rank needs a node that has the mark of a successor on its way: it leaves the mark in one, and the others in queues.
const WRITES_AGAIN: Role = Turns(&[Write, WriteBefore, WriteBefore, WriteBefore, Write]);
const READS_AGAIN: Role = Turns(&[Read, ReadBefore, ReadBefore, ReadBefore, Read]);
/// The fewest in which it has none left.
const WRITES_IN_VAIN: Role = Turns(&[WriteBefore, WriteBefore, WriteBefore, WriteBefore, Write]);
const READS_IN_VAIN: Role = Turns(&[ReadBefore, ReadBefore, ReadBefore, ReadBefore, Read]);
/// Once more, while writers come.
const READS_TWICE: Role = Turns(&[Read, Read]);

const SHAPES: usize = 43;

/// R and W in a name are readers and writers, the factor is rounds.
const ALL: [Shape; SHAPES] = [
    shape("R1W1x1", &[Read, Write], 1, true),
    shape("R1W1x2", &[Read, Write], 2, true),
    shape("W1R1x2, the writer at home", &[Write, Read], 2, true),
    shape("W2x2", &[Write, Write], 2, true),
    shape("R2x2", &[Read, Read], 2, true),
    shape("R2W1x1", &[Read, Read, Write], 1, true),
    shape("R1W2x1", &[Read, Write, Write], 1, true),
    shape("W3x1", &[Write, Write, Write], 1, true),
    shape("R1W2x2", &[Read, Write, Write], 2, false),
    shape("R2W1x2", &[Read, Read, Write], 2, false),
    shape("R2W2x1", &[Read, Read, Write, Write], 1, false),
    shape("R1W3x1", &[Read, Write, Write, Write], 1, false),
    shape("R3W1x1", &[Read, Read, Read, Write], 1, false),
    // Larger than what has been exhausted.
    shape("R2W2x2", &[Read, Read, Write, Write], 2, false),
    shape("R1W3x2", &[Read, Write, Write, Write], 2, false),
    shape("R3W2x1", &[Read, Read, Read, Write, Write], 1, false),
    shape("tries: write and read x2", &[TryWrite, Read], 2, true),
    shape("tries: write and write x2", &[TryWrite, Write], 2, true),
    shape("tries: read and write x2", &[TryRead, Write], 2, true),
    shape("tries: write twice x2", &[TryWrite, TryWrite], 2, true),
    shape("tries: write, read and write x1", &[TryWrite, Read, Write], 1, true),
    shape("deadlines: write and read x2", &[WriteBefore, Read], 2, true),
    shape("deadlines: write and write x2", &[WriteBefore, Write], 2, true),
    shape("deadlines: read and write x2", &[ReadBefore, Write], 2, true),
    shape("deadlines: write, read and write x1", &[WriteBefore, Read, Write], 1, true),
    shape("deadlines: read, write and write x1", &[ReadBefore, WriteBefore, Write], 1, true),
    shape("dropped: read and write x1", &[ReadDropped, Write], 1, true),
    shape("dropped: write and read x1", &[WriteDropped, Read], 1, true),
    shape("dropped: write and write x1", &[WriteDropped, Write], 1, true),
    shape("dropped: write twice x1", &[WriteDropped, WriteDropped], 1, true),
    shape("dropped: release of a reader, write x1", &[ReadReleaseDropped, Write], 1, true),
    shape("dropped: release of a writer, read x1", &[WriteReleaseDropped, Read], 1, true),
    shape("dropped: release and write x1", &[WriteReleaseDropped, WriteDropped], 1, true),
    shape("dropped: write, read and write x1", &[WriteDropped, Read, Write], 1, false),
    shape("dropped: read, read and write x1", &[ReadDropped, Read, Write], 1, true),
    shape("R1x2W2x1", &[READS_TWICE, Write, Write], 1, true),
    shape("puts: read and write x1", &[ReadAndPut, WriteAndLook], 1, true),
    shape("puts: read and write x2", &[ReadAndPut, WriteAndLook], 2, true),
    shape("puts: read, read and write x1", &[ReadAndPut, ReadAndPut, WriteAndLook], 1, true),
    shape("nodes: write, three give up, write", &[WRITES_AGAIN, Write], 1, true),
    shape("nodes: read, three give up, read", &[READS_AGAIN, Write], 1, true),
    shape("nodes: four reads give up", &[READS_IN_VAIN, Write], 1, true),
    shape("nodes: four writes give up", &[WRITES_IN_VAIN, Write], 1, true),
];

/// What is quick with other locks, and not with this one.
const SLOW: &[(Subject, &str)] = &[
    (Subject::Flat, "nodes: four writes give up"),
    (Subject::Packed, "nodes: four writes give up"),
    (Subject::WritersFirst, "nodes: four writes give up"),
    (Subject::WritersFirst, "dropped: read, read and write x1"),
    (Subject::Fair, "nodes: four reads give up"),
];

/// So many states at least: fewer would mean that something is not explored any more. About half of what was recorded.
const AT_LEAST: [(Subject, [u64; SHAPES]); 4] = [
    (
        Subject::Flat,
        [
            100, 500, 500, 500, 100, 5_000, 2_000, 2_000, 100_000, 100_000, 100_000, 50_000, 1_000_000, 100_000,
            100_000, 100_000, 100, 100, 100, 100, 1_000, 500, 500, 500, 1_000, 1_000, 100, 100, 100, 100, 100, 100,
            100, 1_000, 1_000, 12_000, 200, 1_500, 18_000, 34_000, 11_000, 23_000, 68_000,
        ],
    ),
    (
        Subject::Packed,
        [
            100, 900, 900, 3_000, 700, 9_000, 2_000, 2_000, 400_000, 300_000, 300_000, 60_000, 2_000_000, 1, 1, 1, 500,
            700, 500, 100, 1_000, 3_000, 6_000, 2_000, 4_000, 7_000, 1_000, 2_000, 2_000, 40_000, 800, 2_000, 40_000,
            80_000, 200_000, 11_000, 160, 1_400, 17_000, 115_000, 11_000, 22_000, 480_000,
        ],
    ),
    (
        Subject::WritersFirst,
        [
            100, 5_000, 5_000, 3_000, 700, 30_000, 20_000, 2_000, 1, 10_000_000, 5_000_000, 5_000_000, 1, 1, 1, 1,
            1_000, 700, 400, 100, 7_000, 10_000, 6_000, 20_000, 30_000, 50_000, 2_000, 2_000, 2_000, 40_000, 800,
            2_000, 40_000, 1_000_000, 900_000, 90_000, 180, 8_000, 55_000, 112_000, 18_000, 33_000, 470_000,
        ],
    ),
    (
        Subject::Fair,
        [
            90, 2_000, 2_000, 2_000, 10_000, 7_000, 1_000, 1_000, 600_000, 2_000_000, 100_000, 30_000, 2_000_000, 1, 1,
            1, 800, 400, 900, 100, 700, 7_000, 4_000, 5_000, 2_000, 4_000, 2_000, 2_000, 1_000, 10_000, 1_000, 900,
            10_000, 50_000, 100_000, 10_000, 130, 4_000, 11_000, 30_000, 95_000, 260_000, 88_000,
        ],
    ),
];

/// A job of a lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) subject: Subject,
    pub(crate) name: &'static str,
    pub(crate) roles: &'static [Role],
    pub(crate) rounds: usize,
    pub(crate) at_least: u64,
    /// Explored by `cargo test`, and by `cargo xtask explore --quick`.
    pub(crate) quick: bool,
}

/// All jobs of all locks.
pub(crate) fn cases() -> impl Iterator<Item = Case> {
    AT_LEAST.into_iter().flat_map(|(subject, at_least)| {
        ALL.into_iter().zip(at_least).map(move |(Shape { name, roles, rounds, quick }, at_least)| Case {
            subject,
            name,
            roles,
            rounds,
            at_least,
            quick: quick && !SLOW.contains(&(subject, name)),
        })
    })
}

/// A step of a lock done wrong, and the smallest job known to show it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mutation {
    pub(crate) subject: Subject,
    pub(crate) step: Step,
    pub(crate) roles: &'static [Role],
    pub(crate) rounds: usize,
    /// Whether it is found in some seconds.
    pub(crate) quick: bool,
}

const FLAT: &[(Step, &[Role], usize)] = &[
    (NoSecondLook, &[Read, Write], 1),
    (LateInitialisation, &[Write, Write], 2),
    (HeadNotFlushed, &[Read, Write], 1),
    (HeadClearedUnflushed, &[Read, Write], 2),
    (ComparisonIgnored, &[Read, Write], 1),
    (RememberedNext, &[Read, Write, Write], 2),
    (LeaveMergedWithInterest, &[Read, Write, Write], 1),
    (DataNotFlushed, &[Read, Write], 1),
    (StoreForSubtract, &[Read, Write], 1),
    (NoSweep, &[Read, Write], 1),
    (TailIgnored, &[Write, Write], 1),
    (MarkIgnored, &[Write, Write], 1),
    (NoMark, &[Write, Write], 1),
    (AbandonedTakenForWoken, &[WriteBefore, Write], 1),
    (AbandonedTakenForWoken, &[ReadDropped, Write], 1),
    (DroppedAndForgotten, &[ReadDropped, Write], 1),
    (DroppedAndForgotten, &[WriteDropped, Write], 1),
    (FlushNotAwaited, &[ReadAndPut, WriteAndLook], 1),
    (MarkNotAwaited, &[WRITES_AGAIN, Write], 1),
    (SweepAfterRegistration, &[READS_TWICE, Write, Write], 1),
    (ReadyTooEarly, &[READS_AGAIN, Write], 1),
];

const PACKED: &[(Step, &[Role], usize)] = &[
    (NoSecondLook, &[Read, Write], 1),
    (LateInitialisation, &[Write, Write], 2),
    (HeadNotNamed, &[Read, Write], 1),
    (HeadKept, &[Write, Write], 1),
    (ShortcutIgnored, &[Read, Write], 1),
    (HandOverIgnored, &[Read, Write, Write], 1),
    (ComparisonIgnored, &[Read, Read, Write], 1),
    (LeaveMergedWithInterest, &[Read, Write, Write], 1),
    (DataNotFlushed, &[Read, Write], 1),
    (StoreForSubtract, &[Read, Write], 1),
    (NoSweep, &[Read, Write], 1),
    (TailIgnored, &[Write, Write], 1),
    (MarkIgnored, &[Write, Write], 1),
    (NoMark, &[Write, Write], 1),
    (AbandonedTakenForWoken, &[WriteBefore, Write], 1),
    (AbandonedTakenForWoken, &[ReadDropped, Write], 1),
    (DroppedAndForgotten, &[ReadDropped, Write], 1),
    (DroppedAndForgotten, &[WriteDropped, Write], 1),
    (FlushNotAwaited, &[ReadAndPut, WriteAndLook], 1),
    (MarkNotAwaited, &[WRITES_AGAIN, Write], 1),
    (SweepAfterRegistration, &[READS_TWICE, Write, Write], 1),
    (ReadyTooEarly, &[READS_AGAIN, Write], 1),
];

const WRITERS_FIRST: &[(Step, &[Role], usize)] = &[
    (NoSecondLook, &[Read, Write], 1),
    (LateInitialisation, &[Write, Write], 2),
    (HeadNotNamed, &[Read, Write], 1),
    (ShortcutIgnored, &[Read, Write], 1),
    (ComparisonIgnored, &[Read, Read, Write], 1),
    (StaysCounted, &[Read, Write], 1),
    (NobodyTold, &[Read, Write], 1),
    (ToldTooLate, &[Read, Read, Write, Write], 1),
    (OneComparison, &[Read, Read, Write], 2),
    (DataNotFlushed, &[Read, Write], 1),
    (StoreForSubtract, &[Read, Read, Write], 1),
    (NoSweep, &[Read, Write], 1),
    (TailIgnored, &[Write, Write], 1),
    (MarkIgnored, &[Write, Write], 1),
    (NoMark, &[Write, Write], 1),
    (AbandonedTakenForWoken, &[WriteBefore, Write], 1),
    (AbandonedTakenForWoken, &[ReadDropped, Read, Write], 1),
    (DroppedAndForgotten, &[ReadDropped, Write], 1),
    (DroppedAndForgotten, &[WriteDropped, Write], 1),
    (FlushNotAwaited, &[ReadAndPut, WriteAndLook], 1),
    (MarkNotAwaited, &[WRITES_AGAIN, Write], 1),
    (ReadyTooEarly, &[READS_AGAIN, Write], 1),
];

const FAIR: &[(Step, &[Role], usize)] = &[
    (LateLook, &[Read, Read, Read, Write], 1),
    (ReadersIgnored, &[Read, Read, Write], 1),
    (NotCounted, &[Read, Write], 1),
    (NotSaid, &[Read, Write], 1),
    (NotTakenBack, &[Read, Write], 1),
    (NotInside, &[Read, Read], 1),
    (InsideIgnored, &[Read, Read], 1),
    (BlockedTakenForInside, &[Read, Write], 2),
    (LateInitialisation, &[Write, Write], 2),
    (DataNotFlushed, &[Read, Write], 1),
    (StoreForSubtract, &[Read, Read, Write], 1),
    (TailIgnored, &[Write, Write], 1),
    (MarkIgnored, &[Write, Write], 1),
    (MarkIgnored, &[Read, Write], 1),
    (NoMark, &[Write, Write], 1),
    (NoMark, &[Read, Write], 1),
    (AbandonedTakenForWoken, &[WriteBefore, Write], 1),
    (AbandonedTakenForWoken, &[ReadDropped, Write], 1),
    (DroppedAndForgotten, &[ReadDropped, Write], 1),
    (DroppedAndForgotten, &[WriteDropped, Write], 1),
    (FlushNotAwaited, &[ReadAndPut, WriteAndLook], 1),
    (MarkNotAwaited, &[WRITES_AGAIN, Write], 1),
    (MarkNotAwaited, &[READS_AGAIN, Write], 1),
    (ReadyTooEarly, &[READS_AGAIN, Write], 1),
];

/// All mutations of all locks.
pub(crate) fn mutations() -> impl Iterator<Item = Mutation> {
    let all = [
        (Subject::Flat, FLAT),
        (Subject::Packed, PACKED),
        (Subject::WritersFirst, WRITERS_FIRST),
        (Subject::Fair, FAIR),
    ];
    all.into_iter().flat_map(|(subject, steps)| {
        steps.iter().map(move |&(step, roles, rounds)| Mutation {
            subject,
            step,
            roles,
            rounds,
            quick: step != ToldTooLate,
        })
    })
}
