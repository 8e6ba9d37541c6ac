//! What locks with queues have in common: where a rank waits, how it is woken, and what it says of itself.
//!
//! # Words
//! At each rank of the lock: its queue nodes ([`node`]) and the words in which it publishes what it is doing ([`publish`]). What stands at
//! the home is each lock's own ([`HOME_BYTES`]).
//!
//! # Waiting and waking
//! Whoever has to wait puts one of its nodes into a queue or stack of the lock and waits on that node's wake word, in its own memory.
//! Exactly one rank takes the node out, and wakes it. A wake is a compare-and-swap and not a store: it fails if the waiter gave up (a
//! deadline, a dropped future) or if it belongs to another turn of the node. The waker then acts for who gave up, in the way of the lock.
//!
//! # Errors
//! What fails between two steps of a protocol leaves words of which nobody knows what they should be: [`Queue::answer`] remembers it, and
//! later calls of this rank are told.

mod layout;
mod node;
mod posting;
mod publish;
mod wake;

#[cfg(test)]
pub(crate) use layout::NODES;
pub(crate) use layout::{CLAIM, HOME_BYTES, LOCK_BYTES, PUBLISHED, Part, SURVIVING_BYTES, VERSION};
pub(crate) use node::{NodeId, Own, Wait};
pub(crate) use publish::{Lane, Step, is_inside};

use crate::{LockError, Result, error::Trouble, owed::Side};
use core::fmt;
use node::Nodes;
use publish::Published;
use rdma_fabric::{Fabric, FabricError, GroupMemory, PutOrder, Rank, RemoteAddr};
use std::sync::OnceLock;

/// A rank's side of a lock with queues.
pub(crate) struct Queue {
    pub(crate) fabric: Fabric,
    pub(crate) me: Rank,
    pub(crate) home: Rank,
    /// Whether puts are ordered before atomics to the same target.
    pub(crate) ordered_here: bool,
    /// Whether they are ordered before all atomics.
    pub(crate) ordered_everywhere: bool,
    /// Whether the lock goes on when a member is lost.
    survives: bool,
    /// The words of all ranks: [`LOCK_BYTES`].
    memory: GroupMemory,
    nodes: Nodes,
    pub(crate) published: Published,
    /// What failed between two steps of the protocol, if anything has.
    broken: OnceLock<LockError>,
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "home {}, {:?}{:?}", self.home, self.published, self.nodes)
    }
}

impl Side for Queue {
    fn fabric(&self) -> &Fabric {
        &self.fabric
    }
}

impl Queue {
    /// In memory of [`LOCK_BYTES`] at each rank, zeroed; of [`SURVIVING_BYTES`] if the lock goes on when members are lost.
    pub(crate) fn over(fabric: &Fabric, memory: GroupMemory, home: Rank, survives: bool) -> Result<Self> {
        NodeId::check(fabric.ranks())?;
        let memory = memory.part(0, if survives { SURVIVING_BYTES } else { LOCK_BYTES })?;
        memory.at(home, 0)?;
        let order = fabric.caps().put_order;
        Ok(Queue {
            nodes: Nodes::new(),
            published: Published::new(fabric, &memory)?,
            fabric: fabric.clone(),
            me: fabric.rank(),
            home,
            ordered_here: order >= PutOrder::SameTarget,
            ordered_everywhere: order >= PutOrder::AllTargets,
            survives,
            memory,
            broken: OnceLock::new(),
        })
    }

    /// A place in the home's part of the memory.
    pub(crate) fn at_home(&self, offset: u64) -> Result<RemoteAddr, FabricError> {
        self.memory.at(self.home, offset)
    }

    /// Begin to acquire, unless what this rank did before is unknown.
    #[inline(always)]
    pub(crate) fn check(&self) -> Result<()> {
        match self.broken.get() {
            None => Ok(()),
            Some(cause) => Err(LockError::Broken(Box::new(cause.clone()))),
        }
    }

    /// Whether what this rank did before is known.
    #[inline(always)]
    pub(crate) fn is_whole(&self) -> bool {
        self.broken.get().is_none()
    }

    /// `error` came between two steps.
    #[cold]
    pub(crate) fn broke(&self, error: LockError) -> LockError {
        self.broken.get_or_init(|| error.clone());
        error
    }

    /// The same, of the fabric.
    #[cold]
    #[inline(never)]
    pub(crate) fn broke_by(&self, error: FabricError) -> LockError {
        self.broke(error.into())
    }

    /// What a call answers.
    pub(crate) fn answer<T>(&self, outcome: Result<T, Trouble>) -> Result<T> {
        match outcome {
            Ok(out) => Ok(out),
            Err(Trouble::GaveUp(error)) => Err(error),
            Err(Trouble::Broken(error)) => Err(self.broke(error)),
        }
    }

    /// Puts before the lock passes on (release): every target, because no fabric orders different targets.
    #[inline(always)]
    pub(crate) async fn flush_data(&self) -> Result<()> {
        if !self.ordered_everywhere {
            self.fabric.flush_all().await?;
        }
        Ok(())
    }

    /// Whether operations are over when they are posted and nothing need be flushed: then an acquisition or release that meets
    /// nobody need not wait. (Where puts are ordered so strictly but results take their time, trying costs little.)
    #[inline(always)]
    pub(crate) fn is_fast(&self) -> bool {
        self.ordered_everywhere
    }
}
