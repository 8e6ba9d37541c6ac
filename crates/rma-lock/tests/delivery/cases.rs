//! What is explored, and what is known of it.

use super::{
    mutant::Step,
    program::Role::{self, *},
};

/// A job of the lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) roles: &'static [Role],
    pub(crate) rounds: usize,
    /// So many states at least: fewer would mean that something is not explored any more. About half of what was recorded.
    pub(crate) at_least: u64,
    /// Explored by `cargo test`, and by `cargo xtask explore --quick`.
    pub(crate) quick: bool,
}

const fn case(name: &'static str, roles: &'static [Role], rounds: usize, at_least: u64, quick: bool) -> Case {
    Case { name, roles, rounds, at_least, quick }
}

/// R and W in a name are readers and writers, the factor is rounds.
pub(crate) const CASES: &[Case] = &[
    case("R1W1x1", &[Read, Write], 1, 100, true),
    case("R1W1x2", &[Read, Write], 2, 500, true),
    case("W1R1x2, the writer at home", &[Write, Read], 2, 500, true),
    case("W2x2", &[Write, Write], 2, 500, true),
    case("R2x2", &[Read, Read], 2, 100, true),
    case("R2W1x1", &[Read, Read, Write], 1, 5_000, true),
    case("R1W2x1", &[Read, Write, Write], 1, 2_000, true),
    case("W3x1", &[Write, Write, Write], 1, 2_000, true),
    case("R1W2x2", &[Read, Write, Write], 2, 100_000, false),
    case("R2W1x2", &[Read, Read, Write], 2, 100_000, false),
    case("R2W2x1", &[Read, Read, Write, Write], 1, 100_000, false),
    case("R1W3x1", &[Read, Write, Write, Write], 1, 50_000, false),
    case("R3W1x1", &[Read, Read, Read, Write], 1, 1_000_000, false),
    // Larger than what has been exhausted.
    case("R2W2x2", &[Read, Read, Write, Write], 2, 100_000, false),
    case("R1W3x2", &[Read, Write, Write, Write], 2, 100_000, false),
    case("tries: write and read x2", &[TryWrite, Read], 2, 100, true),
    case("tries: write and write x2", &[TryWrite, Write], 2, 100, true),
    case("tries: read and write x2", &[TryRead, Write], 2, 100, true),
    case("tries: write twice x2", &[TryWrite, TryWrite], 2, 100, true),
    case("tries: write, read and write x1", &[TryWrite, Read, Write], 1, 1_000, true),
    case("deadlines: write and read x2", &[WriteBefore, Read], 2, 500, true),
    case("deadlines: write and write x2", &[WriteBefore, Write], 2, 500, true),
    case("deadlines: read and write x2", &[ReadBefore, Write], 2, 500, true),
    case("deadlines: write, read and write x1", &[WriteBefore, Read, Write], 1, 1_000, true),
    case("deadlines: read, write and write x1", &[ReadBefore, WriteBefore, Write], 1, 1_000, true),
    case("dropped: read and write x1", &[ReadDropped, Write], 1, 100, true),
    case("dropped: write and read x1", &[WriteDropped, Read], 1, 100, true),
    case("dropped: write and write x1", &[WriteDropped, Write], 1, 100, true),
    case("dropped: write twice x1", &[WriteDropped, WriteDropped], 1, 100, true),
    case("dropped: release of a reader, write x1", &[ReadReleaseDropped, Write], 1, 100, true),
    case("dropped: release of a writer, read x1", &[WriteReleaseDropped, Read], 1, 100, true),
    case("dropped: release and write x1", &[WriteReleaseDropped, WriteDropped], 1, 100, true),
    case("dropped: write, read and write x1", &[WriteDropped, Read, Write], 1, 1_000, false),
    case("dropped: read, read and write x1", &[ReadDropped, Read, Write], 1, 1_000, false),
];

/// A step of the lock done wrong, and the smallest job known to show it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mutation {
    pub(crate) step: Step,
    pub(crate) roles: &'static [Role],
    pub(crate) rounds: usize,
}

const fn mutation(step: Step, roles: &'static [Role], rounds: usize) -> Mutation {
    Mutation { step, roles, rounds }
}

pub(crate) const MUTATIONS: &[Mutation] = &[
    mutation(Step::NoSecondLook, &[Read, Write], 1),
    mutation(Step::LateInitialisation, &[Write, Write], 2),
    mutation(Step::HeadNotFlushed, &[Read, Write], 1),
    mutation(Step::HeadClearedUnflushed, &[Read, Write], 2),
    mutation(Step::ComparisonIgnored, &[Read, Write], 1),
    mutation(Step::RememberedNext, &[Read, Write, Write], 2),
    mutation(Step::LeaveMergedWithInterest, &[Read, Write, Write], 1),
    mutation(Step::DataNotFlushed, &[Read, Write], 1),
    mutation(Step::StoreForSubtract, &[Read, Write], 1),
    mutation(Step::NoSweep, &[Read, Write], 1),
    mutation(Step::TailIgnored, &[Write, Write], 1),
    mutation(Step::MarkIgnored, &[Write, Write], 1),
    mutation(Step::NoMark, &[Write, Write], 1),
    mutation(Step::AbandonedTakenForWoken, &[WriteBefore, Write], 1),
    mutation(Step::AbandonedTakenForWoken, &[ReadDropped, Write], 1),
    mutation(Step::DroppedAndForgotten, &[ReadDropped, Write], 1),
    mutation(Step::DroppedAndForgotten, &[WriteDropped, Write], 1),
];
