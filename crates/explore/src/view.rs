//! What invariants look at.

use crate::{
    cell::{Cells, Home},
    state::State,
};
use rdma_fabric::{Rank, RemoteAddr};

/// One moment of a job, seen from outside.
#[derive(Debug)]
pub struct View<'a> {
    state: &'a State,
    cells: &'a Cells,
}

impl<'a> View<'a> {
    pub(crate) fn new(state: &'a State, cells: &'a Cells) -> Self {
        View { state, cells }
    }

    /// Whether a [mortal](crate::Explorer::mortal) rank has died, whoever knows. Facts that it set, and its memory, stay as they were.
    pub fn is_lost(&self, rank: Rank) -> bool {
        self.state.losses.is_dead(rank)
    }

    /// A fact; see [`crate::Probe`].
    pub fn fact(&self, fact: u32) -> u64 {
        self.cells.find(Home::Fact(fact)).map_or(0, |cell| self.state.cell(cell))
    }

    /// The 8-byte word at `addr`, whose offset is a multiple of 8, as it stands in its owner's memory. Words that only their owner's CPU
    /// ever touches change together with the next thing that others could notice.
    pub fn word(&self, addr: RemoteAddr) -> u64 {
        self.cells.find(Home::Memory(addr)).map_or(0, |cell| self.state.cell(cell))
    }

    /// All 8-byte words of registered memory that are not zero, in the order of their addresses. Those of regions that were dropped are as they
    /// were then.
    pub fn words(&self) -> impl Iterator<Item = (RemoteAddr, u64)> + use<> {
        let all = self.state.cells().iter().enumerate().filter(|(_, bits)| **bits != 0);
        let mut words: Vec<_> = all
            .filter_map(|(cell, bits)| match self.cells.home(cell as u32) {
                Home::Memory(addr) => Some((addr, *bits)),
                Home::Fact(_) => None,
            })
            .collect();
        words.sort_by_key(|(addr, _)| (addr.rank, addr.region.index, addr.offset));
        words.into_iter()
    }
}
