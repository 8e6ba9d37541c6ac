//! The jobs that are explored, and the mutants that they detect.

use super::{Case, Job, mutants::FmplMutant};
use crate::exploration::{Expected, Exploration, Size};

const ROW: Case = Case::new("two messages with one index", Job::Row { messages: 2, words: 1 });
const ROW_OF_THREE: Case = Case::new("three messages with one index", Job::Row { messages: 3, words: 1 });
const ONE: Case = Case::new("a message", Job::Row { messages: 1, words: 1 });
const PAIR: Case = Case::new("a message of two words", Job::Row { messages: 1, words: 2 });
const PAIRS: Case = Case::new("two messages of two words", Job::Row { messages: 2, words: 2 });
const AHEAD: Case = Case::new("two indices, the second is sent first", Job::Ahead(1));
const AHEAD_TWICE: Case = Case::new("two indices, twice", Job::Ahead(2));
const CROSS: Case = Case::new("a message each way", Job::Cross);
const SPOOLED: Case = ROW.spooled("two messages, spooled if no header is there", 1 << 10, 0);
/// If the receiver is late, the third and the fourth message are queued.
const SPOOLED_THREE: Case =
    ROW_OF_THREE.spooled("", 1 << 10, 0).ending("three messages, spooled if no header is there");
const QUEUED: Case = Case::new("", Job::Row { messages: 4, words: 1 })
    .spooled("", 1 << 10, 0)
    .ending("four messages, spooled if no header is there");
/// The sender makes no further calls.
const QUEUED_AND_LEFT: Case = Case::new("", Job::Row { messages: 4, words: 1 }).spooled(
    "four messages, spooled, of a sender that makes no other call",
    1 << 10,
    0,
);
const QUEUED_PARTS: Case =
    Case::new("", Job::Parts { messages: 4, words: 3 }).spooled("four messages in three parts, or spooled", 1 << 10, 0);
const ANY_QUEUED: Case = Case::new("", Job::AnyRow(4)).spooled("any index, four of one index, spooled", 1 << 10, 0);
const SOURCE_QUEUED: Case = Case::new("", Job::Source(4)).spooled("any source, four of one, spooled", 1 << 10, 0);
const INLINE: Case = SPOOLED.inline("two messages, in their offers if no header is there");
const INLINE_THREE: Case = SPOOLED_THREE.inline("three messages, in their offers or queued");
const TIMED: Case = ROW.spooled("two messages, spooled after a time", 1 << 10, 1);
const FULL: Case = ROW.spooled("two messages, a spool for one", 64, 0);
const LONGER: Case = Case::new("", Job::Longer).spooled("a message, and one longer than the spool", 64, 0);
const ANY_BESIDE: Case = Case::new("any index beside index 0", Job::AnyBeside);
const ANY_TWICE: Case = Case::new("any index twice, two of one index", Job::AnyTwice([0, 0]));
const ANY_BOTH: Case = Case::new("any index twice, two indices", Job::AnyTwice([0, 1]));
const ANY_ROW: Case = Case::new("any index, one after the other", Job::AnyRow(2));
const ANY_SPOOLED: Case = ANY_BESIDE.spooled("any index beside index 0, spooled", 1 << 10, 0);
const ANY_INLINE: Case = ANY_BESIDE.spooled("", 1 << 10, 0).inline("any index beside index 0, in their offers");
const ANY_TWICE_SPOOLED: Case = ANY_BOTH.spooled("any index twice, spooled", 1 << 10, 0);
const ANY_ROW_SPOOLED: Case = ANY_ROW.spooled("any index, one after the other, spooled", 1 << 10, 0);
const DIRECT: Case = Case::new("any index, matched by the sender", Job::DirectRow(1));
const DIRECT_SPOOLED: Case = DIRECT.spooled("any index, matched by the sender, one, or spooled", 1 << 10, 0);
const DIRECT_ROW: Case = Case::new("any index, matched by the sender, one after the other", Job::DirectRow(2));
const DIRECT_ROW_SPOOLED: Case = DIRECT_ROW.spooled("any index, matched by the sender, or spooled", 1 << 10, 0);
const DIRECT_FOUR_SPOOLED: Case = Case::new("", Job::DirectRow(4)).spooled(
    "any index, matched by the sender, four of one index, or spooled",
    1 << 10,
    0,
);
const DIRECT_INLINE: Case = DIRECT_ROW_SPOOLED.inline("any index, matched by the sender, or in their offers");
const DIRECT_TIMED: Case = DIRECT_ROW.spooled("any index, matched by the sender, spooled after a time", 1 << 10, 1);
const DIRECT_TWICE: Case = Case::new("any index twice, matched by the sender", Job::DirectTwice([0, 1]));
const DIRECT_TWICE_SPOOLED: Case =
    DIRECT_TWICE.spooled("any index twice, matched by the sender, or spooled", 1 << 10, 0);
