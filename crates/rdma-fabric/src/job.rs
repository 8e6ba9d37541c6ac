//! The facts of a job: the nodes of its ranks, and the provider's guarantees beyond the contract.

use crate::{FabricError, LockedMemory, Node, Rank, Result};
use std::sync::Arc;

/// The later atomics before which a put is ordered *without* a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PutOrder {
    /// No atomics: flush first.
    None,
    /// Atomics of the same poster to the same target.
    SameTarget,
    /// Every later atomic of the same poster, to any target.
    AllTargets,
}

/// The agent that executes atomics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Atomics {
    /// None: every atomic is refused with [`crate::FabricError::NoAtomics`].
    None,
    /// A service in software at the target, such as a lock service: slow, but atomic like any
    /// other.
    Software,
    /// The hardware: the target's network interface, or the processors where memory is mapped.
    Hardware,
}

/// The agent that executes [multicasts](crate::MulticastSpan).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Multicasts {
    /// None: they are [`crate::FabricError::Unsupported`].
    None,
    /// The poster's CPU, as a put to each member: no faster than such puts, and for any members.
    Software,
    /// The network: one transfer for all members, which have to fill a box of nodes
    /// ([`Multicasts::reach`]).
    Hardware,
}

/// How peers access memory that a program already had when it is
/// [registered](crate::Fabric::register).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Existing {
    /// Not at all: registering is [`crate::FabricError::Unsupported`].
    None,
    /// Staged: its bytes are copied into memory of the fabric when it is registered, and back when
    /// it is taken. It supports everything that allocated memory supports.
    Staged,
    /// The operating system copies between the processes, one call for each put and get. Atomics
    /// are [`crate::FabricError::NoAtomics`]; words are written and read atomically only if the
    /// system's copy does so.
    CrossCopy,
    /// Peers access the buffer itself, like any region.
    Direct,
}

/// Capabilities: a protocol may skip a flush only where these allow it.
///
/// They are values, not cargo features: ask [`crate::Fabric::caps`] at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Caps {
    /// The later atomics before which a put is ordered without a flush.
    pub put_order: PutOrder,
    /// Whether two puts of one poster to one target become visible in the order posted *without* a
    /// flush between them: a rank that sees any byte of the later one sees all of the earlier one.
    pub puts_in_order: bool,
    /// Whether [`crate::Fabric::copy`] can copy between two other ranks' memory.
    pub third_party_copy: bool,
    /// The agent that executes [multicasts](crate::MulticastSpan). A protocol with an alternative can
    /// base its choice on this.
    pub multicasts: Multicasts,
    /// Whether [`crate::Fabric::store`] and [`crate::Fabric::load`] of local memory, and puts, are
    /// coherent with atomics on the same word. If they are not, a store or put that falls between
    /// an atomic's read and its write is lost.
    pub coherent_atomics: bool,
    /// The agent that executes atomics. A protocol with an alternative can base its choice on this.
    pub atomics: Atomics,
    /// Width of a notice's data in bits.
    pub notice_bits: u32,
    /// Whether session-mode queues exist in hardware.
    pub session_queues: bool,
    /// Whether the [barrier unit](crate::provider::barrier), if there is one, is hardware: barriers and
    /// reductions then need no CPU. A protocol with an alternative can base its choice on this.
    pub hardware_gates: bool,
    /// Whether operations complete at a target that computes without calling the fabric.
    pub strong_progress: bool,
    /// The best method by which existing memory can be registered; [`crate::Registered::way`]
    /// returns the method used for a registration.
    pub register_existing: Existing,
    /// Whether there is [protected memory](crate::Fabric::protected), and whether it is mapped.
    pub locked_memory: LockedMemory,
    /// Whether a rank may have [helpers](crate::Fabric::helper).
    pub helpers: bool,
    /// Whether operations tend to complete when they are posted, so that a rank may execute several
    /// while another one is being woken. A protocol that forwards data can base its choice on this.
    pub immediate: bool,
    /// Whether the job has more ranks than CPUs, so that a rank that polls may keep another from
    /// running. A protocol that polls for a short time, or whose messages pass from rank to rank, can
    /// base its choice on this.
    pub oversubscribed: bool,
    /// Whether [`crate::Handle::wait`] may block the calling thread.
    pub blocking_wait: bool,
    /// The longest single transfer in bytes; longer ones are split by the provider.
    pub max_transfer: u64,
}

