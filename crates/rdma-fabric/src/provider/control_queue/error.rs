//! Errors of control queues.

use super::{QueueId, Stadd};

/// An error of a control queue. Small and plain, because it is also part of completions and
/// notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// No such queue is open.
    #[error("{0} is not open")]
    NotOpen(QueueId),
    /// The requested CQ is in use.
    #[error("{0} is in use; close it or open another")]
    InUse(QueueId),
    /// All CQs that this queue could have used are in use; the number of those.
    #[error("all {0} control queues of the node that this one could be are in use; close one first")]
    NoneFree(u32),
    /// The command is longer than the ring can ever hold, or a number is above its limit.
    #[error("{what} is {value}, the limit of {queue} is {limit}")]
    Limit {
        /// The queue.
        queue: QueueId,
        /// The number that is above its limit.
        what: &'static str,
        /// Its value.
        value: u64,
        /// The largest value allowed.
        limit: u64,
    },
    /// A steering tag has no meaning on that queue.
    #[error("{queue} has no memory registered under {stadd}")]
    NoSuchTag {
        /// The queue on which the address was used.
        queue: QueueId,
        /// The address.
        stadd: Stadd,
    },
    /// The fixed tag is in use.
    #[error("tag {tag} of {queue} is in use; deregister it first")]
    TagInUse {
        /// The queue.
        queue: QueueId,
        /// The tag.
        tag: u8,
    },
    /// All automatic tags are in use.
    #[error("{queue} has no free steering tag: {limit} are in use; deregister one first")]
    TooManyTags {
        /// The queue.
        queue: QueueId,
        /// The number of automatic tags.
        limit: u32,
    },
    /// The range leaves the registered memory.
    #[error("{len} bytes at {stadd} of {queue} leave the {registered} bytes registered there")]
    OutOfBounds {
        /// The queue on which the address was used.
        queue: QueueId,
        /// The address.
        stadd: Stadd,
        /// Bytes accessed.
        len: u64,
        /// Bytes registered.
        registered: u64,
    },
    /// The memory was deregistered with its region.
    #[error("the region under {stadd} of {queue} was deregistered")]
    Stale {
        /// The queue on which the address was used.
        queue: QueueId,
        /// The address.
        stadd: Stadd,
    },
    /// An atomic addressed a word that is not aligned to its width.
    #[error("{stadd} of {queue} is not aligned to {width} bytes")]
    Misaligned {
        /// The queue on which the address was used.
        queue: QueueId,
        /// The address.
        stadd: Stadd,
        /// The width, in bytes.
        width: u8,
    },
    /// A write went to memory that was registered read-only.
    #[error("the memory under {stadd} of {queue} is read-only")]
    ReadOnly {
        /// The queue on which the address was used.
        queue: QueueId,
        /// The address.
        stadd: Stadd,
    },
    /// Checking mode: the session offset is a whole ring ahead of the read pointer; in this case
    /// hardware loses a ring's worth of credit.
    #[error(
        "the session offset of {queue} got to {scheduled}, a whole ring of {depth} slots ahead of the read pointer at {read}"
    )]
    CreditOverrun {
        /// The queue.
        queue: QueueId,
        /// The read pointer.
        read: u64,
        /// The session offset.
        scheduled: u64,
        /// The ring's slots.
        depth: u32,
    },
    /// Checking mode of the poster: an advance had no effect, because of the command's kind or
    /// because the target's queue has no session offset. If detected at posting, nothing was done;
    /// if detected at the target, everything else was done.
    #[error("{queue} asked for an advance by {sps} slots that moves no session offset")]
    CreditIgnored {
        /// The queue that posted it.
        queue: QueueId,
        /// The slots asked for.
        sps: u8,
    },
    /// A notice arrived when the message receive queue was full; the queue has stopped.
    #[error(
        "the message receive queue of {queue} is full with {depth} notices: one was lost, and the queue has stopped"
    )]
    MrqOverflow {
        /// The queue.
        queue: QueueId,
        /// The number of its entries.
        depth: u32,
    },
    /// The rank that executed a command of the queue died while doing so; the command was executed
    /// partially, at most once.
    #[error("the command at slot {slot} of {queue} was interrupted by the death of the rank that executed it")]
    Interrupted {
        /// The queue.
        queue: QueueId,
        /// The command's position, as [`super::Pointers`] counts.
        slot: u64,
    },
    /// The rank that owns the queue was lost.
    #[error("the rank of {0} was lost")]
    PeerLost(QueueId),
    /// A ring or table in shared memory contains a value that no well-behaved rank writes.
    #[error("control data of {queue} is damaged: {what}")]
    Corrupt {
        /// The queue.
        queue: QueueId,
        /// The damaged part.
        what: &'static str,
    },
    /// The queue was stopped by an error reported before.
    #[error("{0} has stopped after an earlier error")]
    Stopped(QueueId),
}