const DIRECT_BESIDE: Case = Case::new("any index, matched by the sender, beside index 0", Job::DirectBeside);
const DIRECT_RACE: Case = Case::new("any index and index 0 race for a message", Job::DirectRace);
const DIRECT_RACE_SPOOLED: Case = DIRECT_RACE.spooled("any index and index 0 race, spooled", 1 << 10, 0);
const DIRECT_DROPPED: Case = Case::new("a dropped receive of any index, matched by the sender", Job::DirectDropped);
const DIRECT_DROPPED_SPOOLED: Case =
    DIRECT_DROPPED.spooled("a dropped receive of any index, matched by the sender, or spooled", 1 << 10, 0);
const SOURCE: Case = Case::new("any source, of one", Job::Source(1));
const SOURCE_TWICE: Case = Case::new("any source, two of one", Job::Source(2));
const SOURCE_TWICE_LONG: Case = SOURCE_TWICE.long("any source, two of one, in its memory");
const SOURCES: Case = Case::new("any source, of two", Job::Source(1)).of(3);
const SOURCES_SPOOLED: Case = SOURCES.spooled("any source, of two, spooled", 1 << 10, 0);
const BARRIER: Case = Case::new("two barriers of 2", Job::Barrier(2));
const BARRIER_THREE: Case = Case::new("a barrier of 3", Job::Barrier(1)).of(3);
const BARRIERS_THREE: Case = Case::new("two barriers of 3", Job::Barrier(2)).of(3);
const BOX: Case = BARRIER.in_boxes("two barriers of 2, released by multicast", 2);
const BOX_OF_THREE: Case = BARRIER_THREE.in_boxes("a barrier of 3, released by multicast", 3);
const BOX_AND_ONE: Case = BARRIER_THREE.in_boxes("a barrier of 2 and 1, released by multicast", 2);
const TWO_BOXES: Case = Case::new("", Job::Barrier(1)).of(4).in_boxes("a barrier of 2 and 2, released by multicast", 2);
const COUNTER: Case = BARRIER.at_counter("two barriers of 2 at a counter");
const COUNTER_OF_THREE: Case = BARRIER_THREE.at_counter("a barrier of 3 at a counter");
const COUNTER_OF_THREE_TWICE: Case = BARRIERS_THREE.at_counter("two barriers of 3 at a counter");
const SLOTS: Case = BROADCAST.at_counter("two broadcasts of 2 through slots");
const SLOTS_OF_THREE: Case = BROADCAST_THREE.at_counter("a broadcast of 3 through slots");
const ROWS: Case = Case::new("", Job::Allreduce(1)).at_counter("a sum for both in rows");
const ROWS_OF_THREE: Case = ALLREDUCE_THREE.at_counter("a sum for all 3 in rows");
const BROADCAST: Case = Case::new("two broadcasts of 2", Job::Broadcast(2));
const BROADCAST_THREE: Case = Case::new("a broadcast of 3", Job::Broadcast(1)).of(3);
const REDUCE: Case = Case::new("two reductions of 2", Job::Reduce(2));
const REDUCE_THREE: Case = Case::new("a reduction of 3", Job::Reduce(1)).of(3);
const ALLREDUCE: Case = Case::new("two sums for both", Job::Allreduce(2));
const ALLREDUCE_THREE: Case = Case::new("a sum for all 3", Job::Allreduce(1)).of(3);

