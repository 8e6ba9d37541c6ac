//! What a run was like.

use super::control_queue::CommandCounts;
use rdma_fabric::Time;

/// Operations posted. The atomics of a rank on its own node's memory count like any others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpCounts {
    /// Puts.
    pub puts: u64,
    /// Gets.
    pub gets: u64,
    /// Atomics.
    pub atomics: u64,
    /// Commands that do nothing.
    pub nops: u64,
    /// Puts that leave a notice; counted among the puts too.
    pub notices: u64,
    /// Bytes put.
    pub bytes_put: u64,
    /// Bytes got.
    pub bytes_got: u64,
    /// Puts, gets and atomics whose target is on another node.
    pub off_node: u64,
}

/// Figures of a whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Events handled.
    pub events: u64,
    /// Times a rank's task was polled.
    pub polls: u64,
    /// When the last rank finished.
    pub end: Time,
    /// A hash over time, kind and rank (or node) of every event: equal for equal runs, on every platform.
    pub trace_hash: u64,
    /// All ranks' operations.
    pub ops: OpCounts,
    /// All control queues' commands.
    pub commands: CommandCounts,
    /// Estimated peak memory per rank in bytes: the task, the rank's fixed state, and its share of operation slots, pending events
    /// and registered memory that was written. Payloads in flight and the programs' own allocations are not in it.
    pub bytes_per_rank: usize,
}
