//! Why a call failed.

use crate::{layout::LayoutError, topology::Side};
use rdma_fabric::{FabricError, Rank, control_queue::QueueError};

/// A call that did not do what it was asked to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PrdmaError {
    /// The fabric failed underneath. A neighbour that is lost is [`FabricError::PeerLost`] here.
    #[error(transparent)]
    Fabric(FabricError),
    /// A block that no memory can have.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// As many blocks as slots must be given.
    #[error("{given} {side} blocks were given for {slots} slots")]
    Slots {
        /// Of which side.
        side: Side,
        /// Blocks given.
        given: usize,
        /// Slots of the topology.
        slots: usize,
    },
    /// A block leaves its buffer.
    #[error("the block of {side} slot {slot} ends at byte {end} of a buffer of {len}")]
    OutOfBounds {
        /// Of which side.
        side: Side,
        /// Its slot.
        slot: usize,
        /// The byte after its last one.
        end: u64,
        /// Bytes of the buffer.
        len: u64,
    },
    /// Two blocks share bytes, and one of them is received: what they would hold depended on who
    /// came first.
    #[error("the block of receive slot {slot} shares bytes with that of {side} slot {other}")]
    Overlap {
        /// The slot of the block that is received.
        slot: usize,
        /// Of which side the other one is.
        side: Side,
        /// Its slot.
        other: usize,
    },
    /// An edge that the member at its other end does not have.
    #[error("{side} slot {slot} names member {member}, which has no edge back to it; check the topology")]
    Unmatched {
        /// Of which side.
        side: Side,
        /// Its slot.
        slot: usize,
        /// The member at the other end.
        member: usize,
    },
    /// The two ends of an edge are of different sizes.
    #[error("{side} slot {slot} has {mine} bytes, the other end at member {member} {theirs}")]
    Size {
        /// Of which side.
        side: Side,
        /// Its slot.
        slot: usize,
        /// The member at the other end.
        member: usize,
        /// Bytes of the own block.
        mine: u64,
        /// Bytes of the other.
        theirs: u64,
    },
    /// A collective call failed at another member: nobody has made the request.
    #[error("the call failed at another member, which knows why; nothing was made anywhere")]
    ElsewhereFailed,
    /// Members asked for different things in one collective call: nobody has made the request.
    #[error("members gave different {what}: from {least} to {most}")]
    Disagreement {
        /// What must be the same.
        what: &'static str,
        /// The least that a member gave.
        least: u64,
        /// The most.
        most: u64,
    },
    /// A member published what no member of this version publishes.
    #[error("member {member} published damaged records")]
    Damaged {
        /// Who.
        member: usize,
    },
    /// The request has been started and not waited for.
    #[error("the request is active in iteration {iteration}: wait for it first")]
    Active {
        /// Counted from 1.
        iteration: u64,
    },
    /// An access to bytes of a buffer that an active request sends (writing) or receives (either).
    #[error("bytes {start} to {end} of the buffer belong to an active request that {use_of} them: wait for it first")]
    InUse {
        /// The first byte of the access.
        start: u64,
        /// The byte after its last one.
        end: u64,
        /// `sends` or `receives`.
        use_of: &'static str,
    },
    /// A block that has no partitions of equal size.
    #[error(
        "the block of {side} slot {slot} can't be cut into {partitions} equal partitions: {of} elements, or runs of bytes, are not a multiple"
    )]
    Uneven {
        /// Of which side.
        side: Side,
        /// Its slot.
        slot: usize,
        /// As many were asked for.
        partitions: usize,
        /// What there is: elements of a contiguous block, or counts of the outermost distance of
        /// another.
        of: u64,
    },
    /// There is no such slot, or no such partition of it.
    #[error("partitions {first}..{end} of {side} slot {slot}: there are {slots} slots of {partitions} partitions")]
    NoPartition {
        /// Of which side.
        side: Side,
        /// The slot asked for.
        slot: usize,
        /// The first partition asked for.
        first: usize,
        /// The one after the last.
        end: usize,
        /// Slots there are.
        slots: usize,
        /// Partitions of each.
        partitions: usize,
    },
    /// A partition that was marked before in this iteration.
    #[error("partition {partition} of destination slot {slot} was marked as ready before in iteration {iteration}")]
    ReadyTwice {
        /// Its slot.
        slot: usize,
        /// Which of them.
        partition: usize,
        /// Counted from 1.
        iteration: u64,
    },
    /// A partition that has not been marked in this iteration, so that the iteration can't end.
    #[error("partition {partition} of destination slot {slot} is not marked as ready in iteration {iteration}")]
    NotReady {
        /// Its slot.
        slot: usize,
        /// Which of them.
        partition: usize,
        /// Counted from 1.
        iteration: u64,
    },
    /// The request has not been started since it was waited for.
    #[error("the request is not active: start it first")]
    Inactive,
    /// A start was dropped half-way: some of what it posts has been posted, and some has not.
    #[error("the start of iteration {iteration} was dropped half-way")]
    HalfStarted {
        /// Counted from 1.
        iteration: u64,
    },
    /// A call that marked partitions as ready was dropped half-way: some of their commands are in
    /// the queue, and some are not.
    #[error("the call that marked partitions {first}..{end} of destination slot {slot} was dropped half-way")]
    HalfReady {
        /// Their slot.
        slot: usize,
        /// The first of them.
        first: usize,
        /// The one after the last.
        end: usize,
    },
    /// An iteration failed; the request can only be freed.
    #[error("an earlier iteration of the request failed: {0}")]
    Broken(Box<PrdmaError>),
    /// A call of [`crate::Neighbourhood::alltoallw`] was dropped half-way: this member's mailboxes
    /// are closed, and its neighbours know.
    #[error("an earlier exchange of the neighbourhood was dropped half-way: there are no more")]
    Dropped,
    /// A notice of an iteration that is not the current one: a neighbour broke the protocol.
    #[error("{rank} announced data of iteration {got} (modulo 256) in iteration {iteration}")]
    WrongIteration {
        /// Whose data.
        rank: Rank,
        /// What it said.
        got: u8,
        /// The own iteration.
        iteration: u64,
    },
    /// What was asked for needs more of something than there is.
    #[error("{what}: {value} is above the limit of {limit}")]
    Limit {
        /// Of what.
        what: &'static str,
        /// As much is asked for.
        value: u64,
        /// As much there is.
        limit: u64,
    },
}

