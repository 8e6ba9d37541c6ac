//! Memory that a rank registered.

use super::world::World;
use rdma_fabric::{Existing, OwnedMemory, RegionKey};
use std::{fmt, rc::Rc};

/// Registered memory of one rank. Dropping it deregisters it.
pub struct Region {
    world: Rc<World>,
    rank: u32,
    key: RegionKey,
    len: usize,
    /// What the region's bytes go back to, if it existed before.
    existing: Option<OwnedMemory>,
}

impl Region {
    pub(super) fn new(world: Rc<World>, rank: u32, key: RegionKey, len: usize) -> Self {
        Region { world, rank, key, len, existing: None }
    }

    pub(super) fn world(&self) -> &Rc<World> {
        &self.world
    }

    pub(super) fn rank(&self) -> u32 {
        self.rank
    }

    /// The same region, on behalf of `memory`.
    pub(super) fn of_existing(mut self, memory: OwnedMemory) -> Self {
        self.existing = Some(memory);
        self
    }

    pub(super) fn take_existing(&mut self) -> Option<OwnedMemory> {
        self.existing.take()
    }
}

impl rdma_fabric::Region for Region {
    fn key(&self) -> RegionKey {
        self.key
    }

    fn len(&self) -> usize {
        self.len
    }

    fn existing(&self) -> Option<Existing> {
        self.existing.as_ref().map(|_| Existing::Direct)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let mut core = self.world.core();
        core.memory.deregister(self.rank, self.key);
        core.ranks[self.rank as usize].registered -= self.len as u64;
        // A wait on this memory ends with an error.
        if core.ranks[self.rank as usize].watching > 0 {
            core.wake(self.rank);
        }
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of rank {}, {} bytes", self.key, self.rank, self.len)
    }
}