impl Caps {
    /// Returns the capabilities of the weakest provider: nothing is guaranteed beyond the contract.
    /// The contract includes atomics in software; a provider without atomics reports this.
    pub const fn weakest() -> Self {
        Caps {
            put_order: PutOrder::None,
            puts_in_order: false,
            third_party_copy: false,
            multicasts: Multicasts::None,
            coherent_atomics: false,
            atomics: Atomics::Software,
            notice_bits: 8,
            session_queues: false,
            hardware_gates: false,
            strong_progress: false,
            register_existing: Existing::None,
            locked_memory: LockedMemory::None,
            helpers: false,
            immediate: false,
            oversubscribed: false,
            blocking_wait: false,
            max_transfer: 16_777_215,
        }
    }

    /// Returns whether control queues execute atomics. If CPUs execute the queues
    /// ([`Caps::session_queues`] is false) and the network's own atomics are not coherent with
    /// those of a CPU, they refuse atomics as [`crate::FabricError::Unsupported`], which would not
    /// be atomic with respect to those of the network.
    pub const fn queue_atomics(&self) -> bool {
        match self.atomics {
            Atomics::None => false,
            Atomics::Software => true,
            Atomics::Hardware => self.session_queues || self.coherent_atomics,
        }
    }
}

/// The facts of a job, which never change.
#[derive(Clone, Debug)]
pub struct JobFacts {
    /// Number of ranks.
    pub ranks: usize,
    /// The nodes of the ranks.
    pub nodes: Nodes,
    /// The guarantees of the provider.
    pub caps: Caps,
}

impl JobFacts {
    /// Returns the machine on which a rank runs: [`Fabric::node`](crate::Fabric::node).
    ///
    /// # Errors
    /// [`FabricError::NoSuchRank`].
    pub fn node(&self, rank: Rank) -> Result<Node> {
        if rank.index() >= self.ranks {
            return Err(FabricError::NoSuchRank { rank, ranks: self.ranks });
        }
        Ok(Node::new(match &self.nodes {
            Nodes::Blocks(ranks) => (rank.index() / ranks) as u32,
            Nodes::Table(nodes) => nodes.get(rank.index()).copied().unwrap_or(0),
        }))
    }

    /// Returns the number of nodes. Nodes are numbered from 0, and each has at least one rank.
    pub fn node_count(&self) -> usize {
        match &self.nodes {
            Nodes::Blocks(ranks) => self.ranks.div_ceil(*ranks),
            Nodes::Table(nodes) => nodes.iter().max().map_or(0, |last| *last as usize + 1),
        }
    }

    /// Returns the rank with this `number` on `node`, counted from 0 in order of ranks; `None` if
    /// the node has fewer ranks or does not exist.
    pub fn rank_on(&self, node: Node, number: usize) -> Option<Rank> {
        match &self.nodes {
            Nodes::Blocks(ranks) => {
                let rank = node.index().checked_mul(*ranks)?.checked_add(number)?;
                (number < *ranks && rank < self.ranks).then(|| Rank::new(rank as u32))
            }
            Nodes::Table(nodes) => {
                let there = nodes.iter().enumerate().filter(|(_, at)| **at as usize == node.index());
                there.map(|(rank, _)| Rank::new(rank as u32)).nth(number)
            }
        }
    }
}

/// The node of each rank.
#[derive(Clone, Debug)]
pub enum Nodes {
    /// This many ranks per node, in order; at least 1.
    Blocks(usize),
    /// The node of each rank. Nodes are numbered from 0 without gaps.
    Table(Arc<[u32]>),
}
