//! Why a call failed.

use rdma_fabric::{FabricError, RemoteAddr};

/// The result of a call to this crate.
pub type Result<T, E = FmplError> = core::result::Result<T, E>;

/// A call that failed. Unless a variant says otherwise, no data was transferred.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FmplError {
    /// The fabric failed underneath.
    #[error("{0}")]
    Fabric(#[from] FabricError),
    /// The communicator has no such member.
    #[error("there is no member {member}: the communicator has members 0 to {last}", last = .members.saturating_sub(1))]
    NoSuchMember {
        /// The number asked for.
        member: usize,
        /// The number of members.
        members: usize,
    },
    /// The matching area has no such index.
    #[error("there is no index {index}: the matching area has indices 0 to {last}", last = .indices.saturating_sub(1))]
    NoSuchIndex {
        /// The index asked for.
        index: usize,
        /// The number of indices.
        indices: usize,
    },
    /// An operation with this peer and index has not completed; there can be one in each direction.
    #[error("index {index} is in use: a message {direction} member {peer} is not over")]
    IndexInUse {
        /// The other member.
        peer: usize,
        /// The index.
        index: usize,
        /// Which of the two operations is meant.
        direction: Direction,
    },
    /// The message is longer than its receive. Both ends return this error, nothing was written,
    /// and the message counts as received.
    #[error(
        "the message with index {index} from member {from} to member {to} has {bytes} bytes, its receive room for {room}"
    )]
    TooLong {
        /// The sender.
        from: usize,
        /// The receiver.
        to: usize,
        /// The message's index.
        index: usize,
        /// The length of the message in bytes.
        bytes: usize,
        /// The length of the receive buffer in bytes; 0 where only the receiver knows it.
        room: usize,
    },
    /// The region of a receive buffer was dropped before its message arrived.
    #[error("the receive buffer for index {index} of member {from} is gone")]
    BufferGone {
        /// The sender.
        from: usize,
        /// The message's index.
        index: usize,
    },
    /// The sender of a long message has stopped before the message's end.
    #[error("the message with index {index} from member {from} ends before its last {missing} bytes")]
    Cut {
        /// The sender.
        from: usize,
        /// The message's index.
        index: usize,
        /// The number of bytes that did not arrive.
        missing: usize,
    },
    /// Two members have passed different lengths to a collective. Every member whose result depends
    /// on them returns this error, and its buffer has undefined contents. The next collective is
    /// not affected.
    #[error("member {member} gives a collective {bytes} bytes, member {other} {other_bytes}")]
    CountMismatch {
        /// One of the two.
        member: usize,
        /// Its length in bytes.
        bytes: usize,
        /// The other one.
        other: usize,
        /// The other one's length in bytes.
        other_bytes: usize,
    },
    /// The caller would receive a broadcast from itself.
    #[error("member {member} can't receive a broadcast from itself")]
    FromSelf {
        /// The caller.
        member: usize,
    },
    /// Another collective of the same communicator has not completed on this rank.
    #[error("another collective of this communicator is not over")]
    CollectiveInUse,
    /// A member has left a collective before its end: it has dropped the future, returned an error,
    /// or finished without calling it. No collective of the communicator can complete any longer.
    #[error("member {member} has left a collective before its end")]
    MemberLeft {
        /// The member that left.
        member: usize,
    },
    /// Collectives have to be executed by hardware ([`Choice::Hardware`](crate::Choice)), and this
    /// one cannot be: there is no hardware for it, it does not reach the members, another
    /// communicator holds it, or it does not support this operation on this number of elements of
    /// this type.
    #[error("no hardware can carry out this {collective}")]
    NoHardware {
        /// The kind of collective.
        collective: crate::Collective,
    },
    /// All other members are lost, so no message can arrive.
    #[error("none of the {lost} other members is left")]
    NoneLeft {
        /// The number of members that are lost.
        lost: usize,
    },
    /// A buffer would be larger than any memory.
    #[error("a buffer of {elements} elements of {element} bytes is longer than {most} bytes")]
    TooManyElements {
        /// The requested number of elements.
        elements: usize,
        /// The bytes of an element.
        element: usize,
        /// The maximum size of a buffer in bytes.
        most: usize,
    },
    /// A member has no matching area left for one more peer.
    #[error("member {member} has matching areas for {peers} peers (`Options::peers`), and all are in use")]
    TooManyPeers {
        /// The member whose areas are all in use.
        member: usize,
        /// The number of its areas.
        peers: usize,
    },
    /// The memory that the program supplies for the matching areas is too short
    /// ([`Fmpl::init_in`](crate::Fmpl::init_in)).
    #[error("the matching areas need {needed} bytes, but the memory at {at:?} has {bytes}")]
    AreasTooSmall {
        /// The beginning of the memory: rank, region and offset.
        at: RemoteAddr,
        /// The length of the memory in bytes.
        bytes: usize,
        /// The necessary length ([`Options::area_bytes`](crate::Options::area_bytes)).
        needed: usize,
    },
    /// The memory that the program supplies for the matching areas begins at an unsuitable offset.
    #[error("matching areas begin at a multiple of {align} bytes in their region, not at {at:?}")]
    AreasMisaligned {
        /// The beginning of the memory: rank, region and offset.
        at: RemoteAddr,
        /// The unit of offsets in bytes.
        align: usize,
    },
    /// Ranks supply different parts of their regions for the matching areas, or one of them supplies
    /// unsuitable memory.
    #[error("matching areas begin at offset {least} of one rank's region, but {}", another(*.most))]
    AreasDiffer {
        /// The least offset of any rank's memory in its region.
        least: u64,
        /// The greatest one; `None` if the memory of some rank is unsuitable, which that rank reports.
        most: Option<u64>,
    },
    /// The memory that the program supplies for the matching areas is not that of all ranks in their
    /// order.
    #[error("matching areas are memory of all {ranks} ranks, not of {members} in another order or number")]
    AreasOfOtherRanks {
        /// The number of ranks that have the memory.
        members: usize,
        /// The number of ranks of the job.
        ranks: usize,
    },
    /// No memory is left for a message that would have to wait for its receive, even after all idle
    /// memory was given back. A message of more than a quarter of the memory waits for its receive
    /// instead, unless its receiver accepts any sender.
    #[error(
        "a message of {bytes} bytes cannot wait for its receive: {waiting} messages of {held} bytes wait already in \
         this communicator, and {cause}"
    )]
    SpoolFull {
        /// The length of the message in bytes.
        bytes: usize,
        /// The number of messages that wait in this communicator.
        waiting: usize,
        /// Their length in bytes.
        held: usize,
        /// The cause: the memory available.
        #[source]
        cause: FabricError,
    },
    /// An option has an invalid value.
    #[error("{option} is {value}, but must be {allowed}")]
    Option {
        /// The option.
        option: &'static str,
        /// The allowed values.
        allowed: &'static str,
        /// The value given.
        value: u64,
    },
    /// A communicator for one thread was used on another one.
    #[error("this communicator is used by the thread that made it only (`Options::threads`)")]
    OtherThread,
}

fn another(most: Option<u64>) -> String {
    most.map_or_else(|| "that of another one is unsuitable".into(), |most| format!("at {most} of another one's"))
}

/// The direction of a message, as seen from the calling rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// To the peer.
    To,
    /// From the peer.
    From,
}

impl core::fmt::Display for Direction {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Direction::To => "to",
            Direction::From => "from",
        })
    }
}
