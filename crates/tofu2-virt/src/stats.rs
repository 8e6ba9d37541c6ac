//! Figures about a run.

use super::operation::{Op, Opcode};
use rdma_fabric::Time;

/// Operations posted. A rank's atomics on its own node's memory count like any others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpCounts {
    /// Puts.
    pub puts: u64,
    /// Gets.
    pub gets: u64,
    /// Third-party copies.
    pub copies: u64,
    /// Atomics.
    pub atomics: u64,
    /// Nops: commands without effects.
    pub nops: u64,
    /// Puts that leave a notice. They are also counted in `puts`.
    pub notices: u64,
    /// Bytes put.
    pub bytes_put: u64,
    /// Bytes got.
    pub bytes_got: u64,
    /// Puts, gets, atomics and copies whose target, or source, is on another node.
    pub off_node: u64,
}

/// Operations posted, by all ranks together and, if requested, by each rank.
#[derive(Debug)]
pub(super) struct Counts {
    all: OpCounts,
    by_rank: Option<Vec<OpCounts>>,
}

impl Counts {
    /// Creates counters; also one for each of `ranks` ranks if `by_rank`.
    pub(super) fn new(ranks: u32, by_rank: bool) -> Self {
        let by_rank = by_rank.then(|| vec![OpCounts::default(); ranks as usize]);
        Counts { all: OpCounts::default(), by_rank }
    }

    #[inline]
    pub(super) fn count(&mut self, op: &Op, rank: u32, off_node: bool) {
        let one = |counts: &mut OpCounts| {
            match op.opcode {
                Opcode::Put => (counts.puts, counts.bytes_put) = (counts.puts + 1, counts.bytes_put + op.target.len),
                Opcode::Get => (counts.gets, counts.bytes_got) = (counts.gets + 1, counts.bytes_got + op.target.len),
                Opcode::Copy => counts.copies += 1,
                Opcode::Nop => counts.nops += 1,
                _ => counts.atomics += 1,
            }
            counts.off_node += u64::from(off_node && op.opcode != Opcode::Nop);
            counts.notices += u64::from(op.attachment.as_ref().is_some_and(|attachment| attachment.notice.is_some()));
        };
        one(&mut self.all);
        if let Some(by_rank) = &mut self.by_rank {
            one(&mut by_rank[rank as usize]);
        }
    }

    pub(super) fn all(&self) -> OpCounts {
        self.all
    }

    /// Takes each rank's counts, at the end of the run.
    pub(super) fn take_by_rank(&mut self) -> Option<Vec<OpCounts>> {
        self.by_rank.take()
    }
}

/// The number of control-queue commands that reached each stage. Each block of a strided command
/// counts as one command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandCounts {
    /// Written into a TOQ.
    pub posted: u64,
    /// Fetched by a send engine.
    pub started: u64,
    /// Left the send engine. Commands that neither read nor write the poster's memory do not.
    pub sent: u64,
    /// Complete at the poster: the source may be reused, or the result has arrived.
    pub completed: u64,
    /// Passed the target's receive engine.
    pub arrived: u64,
    /// Took effect on the target's memory.
    pub visible: u64,
    /// Puts that advanced a session offset.
    pub released: u64,
}

/// Figures of a whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Events handled.
    pub events: u64,
    /// Times a rank's task, or a helper's, was polled.
    pub polls: u64,
    /// The time at which the last rank finished.
    pub end: Time,
    /// A hash of the time, kind and rank (or node) of every event. Equal runs have equal hashes, on
    /// every platform.
    pub trace_hash: u64,
    /// All ranks' operations.
    pub ops: OpCounts,
    /// All control queues' commands.
    pub commands: CommandCounts,
    /// Estimated peak memory per rank in bytes: the task, the rank's fixed state, and its share of
    /// operation slots, pending events and registered memory that was written. Payloads in flight
    /// and the programs' own allocations are not included.
    pub bytes_per_rank: usize,
}
