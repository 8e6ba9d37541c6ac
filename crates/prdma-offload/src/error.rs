//! The errors of calls.

use crate::{layout::LayoutError, topology::Side};
use core::fmt;
use rdma_fabric::{FabricError, Rank, control_queue::QueueError};

/// The error of a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PrdmaError {
    /// The underlying fabric failed. A lost neighbour is reported here as
    /// [`FabricError::PeerLost`].
    #[error("{0}")]
    Fabric(#[source] FabricError),
    /// A block is larger than any memory.
    #[error("{0}")]
    Layout(#[from] LayoutError),
    /// The number of blocks given differs from the number of slots.
    #[error("{given} {side} blocks were given for {slots} slots")]
    Slots {
        /// The side of the blocks.
        side: Side,
        /// Blocks given.
        given: usize,
        /// Slots of the topology.
        slots: usize,
    },
    /// A block extends beyond its buffer.
    #[error("the block of {side} slot {slot} ends at byte {end} of a buffer of {len}")]
    OutOfBounds {
        /// The side of the block.
        side: Side,
        /// Its slot.
        slot: usize,
        /// The byte after the block's last one.
        end: u64,
        /// Bytes of the buffer.
        len: u64,
    },
    /// Two blocks share bytes, and one of them is received: their content would depend on the order
    /// of arrival.
    #[error("the block of receive slot {slot} shares bytes with that of {side} slot {other}")]
    Overlap {
        /// The slot of the block that is received.
        slot: usize,
        /// The side of the other block.
        side: Side,
        /// The slot of the other block.
        other: usize,
    },
    /// An edge is missing at the member at its other end.
    #[error("{side} slot {slot} names member {member}, which has no edge back to it; check the topology")]
    Unmatched {
        /// The side of the edge.
        side: Side,
        /// The slot of the edge.
        slot: usize,
        /// The member at the other end.
        member: usize,
    },
    /// The two ends of an edge have different sizes.
    #[error("{side} slot {slot} has {mine} bytes, the other end at member {member} {theirs}")]
    Size {
        /// The side of this member's block.
        side: Side,
        /// The slot of this member's block.
        slot: usize,
        /// The member at the other end.
        member: usize,
        /// Bytes of this member's block.
        mine: u64,
        /// Bytes of the block at the other end.
        theirs: u64,
    },
    /// A collective call failed at another member; the request was not created at any member.
    #[error("the call failed at another member, which knows why; nothing was made anywhere")]
    ElsewhereFailed,
    /// Members passed different arguments to a collective call; the request was not created at any
    /// member.
    #[error("members gave different {what}: from {least} to {most}")]
    Disagreement {
        /// The value that must be the same.
        what: &'static str,
        /// The least value of a member.
        least: u64,
        /// The greatest value of a member.
        most: u64,
    },
    /// A member published records that no member of this version publishes.
    #[error("member {member} published damaged records")]
    Damaged {
        /// The member that published it.
        member: usize,
    },
    /// The request has been started and not yet waited for.
    #[error("the request is active in iteration {iteration}: wait for it first")]
    Active {
        /// The iteration, counted from 1.
        iteration: u64,
    },
    /// An access, a view or a start involves bytes of a buffer whose current use excludes it.
    #[error("bytes {start} to {end} of the buffer are in use: {holder}")]
    InUse {
        /// The first byte of the access.
        start: u64,
        /// The byte after its last one.
        end: u64,
        /// The holder of some of these bytes.
        holder: Holder,
    },
    /// A view's rows do not consist of whole elements, or are not aligned to them.
    #[error("rows that start at byte {offset} don't consist of elements of {size} bytes")]
    NoElements {
        /// The start of the first row, in bytes from the buffer's start.
        offset: u64,
        /// Bytes of an element.
        size: usize,
    },
    /// Memory that is lent in place was passed to an operation that lets other ranks write to it
    /// unguarded.
    #[error("a buffer that lends its memory in place can't be used in {what}")]
    InPlace {
        /// The operation.
        what: &'static str,
    },
    /// A block can't be cut into partitions of equal size.
    #[error(
        "the block of {side} slot {slot} can't be cut into {partitions} equal partitions: {of} elements, or runs of bytes, are not a multiple"
    )]
    Uneven {
        /// The side of the block.
        side: Side,
        /// The slot of the block.
        slot: usize,
        /// The requested number of partitions.
        partitions: usize,
        /// The number of units available: elements of a contiguous block, or counts of the
        /// outermost distance of any other block.
        of: u64,
    },
    /// There is no such slot, or no such partition of it.
    #[error("partitions {first}..{end} of {side} slot {slot}: there are {slots} slots of {partitions} partitions")]
    NoPartition {
        /// The side of the slot.
        side: Side,
        /// The requested slot.
        slot: usize,
        /// The first requested partition.
        first: usize,
        /// The partition after the last requested one.
        end: usize,
        /// The number of slots.
        slots: usize,
        /// The number of partitions of each slot.
        partitions: usize,
    },
    /// A partition was already marked in this iteration.
    #[error("partition {partition} of destination slot {slot} was marked as ready before in iteration {iteration}")]
    ReadyTwice {
        /// The slot of the partition.
        slot: usize,
        /// The partition's number.
        partition: usize,
        /// The iteration, counted from 1.
        iteration: u64,
    },
    /// A partition has not been marked in this iteration, so the iteration can't end.
    #[error("partition {partition} of destination slot {slot} is not marked as ready in iteration {iteration}")]
    NotReady {
        /// The slot of the partition.
        slot: usize,
        /// The partition's number.
        partition: usize,
        /// The iteration, counted from 1.
        iteration: u64,
    },
    /// The request has not been started since it was waited for.
    #[error("the request is not active: start it first")]
    Inactive,
    /// A start was dropped half-way: some of its commands have been posted, and some have not.
    #[error("the start of iteration {iteration} was dropped half-way")]
    HalfStarted {
        /// The iteration, counted from 1.
        iteration: u64,
    },
    /// A call that marked partitions as ready was dropped half-way: some of their commands are in
    /// the queue, and some are not.
    #[error("the call that marked partitions {first}..{end} of destination slot {slot} was dropped half-way")]
    HalfReady {
        /// The slot of the partitions.
        slot: usize,
        /// The first of the partitions.
        first: usize,
        /// The partition after the last.
        end: usize,
    },
    /// An iteration failed; the request can now only be freed.
    #[error("an earlier iteration of the request failed: {0}")]
    Broken(Box<PrdmaError>),
    /// A call of [`crate::Neighbourhood::alltoallw`] was dropped half-way: this member's mailboxes
    /// are closed, and its neighbours have been notified.
    #[error("an earlier exchange of the neighbourhood was dropped before it completed: the neighbourhood is unusable")]
    Dropped,
    /// A notice belongs to a different iteration: a neighbour violated the protocol.
    #[error("{rank} announced data of iteration {got} (modulo 256) in iteration {iteration}")]
    WrongIteration {
        /// The rank that sent the data.
        rank: Rank,
        /// The iteration that it announced.
        got: u8,
        /// This member's iteration.
        iteration: u64,
    },
    /// A call needs more of a resource than is available.
    #[error("{what}: {value} is above the limit of {limit}")]
    Limit {
        /// The resource.
        what: &'static str,
        /// The amount needed.
        value: u64,
        /// The amount available.
        limit: u64,
    },
}