impl PrdmaError {
    /// Returns the rank that is gone for this reason, with its memory or its queues: it was lost,
    /// has ended, or has dropped what was addressed. As [`FabricError::gone`]; also of a request
    /// that is [broken](PrdmaError::Broken) by it.
    pub fn gone(&self) -> Option<Rank> {
        match self {
            PrdmaError::Fabric(FabricError::Queue(error)) => match **error {
                QueueError::NotOpen(queue) | QueueError::NoSuchTag { queue, .. } | QueueError::Stale { queue, .. } => {
                    Some(queue.rank())
                }
                _ => None,
            },
            PrdmaError::Fabric(error) => error.gone(),
            PrdmaError::Broken(error) => error.gone(),
            _ => None,
        }
    }
}

/// Result of a call.
pub type Result<T, E = PrdmaError> = core::result::Result<T, E>;

impl From<FabricError> for PrdmaError {
    fn from(error: FabricError) -> Self {
        // Whichever notices it first, a wait or the answer of a command.
        match error {
            FabricError::Queue(error) => (*error).into(),
            other => PrdmaError::Fabric(other),
        }
    }
}

impl From<QueueError> for PrdmaError {
    fn from(error: QueueError) -> Self {
        PrdmaError::Fabric(match error {
            QueueError::PeerLost(queue) => FabricError::PeerLost { rank: queue.rank() },
            other => other.into(),
        })
    }
}
