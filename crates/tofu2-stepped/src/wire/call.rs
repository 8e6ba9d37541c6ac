//! Requests of a fabric.

use super::{
    Reader, Wire,
    operations::{Local, Target},
    waits::AwaitedEvent,
    wire_enum, wire_struct,
};
use rdma_fabric::{Amo, Blocks, Rank, RegionKey, Result};

/// A call of a rank's fabric. Operations and regions are known by the numbers and keys of replies;
/// waits are numbered by the rank.
#[derive(Clone, Debug)]
pub(crate) enum FabricCall {
    /// Replies with the [`rdma_fabric::provider::JobFacts`].
    Facts {},
    /// Registers memory of the process, and replies with its key.
    Register {
        start: u64,
        len: usize,
        is_symmetric: bool,
    },
    /// Deregisters it.
    Deregister {
        key: RegionKey,
    },
    /// Replies with the length of a region.
    RegionLen {
        rank: Rank,
        key: RegionKey,
    },
    /// Replies with [`super::operations::PostedOperation`], as do all that post.
    Put {
        to: Target,
        from: Local,
        notice: Option<u64>,
    },
    PutBlocks {
        to: Target,
        from: Target,
        len: usize,
        blocks: Blocks,
    },
    Get {
        from: Target,
        to: Local,
    },
    Copy {
        to: Target,
        from: Target,
    },
    Atomic {
        word: Target,
        amo: Amo<u64>,
    },
    Nop {},
    /// Replies with the word of a complete operation, whose bytes are then in the process's memory.
    Poll {
        number: u64,
        into: Local,
        waits: bool,
    },
    /// Replies whether it is complete.
    Test {
        number: u64,
    },
    /// Without a reply.
    Forget {
        number: u64,
    },
    /// Replies whether it is.
    IsFlushed {},
    /// Replies with the next [`rdma_fabric::Notice`], if there is one.
    TryNotice {},
    /// Replies whether the event has happened.
    PollWait {
        wait: u64,
        event: AwaitedEvent,
    },
    /// Without a reply.
    EndWait {
        wait: u64,
    },
    /// Replies with the [`rdma_fabric::control_queue::QueueLimits`].
    QueueLimits {},
    /// Replies with the [`rdma_fabric::Time`].
    Now {},
    /// Replies with the error.
    Abort {
        text: String,
        code: u32,
    },
    /// Begins the given waits, and lets time pass. Replies with [`Parked`].
    Park {
        operations: Vec<u64>,
        waits: Vec<(u64, AwaitedEvent)>,
        is_woken: bool,
        until: ParkUntil,
    },
}

wire_enum!(FabricCall {
    0 = Facts {},
    1 = Register { start: start, len: len, is_symmetric: is_symmetric },
    2 = Deregister { key: key },
    3 = RegionLen { rank: rank, key: key },
    4 = Put { to: to, from: from, notice: notice },
    5 = PutBlocks { to: to, from: from, len: len, blocks: blocks },
    6 = Get { from: from, to: to },
    7 = Copy { to: to, from: from },
    8 = Atomic { word: word, amo: amo },
    9 = Nop {},
    10 = Poll { number: number, into: into, waits: waits },
    11 = Test { number: number },
    12 = Forget { number: number },
    13 = IsFlushed {},
    14 = TryNotice {},
    15 = PollWait { wait: wait, event: event },
    16 = EndWait { wait: wait },
    17 = QueueLimits {},
    18 = Now {},
    19 = Abort { text: text, code: code },
    20 = Park { operations: operations, waits: waits, is_woken: is_woken, until: until },
});

/// The end of a park, at the latest.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum ParkUntil {
    /// An event that the rank waits for.
    #[default]
    Awaited,
    /// Such an event, or 1 ms: for processes with several threads, which share the connection.
    Soon,
    /// The end of the turn of a polling loop that has found nothing.
    Turn,
    /// An awaited event, a write to the rank's memory, or a time that grows with the number of turns in a row.
    News { misses: u32 },
}

wire_enum!(ParkUntil { 0 = Awaited {}, 1 = Soon {}, 2 = Turn {}, 3 = News { misses: misses } });

/// What has ended when a park ends.
#[derive(Clone, Debug)]
pub(crate) struct Parked {
    /// Those of the park's operations that are complete, with their words; without if the rank has to poll for
    /// their bytes.
    pub(crate) operations: Vec<(u64, Option<Result<u64>>)>,
    /// The rank's waits that have ended.
    pub(crate) waits: Vec<(u64, Result<()>)>,
}

wire_struct!(Parked { operations, waits });

impl FabricCall {
    /// Returns whether there is a reply.
    pub(crate) fn has_reply(&self) -> bool {
        !matches!(self, FabricCall::Forget { .. } | FabricCall::EndWait { .. })
    }
}