const PART: Case = Case::new("a message in one part", Job::Parts { messages: 1, words: 1 });
const TWO_PARTS: Case = Case::new("a message in two parts", Job::Parts { messages: 1, words: 2 });
const FOUR_PARTS: Case = Case::new("a message in four parts", Job::Parts { messages: 1, words: 4 });
const PARTS_TWICE: Case = Case::new("two messages in two parts", Job::Parts { messages: 2, words: 2 });
const PARTS_SPOOLED: Case = PARTS_TWICE.spooled("two messages in two parts, or in their offers", 1 << 10, 0);

/// The jobs that are explored exhaustively, and the minimum number of states of each.
const CASES: &[(Case, u64, Size)] = &[
    (ROW, 10_000, Size::Test),
    (ROW_OF_THREE, 15_000, Size::Full),
    (PAIRS, 11_000, Size::Full),
    (ROW_OF_THREE.ordered("three messages, puts in order"), 14_000, Size::Full),
    (ROW.unmet("two messages of ranks that have not met"), 40_000, Size::Full),
    (PAIR, 16_000, Size::Quick),
    (ONE.unmet("a message of ranks that have not met"), 100_000, Size::Quick),
    (AHEAD, 90_000, Size::Full),
    (AHEAD_TWICE, 360_000, Size::Full),
    (ANY_ROW, 44_000, Size::Full),
    (ANY_ROW_SPOOLED, 230_000, Size::Full),
    (DIRECT, 110_000, Size::Quick),
    (DIRECT_SPOOLED, 300_000, Size::Full),
    (DIRECT_ROW, 900_000, Size::Full),
    (DIRECT_ROW_SPOOLED.ordered("any index, matched by the sender, or spooled, puts in order"), 100_000, Size::Test),
    (PART, 1, Size::Test),
    (SOURCE, 200, Size::Test),
    (SOURCE_TWICE, 1_300, Size::Test),
    (SOURCE_TWICE_LONG, 1_300, Size::Test),
    (SOURCES, 33_000, Size::Quick),
    (SOURCES_SPOOLED, 21_000, Size::Full),
    (BARRIER, 240, Size::Test),
    (BARRIER_THREE, 5_500, Size::Test),
    (BARRIERS_THREE, 19_000, Size::Full),
    (BOX, 460, Size::Test),
    (BOX_OF_THREE, 2_500, Size::Test),
    (BOX_AND_ONE, 13_000, Size::Test),
    (COUNTER, 8_000, Size::Test),
    (SLOTS, 180, Size::Test),
    (SLOTS_OF_THREE, 12_000, Size::Test),
    (SLOTS_OF_THREE.dying("the root may die: a broadcast of 3 through slots", 0), 38_000, Size::Quick),
    (BROADCAST, 5_800, Size::Test),
    (REDUCE, 5_000, Size::Test),
    (ALLREDUCE, 100_000, Size::Full),
    (ONE.dying("the sender may die: a message", 0), 20_000, Size::Test),
    (ROW.dying("the sender may die: two messages", 0), 10_000, Size::Full),
    (ONE.dying("the receiver may die: a message", 1), 43_000, Size::Quick),
    (ROW.dying("the receiver may die: two messages", 1), 28_000, Size::Full),
    (DIRECT.dying("the sender may die: any index, matched by the sender", 0), 130_000, Size::Full),
    (DIRECT.dying("the receiver may die: any index, matched by the sender", 1), 270_000, Size::Full),
    (SOURCE.dying("the sender may die: any source", 1), 800, Size::Test),
    (SOURCE.dying("the receiver may die: any source", 0), 470, Size::Test),
    (BARRIER_THREE.dying("the root may die: a barrier of 3", 0), 9_600, Size::Test),
    (BARRIER_THREE.dying("a leaf may die: a barrier of 3", 1), 15_000, Size::Test),
    (BOX_AND_ONE.dying("the root may die: a barrier of 2 and 1, released by multicast", 0), 37_000, Size::Quick),
    (BOX_AND_ONE.dying("a leader may die: a barrier of 2 and 1, released by multicast", 2), 50_000, Size::Quick),
];

