//! Locks of a window that consist of a lock for each rank.

mod each;
mod two_level;

pub use each::{EachGuard, EachLock, EachOptions};
pub use two_level::{PerRankGuard, PerRankLock};

use crate::{Lock, Result};
use core::fmt;
use rdma_fabric::{Fabric, FabricError, GroupMemory, Rank};
use std::sync::{Arc, OnceLock};

/// One lock homed at each rank; this rank creates only those that it uses.
#[derive(Clone)]
struct PerRank<L: Lock> {
    inner: Arc<Inner<L>>,
}

struct Inner<L: Lock> {
    fabric: Fabric,
    /// The locks' memory, one after the other.
    memory: GroupMemory,
    options: L::Options,
    /// The locks by the members' numbers.
    locks: Box<[OnceLock<L>]>,
}

/// Shows the locks that were made.
impl<L: Lock> fmt::Debug for PerRank<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.inner.locks.iter().filter_map(OnceLock::get)).finish()
    }
}

impl<L: Lock> PerRank<L> {
    /// Returns the number of bytes needed at each of `members` ranks: every rank has the queue
    /// nodes of all locks.
    fn bytes(options: &L::Options, members: usize) -> usize {
        members * L::bytes(options, members)
    }

    fn over(fabric: &Fabric, memory: GroupMemory, options: L::Options) -> Result<Self> {
        let members = memory.members();
        let memory = memory.part(0, PerRank::<L>::bytes(&options, members))?;
        let locks = (0..members).map(|_| OnceLock::new()).collect();
        Ok(PerRank { inner: Arc::new(Inner { fabric: fabric.clone(), memory, options, locks }) })
    }

    fn fabric(&self) -> &Fabric {
        &self.inner.fabric
    }

    fn len(&self) -> usize {
        self.inner.locks.len()
    }

    /// Returns the lock homed at `rank`.
    fn of(&self, rank: Rank) -> Result<&L> {
        match self.inner.memory.number(rank) {
            Some(number) => self.numbered(number),
            None => Err(FabricError::NotInGroup { rank, members: self.len() }.into()),
        }
    }

    /// Returns all locks, in the order of members.
    fn all(&self) -> impl Iterator<Item = Result<&L>> {
        (0..self.len()).map(|number| self.numbered(number))
    }

    fn numbered(&self, number: usize) -> Result<&L> {
        let Inner { fabric, memory, options, locks } = &*self.inner;
        if let Some(lock) = locks[number].get() {
            return Ok(lock);
        }
        let bytes = L::bytes(options, memory.members());
        let part = memory.part(number * bytes, bytes)?;
        let lock = L::over(fabric, part, memory.member(number)?, options.clone())?;
        // Another thread may have been faster; both values would refer to the same lock, but only
        // one is used.
        Ok(locks[number].get_or_init(|| lock))
    }
}
