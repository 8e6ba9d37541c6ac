//! Numbers of operations by kind.

/// Numbers of operations by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Libfabric puts.
    pub writes: u64,
    /// Libfabric gets.
    pub reads: u64,
    /// Libfabric loads, stores and atomics of words.
    pub atomics: u64,
    /// Messages sent.
    pub messages: u64,
    /// Requests of peers that were served.
    pub served: u64,
}