/// The jobs that have more states, and are explored in random orders.
const SAMPLED: &[Case] = &[
    CROSS,
    SPOOLED,
    TWO_PARTS,
    TWO_PARTS.ordered("a message in two parts, puts in order"),
    FOUR_PARTS,
    PARTS_TWICE,
    PARTS_SPOOLED,
    TWO_PARTS.dying("the sender may die: a message in two parts", 0),
    TWO_PARTS.dying("the receiver may die: a message in two parts", 1),
    INLINE,
    INLINE_THREE,
    INLINE.dying("the sender may die: in their offers", 0),
    INLINE.dying("the receiver may die: in their offers", 1),
    SPOOLED_THREE,
    SPOOLED_THREE.ordered("three messages, spooled, puts in order"),
    QUEUED,
    QUEUED.ordered("four messages, spooled, puts in order"),
    QUEUED_AND_LEFT,
    QUEUED_PARTS,
    ANY_QUEUED,
    SOURCE_QUEUED,
    QUEUED.dying("the sender may die: four messages, spooled", 0),
    QUEUED.dying("the receiver may die: four messages, spooled", 1),
    TIMED,
    FULL,
    LONGER,
    ANY_BESIDE,
    ANY_TWICE,
    ANY_BOTH,
    ANY_SPOOLED,
    ANY_INLINE,
    ANY_TWICE_SPOOLED,
    TWO_BOXES,
    DIRECT_ROW_SPOOLED,
    DIRECT_INLINE,
    DIRECT_FOUR_SPOOLED,
    DIRECT_TIMED,
    DIRECT_TWICE_SPOOLED,
    DIRECT_BESIDE,
    DIRECT_RACE,
    DIRECT_RACE_SPOOLED,
    DIRECT_DROPPED,
    DIRECT_DROPPED_SPOOLED,
    DIRECT_ROW_SPOOLED.dying("the sender may die: any index, matched by the sender, or spooled", 0),
    DIRECT_ROW_SPOOLED.dying("the receiver may die: any index, matched by the sender, or spooled", 1),
    BROADCAST_THREE,
    REDUCE_THREE,
    ALLREDUCE_THREE,
    COUNTER_OF_THREE,
    COUNTER_OF_THREE_TWICE,
    COUNTER_OF_THREE.dying("the member with the counter may die: a barrier of 3 at a counter", 0),
    COUNTER_OF_THREE.dying("another member may die: a barrier of 3 at a counter", 1),
    ROWS,
    ROWS_OF_THREE,
    SPOOLED.dying("the sender may die: spooled", 0),
    SPOOLED.dying("", 1).ending("the receiver may die: spooled, to the end"),
    ANY_BESIDE.dying("the sender may die: any index beside index 0", 0),
    ANY_BESIDE.dying("the receiver may die: any index beside index 0", 1),
    BROADCAST_THREE.dying("the root may die: a broadcast of 3", 0),
    BROADCAST_THREE.dying("a leaf may die: a broadcast of 3", 2),
    REDUCE_THREE.dying("the root may die: a reduction of 3", 0),
    REDUCE_THREE.dying("a leaf may die: a reduction of 3", 1),
];
const RUNS: u64 = 10_000;

