//! Settings of a job.

use rdma_fabric::{Caps, RemoteAddr};

/// When a posted put reaches its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// At once: the earliest a network can be.
    AtPost,
    /// When the poster flushes, blocks, ends, or posts an atomic that is ordered behind it: the
    /// latest it can be.
    AtFlush,
    /// By a thread per rank, its network interface, in the order posted but at any time: everything
    /// in between. Costs a loom thread per rank.
    Nic,
}

/// What has a memory order.
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

/// What a job's network is like.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// How many ranks there are.
    pub ranks: usize,
    /// Cells of each rank.
    pub cells_per_rank: usize,
    /// When puts arrive.
    pub delivery: Delivery,
    /// What the network guarantees.
    pub caps: Caps,
    /// The mutation "relaxed": these have no memory order.
    pub relaxed: fn(Access) -> bool,
    /// Whether the result of an operation takes another poll, so that the future may be dropped in
    /// between.
    pub late_results: bool,
    /// Whether all ranks share a node.
    pub together: bool,
}

impl Config {
    /// Returns the weakest network.
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