/// The holder of bytes of a buffer: see [`PrdmaError::InUse`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Holder {
    /// An active request sends them.
    Sender,
    /// An active request receives them.
    Receiver,
    /// A request that is broken, or whose start did not end, may still use them.
    Broken,
    /// A view reads them.
    View,
    /// A view writes them.
    ViewMut,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Holder::Sender => "an active request sends them; wait for it first",
            Holder::Receiver => "an active request receives them; wait for it first",
            Holder::Broken => "a request that did not end may still use them",
            Holder::View => "a view reads them; drop it first",
            Holder::ViewMut => "a view writes them; drop it first",
        })
    }
}

impl PrdmaError {
    /// Returns the rank that no longer exists according to this error, or whose memory or queues no
    /// longer exist: it was lost, has ended, or has dropped the addressed object. Like
    /// [`FabricError::gone`]; also covers a request that the loss has [broken](PrdmaError::Broken).
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
        // The error is the same regardless of whether a wait or the completion of a command reports
        // it first.
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

impl From<FabricError> for Box<PrdmaError> {
    #[cold]
    fn from(error: FabricError) -> Self {
        Box::new(error.into())
    }
}

impl From<QueueError> for Box<PrdmaError> {
    #[cold]
    fn from(error: QueueError) -> Self {
        Box::new(error.into())
    }
}

impl From<Box<PrdmaError>> for PrdmaError {
    #[cold]
    fn from(error: Box<PrdmaError>) -> Self {
        *error
    }
}