/// The mutants, and the jobs that detect them.
const MUTANTS: &[(FmplMutant, Case, &str)] = &[
    (FmplMutant::SenderFlushesNot, ROW, "what came"),
    (FmplMutant::SenderFlushesNot, AHEAD, "what came"),
    (FmplMutant::SenderFlushesNot, BROADCAST, "what came"),
    (FmplMutant::SenderFlushesNot, TWO_PARTS, "what came"),
    (FmplMutant::FlushesNot, REDUCE, "what came"),
    (FmplMutant::FlushesNot, SOURCE, "deadlock"),
    (FmplMutant::ReceiverFlushesNot, SPOOLED_THREE, "deadlock"),
    (FmplMutant::ReceiverFlushesNot, ANY_ROW, "deadlock"),
    (FmplMutant::OfferedFirst, SPOOLED, "what came"),
    (FmplMutant::TakenTwice, ANY_ROW_SPOOLED, "what came"),
    (FmplMutant::TakenTwice, SPOOLED, "what came"),
    (FmplMutant::TakenTwice, INLINE, "what came"),
    (FmplMutant::TornOffer, INLINE, "what came"),
    (FmplMutant::TornOffer, SOURCE, "what came"),
    (FmplMutant::ReleasedEarly, BOX, "somebody left a barrier early"),
    (FmplMutant::ReleasedTwice, BOX, "somebody left a barrier early"),
    (FmplMutant::NotReleased, BOX, "deadlock"),
    (FmplMutant::ReleasedTwice, COUNTER, "somebody left a barrier early"),
    (FmplMutant::NotReleased, COUNTER, "deadlock"),
    (FmplMutant::FlushesNot, ROWS, "what came"),
    (FmplMutant::SenderFlushesNot, SLOTS, "what came"),
];

/// The mutants that random orders detect.
const MUTANTS_AT_RANDOM: &[(FmplMutant, Case)] = &[
    (FmplMutant::SpooledAndPut, SPOOLED),
    (FmplMutant::ReceiverFlushesNot, LONGER),
    (FmplMutant::OneBuffer, TWO_PARTS),
    (FmplMutant::OfferedOver, SPOOLED_THREE),
    (FmplMutant::OfferedOver, INLINE_THREE),
    (FmplMutant::QueuedInSilence, QUEUED_AND_LEFT),
    (FmplMutant::QueuedFirst, SPOOLED_THREE),
    (FmplMutant::SenderFlushesNot, QUEUED),
    (FmplMutant::PassedEarly, TWO_BOXES),
    (FmplMutant::SenderFlushesNot, DIRECT_ROW),
    (FmplMutant::ReceiverFlushesNot, DIRECT_BESIDE),
    (FmplMutant::VoidHeaderUsed, DIRECT_TIMED),
    (FmplMutant::OfferBeforeHeader, DIRECT_ROW_SPOOLED),
    (FmplMutant::AnyIndexFirst, DIRECT_BESIDE),
];

/// Returns all explorations of messages.
pub fn explorations() -> Vec<Exploration> {
    let cases = CASES.iter().map(|(case, at_least, size)| {
        case.exploration(Expected::Exhausted { at_least: *at_least }, None).of_size(*size)
    });
    let sampled = SAMPLED.iter().map(|case| case.exploration(Expected::Sampled { runs: RUNS }, None));
    let mutants = MUTANTS.iter().map(|(mutant, case, saying)| {
        case.exploration(Expected::Violated { saying, within: 1_000_000 }, Some(*mutant))
    });
    let at_random = MUTANTS_AT_RANDOM
        .iter()
        .map(|(mutant, case)| case.exploration(Expected::ViolatedAtRandom { runs: 10 * RUNS }, Some(*mutant)));
    cases.chain(sampled).chain(mutants).chain(at_random).collect()
}
