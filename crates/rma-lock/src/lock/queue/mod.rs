//! The common part of queue-based locks: waiting, waking, and the state that a rank publishes about
//! itself.
//!
//! # Words
//! At each rank of the lock: its queue nodes ([`node`]) and the words in which it publishes its
//! current state ([`publish`]). Each lock defines its own words at the home ([`HOME_BYTES`]).
//!
//! # Waiting and waking
//! A rank that has to wait puts one of its nodes into a queue or stack of the lock and waits on
//! that node's wake word, in its own memory. Exactly one rank takes the node out and wakes it. A
//! wake is a compare-and-swap instead of a store: it fails if the waiter gave up (a deadline, a
//! dropped future) or if the wake belongs to another turn of the node. The waker then acts on
//! behalf of a waiter that gave up, in the way the lock prescribes.
//!
//! # Errors
//! A failure between two steps of a protocol leaves words whose intended values are unknown:
//! [`Broken`] records it, and later calls of this rank fail with it.

mod drive;
mod layout;
mod node;
mod operations;
mod own;
mod peer_cache;
mod protocol;
mod publish;
mod wait;
mod walk;

pub(crate) use drive::{Call, Drive};
#[cfg(test)]
pub(crate) use layout::NODES;
pub(crate) use layout::{CLAIM, HOME_BYTES, LOCK_BYTES, NodeWord, PUBLISHED, RECOVERABLE_BYTES, VERSION};
pub use node::{NodeId, Wait, wake_word};
pub(crate) use own::Own;
pub(crate) use protocol::{FirstStep, Held, NoFirstStep, Protocol, Track};
pub use publish::Transition;
pub(crate) use publish::is_inside;
pub(crate) use walk::Walk;

use crate::{
    Result,
    lock::{
        detach::Broken,
        posting::{self, Unfinished},
    },
};
use core::fmt;
use own::Nodes;
use peer_cache::PeerCache;
use publish::Published;
use rdma_fabric::{Amo, Fabric, FabricError, GroupMemory, PutOrder, Rank, RemoteAddr, RemoteWord};

/// The part of a queue-based lock at one rank.
pub(crate) struct Queue {
    pub(crate) fabric: Fabric,
    pub(crate) me: Rank,
    pub(crate) home: Rank,
    /// Whether puts are ordered before atomics to the same target.
    pub(crate) ordered_here: bool,
    /// Whether puts are ordered before all atomics.
    pub(crate) ordered_everywhere: bool,
    /// Whether the lock continues when a member is lost.
    recoverable: bool,
    /// The words of all ranks: [`LOCK_BYTES`].
    memory: GroupMemory,
    nodes: Nodes,
    peer_cache: PeerCache,
    pub(crate) published: Published,
    pub(crate) broken: Broken,
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "home {}, {:?}{:?}{:?}", self.home, self.published, self.nodes, self.peer_cache)
    }
}

impl Queue {
    /// Creates this rank's part, in zeroed memory of [`LOCK_BYTES`] at each rank; of
    /// [`RECOVERABLE_BYTES`] if the lock continues when members are lost.
    pub(crate) fn over(fabric: &Fabric, memory: GroupMemory, home: Rank, recoverable: bool) -> Result<Self> {
        NodeId::check(fabric.ranks())?;
        let memory = memory.part(0, if recoverable { RECOVERABLE_BYTES } else { LOCK_BYTES })?;
        memory.at(home, 0)?;
        let order = fabric.caps().put_order;
        Ok(Queue {
            nodes: Nodes::new(),
            peer_cache: PeerCache::default(),
            published: Published::new(fabric, &memory, recoverable)?,
            fabric: fabric.clone(),
            me: fabric.rank(),
            home,
            ordered_here: order >= PutOrder::SameTarget,
            ordered_everywhere: order >= PutOrder::AllTargets,
            recoverable,
            memory,
            broken: Broken::default(),
        })
    }

    /// Returns the address of an offset in the home's part of the memory.
    pub(crate) fn at_home(&self, offset: u64) -> Result<RemoteAddr, FabricError> {
        self.memory.at(self.home, offset)
    }

    /// Flushes puts before the lock is passed on (release): to every target, because no fabric
    /// orders different targets.
    #[inline(always)]
    pub(crate) async fn flush_data(&self) -> Result<()> {
        if !self.ordered_everywhere {
            self.fabric.flush_all().await?;
        }
        Ok(())
    }

    /// Returns whether operations complete when they are posted and no flush is needed: an
    /// uncontended acquisition or release then need not wait. (Where puts are ordered so strictly
    /// but results take time, the attempt costs little.)
    #[inline(always)]
    pub(crate) fn is_fast(&self) -> bool {
        self.ordered_everywhere
    }

    /// Returns whether a fast path may end here: no flush is needed now.
    #[inline(always)]
    pub(crate) fn is_flushed(&self) -> bool {
        self.ordered_everywhere || self.fabric.is_flushed()
    }

    #[inline(always)]
    pub(crate) fn publish(&self, step: Transition) -> Result<(), FabricError> {
        self.published.step(&self.fabric, &self.memory, step)
    }

    /// Executes an atomic that completes immediately.
    #[inline(always)]
    pub(crate) fn atomic_now(&self, word: &RemoteWord<u64>, amo: Amo<u64>) -> Result<u64, Unfinished> {
        posting::atomic_now(&self.fabric, word, amo)
    }

    /// Announces a step and executes its atomic immediately. If the atomic was not posted,
    /// withdraws the announcement.
    #[inline(always)]
    pub(crate) fn announced_now(
        &self,
        step: Transition,
        word: &RemoteWord<u64>,
        amo: Amo<u64>,
    ) -> Result<u64, Unfinished> {
        if self.publish(step).is_err() {
            return Err(None);
        }
        match self.atomic_now(word, amo) {
            Ok(old) => Ok(old),
            Err(not_over) => {
                if not_over.is_none() {
                    let _ = self.publish(step.undone());
                }
                Err(not_over)
            }
        }
    }
}
