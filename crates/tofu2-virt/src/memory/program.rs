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

    /// Lets a rank's part of a symmetric region, which the rank has just joined, be memory of another
    /// process. Bytes that other ranks have written before are copied there.
    pub(crate) fn join_program(&mut self, rank: u32, key: RegionKey, memory: Box<dyn ProgramMemory>) {
        let Some(region) = self.symmetric.get((key.index & !SYMMETRIC) as usize) else { return };
        if !region.is_blank(rank) {
            let whole = Loc::new(rank, key, 0, region.bytes() as u64);
            memory.write(0, &self.copied(&whole));
        }
        self.programs.insert((key.index, rank), memory);
    }

    /// Returns the memory of another process that a live place is part of, if so.
    #[inline]
    pub(super) fn program(&self, loc: &Loc) -> Option<&dyn ProgramMemory> {
        if loc.index & SYMMETRIC != 0 {
            if self.programs.is_empty() {
                return None;
            }
            return self.programs.get(&(loc.index, loc.rank)).map(|memory| &**memory);
        }
        self.local.get(loc.rank as usize)?.as_deref()?.program(loc.index)
    }
}
