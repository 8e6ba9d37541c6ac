//! Deliberate defects (mutants) that the mutation tests have to detect.

/// A step that is executed incorrectly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(test), allow(dead_code))]
pub(crate) enum Mutant {
    /// Any half of the hosts is a majority.
    AnyHalf,
    /// A host counts for a standby if one of its ranks has voted.
    HostsByHalves,
    /// Epochs that may have ended elsewhere do not count.
    PendingForgotten,
    /// A rank that changes to another coordinator counts as a process that has ended.
    DesertersDead,
}
