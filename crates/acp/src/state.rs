//! What one rank knows: who it is, what it has registered and resolved, what it has under way.

use crate::{
    directory::{OwnRegions, Resolver},
    engine::Engine,
};
use rdma_fabric::{Rank, Region};

pub(crate) struct State {
    /// The symmetric allocation behind the reserved regions and the directory.
    pub(crate) world: Region,
    /// This rank's number.
    pub(crate) me: Rank,
    pub(crate) memory: Resolver,
    pub(crate) own: OwnRegions,
    pub(crate) engine: Engine,
}

impl State {
    pub(crate) fn new(world: Region, me: Rank, memory: Resolver) -> Self {
        State { world, me, memory, own: OwnRegions::new(), engine: Engine::default() }
    }
}
