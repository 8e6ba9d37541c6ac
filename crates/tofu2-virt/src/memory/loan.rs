//! Regions that the simulator lends to the program of their rank, so that it need not copy them.

use super::{Loc, Memory};
use crate::program::ProgramMemory;
use std::sync::Arc;

/// The words of a lent region.
pub(crate) type Words = Arc<Box<[u64]>>;

/// A region whose only copy the program has.
#[derive(Debug)]
pub(super) struct Away;

impl ProgramMemory for Away {
    fn read(&self, _: u64, into: &mut [u8]) {
        into.fill(0);
    }

    fn write(&self, _: u64, _: &[u8]) {}
}

impl Memory {
    /// Lends the region of a live place that a rank has registered by itself, to be read, or to be written and
    /// [given back](Memory::give_back); `None` for other memory, and if a copy of the place takes less.
    pub(crate) fn lend(&mut self, loc: &Loc, writes: bool) -> Option<Words> {
        if loc.symmetric().is_some() {
            return None;
        }
        let table = self.local.get_mut(loc.rank as usize)?.as_deref_mut()?;
        table.lend(&mut self.store, loc.index, loc.len as usize, writes, &mut self.stored)
    }

    /// Takes back the words of the region of a live place, if it was lent to be written.
    pub(crate) fn give_back(&mut self, loc: &Loc, words: Words) {
        if loc.symmetric().is_some() {
            return;
        }
        if let Some(table) = self.local.get_mut(loc.rank as usize).and_then(Option::as_deref_mut) {
            table.give_back(loc.index, words);
        }
    }
}
