//! Settings of a job.

use rdma_fabric::{Caps, Rank, RemoteAddr};

/// When a posted put reaches its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// When it is posted: the earliest time at which a network can deliver it.
    AtPost,
    /// When the poster flushes, blocks, ends, or posts an atomic that is ordered after the put: the
    /// latest time at which a network can deliver it.
    AtFlush,
    /// At any time in between, in posting order, by an additional loom thread per rank that models
    /// the rank's network interface.
    Nic,
}

/// An access that has a memory order, passed to [`Config::relaxed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A put to this word: release.
    Put(RemoteAddr),
    /// A `load` of this word of the rank's own memory: acquire.
    Load(RemoteAddr),
    /// A `wait_until` on this word of the rank's own memory: acquire.
    Wait(RemoteAddr),
    /// The completion of a flush: a release fence for the operations that follow.
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
    /// The capabilities of the network.
    pub caps: Caps,
    /// The mutant "relaxed": accesses for which this returns true have relaxed memory order.
    pub relaxed: fn(Access) -> bool,
    /// Whether the result of an operation takes one additional poll, so that its future may be
    /// dropped before the result is available.
    pub late_results: bool,
    /// Whether all ranks are on one node.
    pub together: bool,
    /// Whether a rank's helper of this name does not run any more once the set-up has completed: it
    /// takes no part in the job, so it needs no thread. If it does take part, ranks that wait for it
    /// are reported as a deadlock.
    pub idle: fn(Rank, &'static str) -> bool,
}

impl Config {
    /// Returns the settings of the weakest network: [`Caps::weakest`], with each rank on its own
    /// node.
    pub fn new(ranks: usize, delivery: Delivery) -> Self {
        Config {
            ranks,
            cells_per_rank: 32,
            delivery,
            caps: Caps::weakest(),
            relaxed: |_| false,
            late_results: false,
            together: false,
            idle: |_, _| false,
        }
    }
}
