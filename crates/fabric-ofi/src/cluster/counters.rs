//! Counts of what was done by which means.

/// What was done by which means, for those who want to know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Puts of libfabric.
    pub writes: u64,
    /// Gets of libfabric.
    pub reads: u64,
    /// Loads, stores and atomics of libfabric.
    pub atomics: u64,
    /// Messages sent.
    pub messages: u64,
    /// Requests of peers that were served.
    pub served: u64,
}
