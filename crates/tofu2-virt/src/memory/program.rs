//! Regions that are memory of another process, which the simulator does not store.

use super::{Loc, Memory, SYMMETRIC};
use crate::program::ProgramMemory;
use rdma_fabric::{RegionKey, Result};

impl Memory {
    /// Registers memory of another process, of `bytes` bytes.
    pub(crate) fn register_program(
        &mut self,
        rank: u32,
        bytes: usize,
        memory: Box<dyn ProgramMemory>,
    ) -> Result<RegionKey> {
        let key = self.register(rank, bytes)?;
        if let Some(table) = self.local.get_mut(rank as usize).and_then(Option::as_deref_mut) {
            table.set_program(key, memory);
        }
        Ok(key)
    }

    /// Returns the memory of another process that a live place is part of, if so.
    #[inline]
    pub(super) fn program(&self, loc: &Loc) -> Option<&dyn ProgramMemory> {
        if loc.index & SYMMETRIC != 0 {
            return None;
        }
        self.local.get(loc.rank as usize)?.as_deref()?.program(loc.index)
    }
}
