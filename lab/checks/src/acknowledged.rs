//! Network interfaces that acknowledge operations before their effects are visible
//! ([`Explorer::acknowledged`](explore::Explorer::acknowledged)): a protocol is right over a provider
//! that waits for reads behind flushes and atomics, and wrong over one that leaves some of these
//! reads out.
//!
//! These are small jobs; `cargo xtask explore --acknowledged` runs all explorations over such
//! interfaces.

use crate::{
    exploration::{Exploration, Size},
    protocols,
};
use explore::Unread;

const RIGHT: &[&str] = &[
    "RpLock: W2x2",
    "PackedLock: W2x2",
    "WritersFirstLock: W2x2",
    "FairLock: W2x2",
    "BargingLock: W2x2",
    "BackOffLock: [Read, Write] x2",
    "WindowLock: [Read, Write] x2",
    "Nodes: ReadBefore@0 ReadBefore@0 x2",
    "indicator: [ReadBefore, Write] on [0, 1] x2",
    "RecoverableLock: [Write, Read], mortal [1]",
    "window: Exclusive of 2 x2",
    "exchange: slow: a pair x3",
    "exchange: rank 1 may die: slow: one way x2",
    "acp: copy, copy, atomic over three ranks",
    "acp: served by a helper: copy, copy, atomic",
    "acp: split: two delegated atomics",
    "acp: rank 1 may die: a delegated copy",
    "fmpl: a message in one part",
    "fmpl: any source, two of one",
    "fmpl: two barriers of 2",
];

const WRONG: &[(Unread, &[&str])] = &[
    (
        Unread::Flushes,
        &[
            "RpLock: R1W2x1",
            "PackedLock: R1W1x2",
            "WritersFirstLock: R1W1x2",
            "FairLock: W2x2",
            "BargingLock: W2x2",
            "BackOffLock: [Read, Write] x2",
            "WindowLock: [Read, Write] x2",
            "Nodes: ReadAndPut@0 WriteAndLook@1 x2",
            "Tree: ReadAndPut@0 ReadAndPut@0 WriteAndLook@1 x1",
            "indicator: [TryRead, Write] on [0, 1] x2",
            "RecoverableLock: [ReadAndPut, WriteAndLook], mortal []",
            "locked memory, reader preference: [Read, Write]",
            "a lock for each rank: [(Exclusive(rank 0), Plain), (Exclusive(rank 1), Plain)] on [0, 1] x2",
            "exchange: one way x3",
            "acp: a tag is used again",
            "fmpl: any source, of one",
        ],
    ),
    (
        Unread::Atomics,
        &[
            "RpLock: W2x2",
            "PackedLock: R1W1x1",
            "WritersFirstLock: W2x2",
            "FairLock: R1W1x2",
            "BargingLock: R1W1x1",
            "Nodes: Read@0 Write@0 x2",
            "Tree: ReadAndPut@0 ReadAndPut@0 WriteAndLook@1 x1",
            "BackOff: Read@0 Read@0 x2",
            "indicator: [ReadDropped, Write] on [0, 0] x1",
            "RecoverableLock: [Write, Read], mortal [1]",
            "locked memory, reader preference: [Read, Write]",
            "window: Exclusive of 2 x2",
            "acp: served by a helper: copy, copy, atomic",
        ],
    ),
    (
        Unread::FailedComparisons,
        &[
            "RpLock: W2x2",
            "PackedLock: W2x2",
            "WritersFirstLock: W2x2",
            "FairLock: R1W1x1",
            "BargingLock: W2x2",
            "Nodes: ReadBefore@0 ReadBefore@0 x2",
            "indicator: [ReadBefore, Write] on [0, 1] x2",
            "window: Exclusive of 2 x2",
        ],
    ),
];

/// Returns the explorations named `names`.
///
/// # Panics
/// If one of them is missing.
fn named(names: &[&str]) -> Vec<Exploration> {
    let all = protocols();
    let named = |name: &&str| all.iter().find(|job| job.name() == *name).unwrap_or_else(|| panic!("{name}"));
    names.iter().map(named).cloned().collect()
}

/// Returns small jobs of all protocols, over a provider that waits for the reads.
pub fn explorations() -> Vec<Exploration> {
    named(RIGHT).iter().map(Exploration::acknowledged).map(|job| job.of_size(Size::Test)).collect()
}

/// Returns jobs that fail where reads are left out.
pub fn mutants() -> Vec<Exploration> {
    let of = |(unread, names): &(Unread, &[&str])| {
        named(names).iter().map(|job| job.without_read(*unread)).collect::<Vec<_>>()
    };
    WRONG.iter().flat_map(of).collect()
}
