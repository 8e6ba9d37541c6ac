//! What stays as it is during a run.

use super::{platform::Timing, topology::Map};

/// The machine's constants, its network's tables, and how ranks are spread over nodes.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) timing: Timing,
    pub(super) map: Map,
    pub(super) ranks: u32,
    pub(super) ranks_per_node: u32,
    /// Engines that atomics and puts arrive at: of the poster's local number, modulo this.
    pub(super) receive_engines: u32,
}

impl Machine {
    #[inline]
    pub(super) fn node_of(&self, rank: u32) -> u32 {
        rank / self.ranks_per_node
    }

    /// Bytes that a rank may register.
    pub(super) fn memory_limit(&self) -> u64 {
        self.timing.node_memory / u64::from(self.ranks_per_node)
    }

    /// Wire latency between two nodes by the default path, in picoseconds.
    pub(super) fn wire_between(&self, from: u32, to: u32) -> u64 {
        self.timing.wire(self.map.hops(from, to))
    }
}
