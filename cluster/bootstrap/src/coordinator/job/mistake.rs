//! Deliberate mistakes for mutation tests, which have to detect them.

/// A step that is executed incorrectly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(test), allow(dead_code))]
pub(crate) enum Mistake {
    /// Half of the hosts is a majority, whichever half it is.
    AnyHalf,
    /// A host counts for a standby if one of its ranks has voted.
    HostsByHalves,
    /// Epochs that may have ended elsewhere do not count.
    PendingForgotten,
    /// A rank that changes to another coordinator counts as a process that has ended.
    DesertersDead,
}
