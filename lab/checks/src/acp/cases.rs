//! The jobs that are explored, and the mutants that they detect.

use super::{Case, Job, mutants::AcpMutant, slots};
use crate::exploration::{Expected, Exploration, Size};

const CHAIN: Case = Case::new("copy, copy, atomic over three ranks", Job::Chain);
const PAIR: Case = Case::new("two copies of a pair", Job::Pair);
const DELEGATED_PAIR: Case = Case::new("two delegated copies of a pair", Job::DelegatedPair);
const ACROSS: Case = Case::new("a copy continues one of another pair", Job::Across);
const DELEGATED: Case = Case::new("a delegated copy", Job::Delegated);
const BOTH: Case = Case::new("two ranks have a copy made by a third", Job::Both);
const ATOMICS: Case = Case::new("two delegated atomics", Job::Atomics);
const QUEUED_CHAIN: Case = CHAIN.helped("queued by rank 0: copy, copy, atomic", 1);
const QUEUED_CHAIN_SERVED: Case = CHAIN.helped("served by a helper: copy, copy, atomic", 4);
const QUEUED_CHAIN_ALL: Case = CHAIN.helped("queued by all: copy, copy, atomic", 7);
const QUEUED_PAIR: Case = PAIR.helped("queued: two copies of a pair", 1);
const QUEUED_DELEGATED_PAIR: Case = DELEGATED_PAIR.helped("queued by all: two delegated copies of a pair", 7);
const QUEUED_BOTH: Case = BOTH.helped("queued by all: two ranks have a copy made by a third", 7);
const BYPASSED_CHAIN: Case = QUEUED_CHAIN.bypassing("queued by rank 0, with bypass: copy, copy, atomic");
const BYPASSED_PAIR: Case = QUEUED_PAIR.bypassing("queued, with bypass: two copies of a pair");
const QUEUED_ACROSS: Case = ACROSS.helped("queued: a copy continues one of another pair", 1);
const QUEUED_DELEGATED: Case = DELEGATED.helped("queued by rank 0: a delegated copy", 1);
const QUEUED_DELEGATED_ALL: Case = DELEGATED.helped("queued by all: a delegated copy", 7);
const QUEUED_ATOMICS: Case = ATOMICS.helped("queued: two delegated atomics", 3);
const SPLIT_CHAIN: Case = CHAIN.split("split: copy, copy, atomic");
const SPLIT_DELEGATED_PAIR: Case = DELEGATED_PAIR.split("split: two delegated copies of a pair");
const SPLIT_DELEGATED: Case = DELEGATED.split("split: a delegated copy");
const SPLIT_ATOMICS: Case = ATOMICS.split("split: two delegated atomics");
const REUSE: Case = Case::new("a tag is used again", Job::Reuse(1));
const REUSE_TWICE: Case = Case::new("a tag is used again, twice", Job::Reuse(2));

