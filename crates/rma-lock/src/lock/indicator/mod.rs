//! A reader-indicator lock: readers access only their own node, writers access every node.
//!
//! # Words
//! At each node's first rank: its `gate` ([`gate`]), the `limit` that the writer at the gate waits
//! for, and `waiting`, the stack of readers that found the gate closed. At each rank: a flag for
//! each node, for when the rank writes, and its queue nodes ([`crate::lock::queue`]).
//!
//! # Order
//! A reader announces itself and reads the gate with one atomic on one word, so no operation can
//! come in between. A leaving reader and a waiting writer race as in Dekker's algorithm: the reader
//! counts its departure and then gets the limit; the writer puts the limit, makes it visible, and
//! then gets the departures. Each has the result of its first operation before it posts the second,
//! so at least one of them observes the other; both may, and a flag is lowered once.

mod gate;
mod lock;
mod read;
mod write;

pub use lock::{IndicatorGuard, IndicatorLock};

use crate::{
    Result,
    lock::{
        KeptExclusive, OURS,
        detach::HasFabric,
        nodes,
        queue::{LOCK_BYTES, Queue},
    },
};
use core::fmt;
use gate::Gate;
use rdma_fabric::{Deps, Fabric, FabricError, GroupMemory, Rank, RemoteAddr, RemoteWord, Time, provider::Boxed};
use std::sync::OnceLock;

const LINE: usize = 64;
/// The words of a node, after those of the queue.
const GATE: u64 = LOCK_BYTES as u64;
const LIMIT: u64 = GATE + 8;
const WAITING: u64 = GATE + 16;
const FLAGS: u64 = GATE + LINE as u64;

/// The lock that excludes writers from each other; an exclusive hold of it is stored as bits.
trait Writers: fmt::Debug + Send + Sync {
    fn keep(&self, deadline: Time) -> Boxed<'_, Result<u64>>;
    fn try_keep(&self) -> Boxed<'_, Result<Option<u64>>>;
    fn end_kept(&self, kept: u64) -> Boxed<'_, Result<()>>;
}

impl<L: KeptExclusive> Writers for L {
    fn keep(&self, deadline: Time) -> Boxed<'_, Result<u64>> {
        KeptExclusive::keep(self, deadline, OURS)
    }

    fn try_keep(&self) -> Boxed<'_, Result<Option<u64>>> {
        KeptExclusive::try_keep(self, OURS)
    }

    fn end_kept(&self, kept: u64) -> Boxed<'_, Result<()>> {
        KeptExclusive::end_kept(self, kept, OURS)
    }
}

/// The part of the lock at one rank.
struct Core {
    queue: Queue,
    writers: Box<dyn Writers>,
    memory: GroupMemory,
    /// The words of this rank's node.
    gate: RemoteWord<u64>,
    limit: RemoteWord<u64>,
    /// The node's number among the nodes of the lock's ranks.
    node: usize,
    /// The first ranks of all nodes; set only at ranks that write.
    first: OnceLock<Box<[Rank]>>,
}

/// All gates, closed by a writer.
#[derive(Debug)]
struct Shut {
    /// The hold of the lock that excludes writers from each other.
    kept: u64,
    /// The gates' previous values, by the nodes' numbers.
    gates: Vec<Gate>,
}

impl HasFabric for Core {
    fn fabric(&self) -> &Fabric {
        &self.queue.fabric
    }
}

impl Core {
    /// Returns the first rank of each node, which holds the node's words.
    fn first_ranks(&self) -> Result<&[Rank]> {
        if let Some(first) = self.first.get() {
            return Ok(first);
        }
        let first = nodes::first_ranks(&self.queue.fabric, &self.memory)?;
        Ok(self.first.get_or_init(|| first.into()))
    }

    fn gate_at(&self, first: Rank) -> Result<RemoteWord<u64>, FabricError> {
        self.queue.fabric.remote_word(self.memory.at(first, GATE)?)
    }

    fn limit_at(&self, first: Rank) -> Result<RemoteWord<u64>, FabricError> {
        self.queue.fabric.remote_word(self.memory.at(first, LIMIT)?)
    }

    fn waiting_at(&self, first: Rank) -> Result<RemoteWord<u64>, FabricError> {
        self.queue.fabric.remote_word(self.memory.at(first, WAITING)?)
    }

    /// Returns the rank that holds the words of this rank's node.
    fn my_first(&self) -> Rank {
        self.gate.rank()
    }

    /// Resolves `writer`'s flag for a node.
    fn flag_at(&self, writer: Rank, node: usize) -> Result<RemoteWord<u64>, FabricError> {
        self.queue.fabric.remote_word(self.memory.at(writer, FLAGS + 8 * node as u64)?)
    }

    /// Returns the address of this rank's own flag for a node.
    fn flag_addr(&self, node: usize) -> Result<RemoteAddr, FabricError> {
        self.memory.at(self.queue.me, FLAGS + 8 * node as u64)
    }

    fn deps(&self) -> Deps<'_> {
        self.memory.deps()
    }
}
