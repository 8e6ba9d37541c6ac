//! An error of providers: a rank's CPU executes the rank's atomics on its own memory, while the
//! network's atomics, which are not atomic with respect to a CPU's, access the same words. A job of
//! each kind of lock fails over such a provider.

use crate::exploration::Exploration;

const SHOWN: &[&str] = &[
    "RpLock: R1W1x1",
    "PackedLock: R1W1x1",
    "WritersFirstLock: R1W1x1",
    "FairLock: R1W1x1",
    "BargingLock: R2x2",
    "BackOffLock: [WriteDropped, Read] x1",
    "WindowLock: [WriteDropped, Write] x1",
    "Nodes: Write@0 Read@1 Read@1 x1",
    "Tree: Read@0 Read@0 Read@1 x1",
    "indicator: [Write, Read, Read] on [0, 1, 1] x1",
    "RecoverableLock: [Read, Write], mortal [1]",
    "a lock for each rank: [(All, Plain), (Exclusive(rank 0), Plain)] on [0, 1] x1",
    "a lock for each rank under two classes: [(All, Plain), (All, Plain)] on [0, 1] x2",
    "locked memory, reader preference: [Read, Write]",
    "window: Exclusive of 2 x2",
    "window, back-off: [Exclusive(rank 1), Shared(rank 1)]",
    "BackOff: Read@0 Read@0 x2",
];

/// Returns those of `right` that are known to show it, over such a provider.
///
/// # Panics
/// If one of them is missing.
pub(super) fn explorations(right: &[(&'static str, Vec<Exploration>)]) -> Vec<Exploration> {
    let all = || right.iter().flat_map(|(_, explorations)| explorations);
    let named = |name: &&str| all().find(|exploration| exploration.name() == *name).unwrap_or_else(|| panic!("{name}"));
    SHOWN.iter().map(|name| named(name).with_own_atomics_by_cpu()).collect()
}
