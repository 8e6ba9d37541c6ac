//! Mistakes that tests make on purpose, to see that they are found.

/// A step done wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(test), allow(dead_code))]
pub(crate) enum Mistake {
    /// Half of the hosts is a majority, whichever half it is.
    AnyHalf,
    /// A host counts for a standby that has one of its ranks.
    HostsByHalves,
    /// Epochs that may have ended elsewhere do not count.
    PendingForgotten,
    /// Who goes elsewhere is taken for a process that has ended.
    DesertersDead,
}
