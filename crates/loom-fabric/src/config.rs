//! Settings of a job.

use rdma_fabric::{Caps, RemoteAddr};

/// When a posted put reaches its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// At once: the earliest that a network can deliver.
    AtPost,
    /// When the poster flushes, blocks, ends, or posts an atomic that is ordered behind the put:
    /// the latest that a network can deliver.
    AtFlush,
    /// At any time, in posting order, by a thread per rank that stands for its network interface:
    /// everything in between. This costs a loom thread per rank.
    Nic,
}

/// An access that has a memory order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A put of this word: release.
    Put(RemoteAddr),
    /// A `load` of this own word: acquire.
    Load(RemoteAddr),
    /// A `wait_until` of this own word: acquire.
    Wait(RemoteAddr),
    /// The end of a flush: release of what comes later.
    Flush,
}

/// The settings of a job and its network.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// The number of ranks.
    pub ranks: usize,
    /// The number of cells of each rank.
    pub cells_per_rank: usize,
    /// When puts arrive.
    pub delivery: Delivery,
    /// What the network guarantees.
    pub caps: Caps,
    /// The mutation "relaxed": the accesses for which this returns true have no memory order.
    pub relaxed: fn(Access) -> bool,
    /// Whether the result of an operation takes one more poll, so that its future may be dropped in
    /// between.
    pub late_results: bool,
    /// Whether all ranks share a node.
    pub together: bool,
}

impl Config {
    /// Returns the settings of the weakest network: [`Caps::weakest`], each rank on a node of its
    /// own.
    pub fn new(ranks: usize, delivery: Delivery) -> Self {
        Config {
            ranks,
            cells_per_rank: 32,
            delivery,
            caps: Caps::weakest(),
            relaxed: |_| false,
            late_results: false,
            together: false,
        }
    }
}
