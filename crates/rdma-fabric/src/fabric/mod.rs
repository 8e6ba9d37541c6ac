//! What programs hold: one type, whoever provides the network.
//!
//! `docs/fabric-contract.md` states the contract sentence by sentence; the conformance suite holds every provider to
//! it.

mod acting;
mod acts;
mod awaited;
mod making;
mod memory;
mod own;
mod posted;
mod waiting;
mod waits;

use crate::{
    Caps, LockedMemory, Node, Rank, Result, Triggers,
    provider::{JobFacts, Provider},
};
use core::fmt;
use std::sync::Arc;

/// One rank's access to the job: identity, memory, operations, waiting, time.
///
/// Cloning is cheap and yields another handle of the same rank.
///
/// *Post* gives an operation to the network; it is *complete* when its handle says so (source
/// reusable, result here); a put is *visible* after [`Fabric::flush`]. Three things, three methods.
///
/// Operations of one rank to one target are executed in the order they are posted only as far as
/// [`Caps::put_order`] says; everything else needs a flush or an awaited handle in between.
///
/// It is one type, whatever [provider](crate::provider::Provider) is below, so that the provider
/// can be chosen at run time and protocols are compiled once. A simulator's fabric is used on the
/// thread that simulates; elsewhere it panics.
#[derive(Clone)]
pub struct Fabric {
    shared: Arc<Shared<dyn Provider>>,
}

struct Shared<P: ?Sized> {
    rank: Rank,
    /// Whether references may be made to memory without a key: the provider is known to keep the contract.
    vouched: bool,
    facts: Arc<JobFacts>,
    triggers: Triggers,
    provider: P,
}

impl fmt::Debug for Fabric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.provider().fmt(f)
    }
}

impl Fabric {
    /// Who I am.
    #[inline]
    pub fn rank(&self) -> Rank {
        self.shared.rank
    }

    /// How many ranks the job has.
    #[inline]
    pub fn ranks(&self) -> usize {
        self.facts().ranks
    }

    /// The machine a rank runs on.
    ///
    /// # Errors
    /// [`crate::FabricError::NoSuchRank`].
    pub fn node(&self, rank: Rank) -> Result<Node> {
        self.facts().node(rank)
    }

    /// How many nodes the job has: each has a rank, and is numbered below this.
    pub fn nodes(&self) -> usize {
        self.facts().nodes()
    }

    /// The rank that has `number` on `node`, counted from 0 in order of ranks; `None` if the node has no so many, or does not exist.
    pub fn rank_on(&self, node: Node, number: usize) -> Option<Rank> {
        self.facts().rank_on(node, number)
    }

    /// What this provider guarantees beyond the contract.
    pub fn caps(&self) -> Caps {
        let mut caps = self.facts().caps;
        if !self.shared.vouched {
            caps.locked_memory = caps.locked_memory.min(LockedMemory::Copies);
        }
        caps
    }

    /// What this rank has [armed](crate::triggered) and not carried out: the same for all handles
    /// of the rank. A fabric [under](Fabric::under) something in between has its own.
    #[inline]
    pub fn triggers(&self) -> &Triggers {
        &self.shared.triggers
    }
}