/// The jobs, and the fewest states that each may have.
const CASES: &[(Case, u64, Size)] = &[
    (CHAIN, 300, Size::Test),
    (PAIR, 28, Size::Test),
    (DELEGATED_PAIR, 14_000, Size::Quick),
    (ACROSS, 33, Size::Test),
    (DELEGATED, 250, Size::Test),
    (BOTH, 600_000, Size::Full),
    (ATOMICS, 250, Size::Test),
    (REUSE, 220, Size::Test),
    (REUSE_TWICE, 1_000, Size::Test),
    (QUEUED_CHAIN, 1_600, Size::Test),
    (QUEUED_CHAIN_SERVED, 140, Size::Test),
    (QUEUED_CHAIN_ALL, 1_000, Size::Test),
    (QUEUED_PAIR, 160, Size::Test),
    (BYPASSED_CHAIN, 3_300, Size::Test),
    (BYPASSED_PAIR, 300, Size::Test),
    (QUEUED_DELEGATED_PAIR, 4_000, Size::Test),
    (QUEUED_ACROSS, 160, Size::Test),
    (QUEUED_DELEGATED, 450, Size::Test),
    (QUEUED_DELEGATED_ALL, 320, Size::Test),
    (QUEUED_BOTH, 75_000, Size::Quick),
    (QUEUED_ATOMICS, 450, Size::Test),
    (SPLIT_CHAIN, 3_700, Size::Test),
    (SPLIT_DELEGATED_PAIR, 9_000, Size::Test),
    (SPLIT_DELEGATED, 1_100, Size::Test),
    (SPLIT_ATOMICS, 1_100, Size::Test),
    (SPLIT_ATOMICS.dying("rank 0 may die, split: two delegated atomics", 0), 1_800, Size::Test),
    (SPLIT_ATOMICS.dying("rank 1 may die, split: two delegated atomics", 1), 4_000, Size::Test),
    (SPLIT_DELEGATED.dying("rank 0 may die, split: a delegated copy", 0), 4_000, Size::Test),
    (SPLIT_DELEGATED.dying("rank 1 may die, split: a delegated copy", 1), 7_000, Size::Test),
    (SPLIT_DELEGATED.dying("rank 2 may die, split: a delegated copy", 2), 13_000, Size::Test),
    (QUEUED_CHAIN_ALL.dying("rank 0 may die, queued by all: copy, copy, atomic", 0), 2_100, Size::Test),
    (QUEUED_CHAIN_ALL.dying("rank 1 may die, queued by all: copy, copy, atomic", 1), 7_200, Size::Test),
    (QUEUED_CHAIN_ALL.dying("rank 2 may die, queued by all: copy, copy, atomic", 2), 11_000, Size::Test),
    (QUEUED_ATOMICS.dying("rank 0 may die, queued: two delegated atomics", 0), 900, Size::Test),
    (QUEUED_ATOMICS.dying("rank 1 may die, queued: two delegated atomics", 1), 1_300, Size::Test),
    (DELEGATED.dying("rank 0 may die: a delegated copy", 0), 700, Size::Test),
    (DELEGATED.dying("rank 1 may die: a delegated copy", 1), 1_500, Size::Test),
    (DELEGATED.dying("rank 2 may die: a delegated copy", 2), 600, Size::Test),
    (CHAIN.dying("rank 0 may die: copy, copy, atomic", 0), 1_400, Size::Quick),
    (CHAIN.dying("rank 1 may die: copy, copy, atomic", 1), 5_000, Size::Quick),
    (CHAIN.dying("rank 2 may die: copy, copy, atomic", 2), 2_000, Size::Quick),
    (ATOMICS.dying("rank 0 may die: two delegated atomics", 0), 400, Size::Test),
    (ATOMICS.dying("rank 1 may die: two delegated atomics", 1), 800, Size::Test),
];

/// The mutants, and the jobs that detect them.
const MUTANTS: &[(AcpMutant, Case, &str)] = &[
    (AcpMutant::NotFlushed, CHAIN, "deadlock"),
    (AcpMutant::NotFlushed, ATOMICS, "deadlock"),
    (AcpMutant::CopyNotFlushed, CHAIN, "what the atomic found"),
    (AcpMutant::CopyNotFlushed, PAIR, "the first copy"),
    (AcpMutant::CopyNotFlushed, ACROSS, "the first copy"),
    (AcpMutant::ValueNotFlushed, ATOMICS, "what the"),
    (AcpMutant::NotFlushed, QUEUED_CHAIN_ALL, "deadlock"),
    (AcpMutant::CopyNotFlushed, QUEUED_CHAIN_ALL, "what the atomic found"),
    (AcpMutant::CopyNotFlushed, QUEUED_PAIR, "the first copy"),
    (AcpMutant::CopyNotFlushed, BYPASSED_PAIR, "the first copy"),
    (AcpMutant::CopyNotFlushed, QUEUED_ACROSS, "the first copy"),
    (AcpMutant::ValueNotFlushed, QUEUED_ATOMICS, "what the"),
    (AcpMutant::RepliesFirst, QUEUED_CHAIN_ALL, "what the"),
    (AcpMutant::NotFlushed, SPLIT_DELEGATED, "deadlock"),
    (AcpMutant::NotFlushed, SPLIT_ATOMICS, "deadlock"),
    (AcpMutant::CopyNotFlushed, SPLIT_CHAIN, "what the atomic found"),
    (AcpMutant::ValueNotFlushed, SPLIT_ATOMICS, "what the"),
    (AcpMutant::RepliesFirst, SPLIT_DELEGATED, "what came"),
    (AcpMutant::RepliesFirst, CHAIN, "what the"),
    (AcpMutant::RepliesFirst, DELEGATED, "what came"),
    (AcpMutant::RepliesFirst, DELEGATED_PAIR, "the first copy"),
    (AcpMutant::OldMapping, REUSE, "the old region"),
    (AcpMutant::NotWithdrawn, REUSE, "are outside its 8 bytes"),
];

/// Returns all explorations of global addresses.
pub fn explorations() -> Vec<Exploration> {
    let cases = CASES.iter().map(|(case, at_least, size)| {
        case.exploration(Expected::Exhausted { at_least: *at_least }, None).of_size(*size)
    });
    let mutants = MUTANTS.iter().map(|(mutant, case, saying)| {
        case.exploration(Expected::Violated { saying, within: 1_000_000 }, Some(*mutant))
    });
    cases.chain(mutants).chain(slots::explorations()).collect()
}
