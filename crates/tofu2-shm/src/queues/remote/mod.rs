//! Commands for queues of other nodes, in a job that runs on several nodes.
//!
//! The rank that owns the queue executes them, no matter which rank has released them: it passes
//! each, together with its bytes if they are few, to the layer that connects the nodes, and
//! continues with the next ([`send`]). The target's rank executes the command in its own memory
//! when it arrives, as if it came from its own node, and so releases commands of its own queues
//! ([`execute`]). Its reply creates the notices at the poster ([`reply`]).
//!
//! Bytes that are too many for a message stay where they are. The target's rank, which knows their
//! destination once it has looked up its tags, has them moved between both segments.
//!
//! # Order
//! Commands reach their target in the order in which they were executed. A command that keeps the
//! order of memory effects ([`RemoteCommand::keeps_order`]) is not started there while bytes of an
//! earlier one are still being moved; the layer that moves them ensures that.

mod execute;
mod in_flight;
mod reply;
mod send;
#[cfg(test)]
mod tests;

pub use execute::Executed;
pub(crate) use in_flight::{Moving, RemoteCommands};

use crate::queues::format::{
    descriptor::{self, Descriptor},
    status::Status,
};
use rdma_fabric::{
    Rank, RegionKey,
    control_queue::{Command, Posting, QueueError, QueueId},
};

/// A command of a control queue for a queue of another node. Plain data, created by one node and
/// checked by the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteCommand {
    /// The queue to which the command was posted.
    from: QueueId,
    /// Its number among the commands of that queue that went to other nodes.
    number: u64,
    /// Whether that queue is in checking mode.
    checked: bool,
    /// Has a target, and one block.
    posting: Posting,
}

/// The bytes of a command in its poster's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// The bytes come with the reply, or the command has none.
    Nothing,
    /// The bytes of a put.
    Bytes(Vec<u8>),
    /// The bytes stay in a region, from an offset in the segment's heap on.
    Memory(RegionKey, u64),
}

/// The outcome of a command at its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteReply {
    /// The error at the target.
    status: Result<(), QueueError>,
    /// The word's value before an atomic.
    value: u64,
    /// The bytes of a get, if they were not moved separately.
    bytes: Vec<u8>,
}

/// Words of a [`RemoteCommand`]: queue, number and mode, and two slots.
const COMMAND: usize = 2 + 2 * descriptor::SLOT;
/// Words of a [`RemoteReply`] before its bytes.
const REPLY: usize = 4;
/// In the second word of a command: its queue is in checking mode.
const CHECKED: u64 = 1 << 63;
/// In the second word of a command: it has two slots.
const LONG: u64 = 1 << 62;

impl RemoteCommand {
    /// Number of bytes of [`RemoteCommand::to_bytes`].
    pub const BYTES: usize = 8 * COMMAND;

    /// Returns the queue to which the command was posted.
    pub fn from(&self) -> QueueId {
        self.from
    }

    /// Returns its number among the commands of that queue that went to other nodes.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the rank that has to execute it.
    pub fn target(&self) -> Rank {
        self.posting.command.target().unwrap_or(self.from).rank()
    }

    /// Returns whether its effects must not be seen before those of earlier commands of its queue.
    pub fn keeps_order(&self) -> bool {
        self.posting.strong_order
    }

    /// Returns whether it moves bytes to its target, rather than from there.
    pub fn is_put(&self) -> bool {
        self.posting.command.advances()
    }

    /// Returns the number of bytes of registered memory that it moves.
    pub fn len(&self) -> usize {
        match self.posting.command {
            Command::Put { len, .. } | Command::Get { len, .. } => len as usize,
            _ => 0,
        }
    }

    /// Returns whether it moves no registered memory.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the command as bytes, to be sent.
    pub fn to_bytes(&self) -> Vec<u8> {
        let Descriptor { first, second } = descriptor::encode(&self.posting);
        let flag = |is: bool, bit| if is { bit } else { 0 };
        let head = [self.from.to_bits(), self.number | flag(self.checked, CHECKED) | flag(second.is_some(), LONG)];
        let words = head.into_iter().chain(first).chain(second.unwrap_or_default());
        words.flat_map(u64::to_le_bytes).collect()
    }

    /// Restores a command of a rank, and returns the bytes behind it; `None` for bytes that no rank
    /// of that number sends.
    pub fn from_bytes(poster: Rank, bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (words, rest) = bytes.split_first_chunk::<{ Self::BYTES }>()?;
        let (words, _) = words.as_chunks::<8>();
        let word = |at: usize| u64::from_le_bytes(words[at]);
        let slot = |at: usize| core::array::from_fn(|index| word(at + index));
        let second = (word(1) & LONG != 0).then(|| slot(2 + descriptor::SLOT));
        let posting = descriptor::decode(&Descriptor { first: slot(2), second })?;
        let from = QueueId::from_bits(word(0)).filter(|from| from.rank() == poster)?;
        posting.command.target()?;
        let number = word(1) & !(CHECKED | LONG);
        Some((RemoteCommand { from, number, checked: word(1) & CHECKED != 0, posting }, rest))
    }
}

impl RemoteReply {
    /// Number of bytes of [`RemoteReply::to_bytes`] of a reply without bytes.
    pub const BYTES: usize = 8 * REPLY;

    fn of(status: Result<(), QueueError>, value: u64) -> Self {
        RemoteReply { status, value, bytes: Vec::new() }
    }

    /// Returns the reply to a command that was not executed because its target's rank is lost or
    /// can no longer be reached.
    pub fn lost(command: &RemoteCommand) -> Self {
        let queue = command.posting.command.target().unwrap_or(command.from);
        RemoteReply::of(Err(QueueError::PeerLost(queue)), 0)
    }

    /// Returns the reply to a command whose bytes were to be moved from or to a region of `rank`,
    /// its poster's or its target's, that is no longer registered.
    pub fn stale(command: &RemoteCommand, rank: Rank) -> Self {
        let (own, to, at) = match command.posting.command {
            Command::Put { to, from, at, .. } => (from, to, at),
            Command::Get { to, from, at, .. } => (at, to, from),
            _ => return RemoteReply::lost(command),
        };
        let (queue, stadd) = if rank == command.from.rank() { (command.from, own) } else { (to, at) };
        RemoteReply::of(Err(QueueError::Stale { queue, stadd }), 0)
    }

    /// Returns the reply as bytes, to be sent.
    pub fn to_bytes(&self) -> Vec<u8> {
        let Status { head, stadd, numbers } = Status::encode(self.status);
        let words = [head, stadd, numbers, self.value].into_iter().flat_map(u64::to_le_bytes);
        words.chain(self.bytes.iter().copied()).collect()
    }

    /// Restores a reply; `None` if the bytes are not a reply.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (words, rest) = bytes.split_first_chunk::<{ Self::BYTES }>()?;
        let (words, _) = words.as_chunks::<8>();
        let [head, stadd, numbers, value] = core::array::from_fn(|at| u64::from_le_bytes(words[at]));
        let status = Status { head, stadd, numbers }.decode()?;
        Some(RemoteReply { status, value, bytes: rest.to_vec() })
    }
}
