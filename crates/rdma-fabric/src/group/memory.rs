//! Memory of the same layout at every member of a group.

#![deny(clippy::arithmetic_side_effects)]

use super::{Group, Members, compiled_here, control::CONTROL_BYTES};
use crate::{Deps, Fabric, FabricError, Rank, Region, RegionKey, RemoteAddr, Result};
use core::fmt;
use std::sync::Arc;

/// Zeroed bytes at every member of a group, which every member can address at every other: the
/// memory of a protocol.
///
/// Cloning is cheap and yields the same memory. It is deregistered when the last clone or
/// [part](GroupMemory::part) is dropped. If the group is the whole job, no table of keys is needed;
/// in a smaller group each member keeps one.
pub struct GroupMemory {
    whole: Arc<Whole>,
    start: u64,
    len: usize,
    /// The ranks on which waits depend; `None` means every member.
    living: Option<Arc<[Rank]>>,
}

struct Whole {
    region: Region,
    members: Members,
    /// `None` over the whole job, where all members have one key.
    listed: Option<Box<Listed>>,
}

struct Listed {
    /// In the members' order.
    keys: Box<[RegionKey]>,
    /// Each member's rank and number in the group, sorted by rank.
    numbers: Box<[(Rank, u32)]>,
}

impl Clone for GroupMemory {
    fn clone(&self) -> Self {
        GroupMemory { whole: self.whole.clone(), start: self.start, len: self.len, living: self.living.clone() }
    }
}

impl fmt::Debug for GroupMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GroupMemory({} bytes at each of {} ranks)", self.len, self.members())
    }
}

impl GroupMemory {
    /// Allocates `bytes` at every rank of the job. Collective over the job, in the same order
    /// relative to other symmetric allocations.
    ///
    /// # Errors
    /// As [`Fabric::alloc_symmetric`].
    pub async fn symmetric(fabric: &Fabric, bytes: usize) -> Result<Self> {
        let region = fabric.alloc_symmetric(bytes).await?;
        Ok(Self::of(Whole { region, members: Members::world(fabric), listed: None }, bytes))
    }

    /// Returns a part of the memory, for a protocol that needs only this part, which keeps the whole
    /// memory registered.
    ///
    /// # Errors
    /// [`FabricError::OutOfBounds`].
    pub fn part(&self, start: usize, len: usize) -> Result<Self> {
        match start.checked_add(len) {
            Some(end) if end <= self.len => {
                Ok(GroupMemory { start: self.start.saturating_add(start as u64), len, ..self.clone() })
            }
            _ => {
                let first = self.member(0).unwrap_or(Rank::new(0));
                let addr = self.whole.region.at(first, self.start.saturating_add(start as u64));
                Err(FabricError::out_of_bounds(addr, len as u64, self.start.saturating_add(self.len as u64)))
            }
        }
    }

    /// Returns this memory for members that continue after some are lost: waits for its words do
    /// not depend on `dead`, which stay addressable.
    pub fn without(&self, dead: &[Rank]) -> Self {
        if dead.is_empty() {
            return self.clone();
        }
        let living = self.ranks().filter(|rank| !dead.contains(rank)).collect();
        GroupMemory { living: Some(living), ..self.clone() }
    }

    /// Returns the number of bytes at each member.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }

    fn of(whole: Whole, len: usize) -> Self {
        GroupMemory { whole: Arc::new(whole), start: 0, len, living: None }
    }

    /// Returns the memory of these ranks, of which `region` is this rank's; `keys` are in their order.
    pub(super) fn listed(region: Region, ranks: Arc<[Rank]>, keys: Box<[RegionKey]>) -> Self {
        let mut numbers: Box<[_]> = ranks.iter().zip(0..).map(|(rank, number)| (*rank, number)).collect();
        numbers.sort_unstable_by_key(|(rank, _)| *rank);
        let len = region.len();
        Self::of(Whole { region, members: Members::of(ranks), listed: Some(Box::new(Listed { keys, numbers })) }, len)
    }

    /// Returns this rank's region, of which the memory is a part.
    pub(super) fn region(&self) -> &Region {
        &self.whole.region
    }

    /// Returns the members of the whole memory.
    pub(super) fn group(&self) -> &Members {
        &self.whole.members
    }

    /// Returns the key of a member's region.
    pub(super) fn key(&self, number: usize) -> RegionKey {
        match &self.whole.listed {
            None => self.whole.region.key(),
            Some(listed) => listed.keys[number],
        }
    }

    /// Returns the number of ranks that share this memory.
    pub fn members(&self) -> usize {
        self.whole.members.len()
    }

    /// Returns the rank of a member.
    ///
    /// # Errors
    /// [`FabricError::NoSuchRank`] if no member has that number.
    pub fn member(&self, number: usize) -> Result<Rank> {
        self.whole.members.rank(number)
    }

    /// Returns the ranks that have this memory, in the group's order: member 0 first. Members that
    /// are [lost](GroupMemory::without) are included.
    pub fn ranks(&self) -> impl ExactSizeIterator<Item = Rank> {
        let listed = self.whole.members.listed();
        (0..self.members()).map(move |number| listed.map_or(Rank::new(number as u32), |ranks| ranks[number]))
    }

    /// Returns a rank's number in the group; `None` if it is not a member.
    pub fn number(&self, rank: Rank) -> Option<usize> {
        match &self.whole.listed {
            None => (rank.index() < self.members()).then(|| rank.index()),
            Some(listed) => {
                let at = listed.numbers.binary_search_by_key(&rank, |(rank, _)| *rank).ok()?;
                Some(listed.numbers[at].1 as usize)
            }
        }
    }

    /// Returns the address `offset` bytes into `rank`'s part.
    ///
    /// # Errors
    /// [`FabricError::NotInGroup`].
    #[inline]
    pub fn at(&self, rank: Rank, offset: u64) -> Result<RemoteAddr> {
        let region = match &self.whole.listed {
            None => self.whole.region.key(),
            Some(listed) => match self.number(rank) {
                Some(number) => listed.keys[number],
                None => return Err(FabricError::NotInGroup { rank, members: self.members() }),
            },
        };
        // A sum that overflows is outside of any region.
        Ok(RemoteAddr { rank, region, offset: self.start.saturating_add(offset) })
    }

    /// Returns the dependencies of a wait for a word of this memory: every member that is [not
    /// known to be lost](GroupMemory::without).
    #[inline]
    pub fn deps(&self) -> Deps<'_> {
        match &self.living {
            Some(living) => Deps::Ranks(living),
            None => self.whole.members.deps(),
        }
    }
}

impl Group {
    /// Allocates `bytes` zeroed bytes at every member. Collective over this group.
    ///
    /// # Errors
    /// As [`Fabric::alloc_symmetric`] and [`Group::broadcast`]. Sizes that differ are a
    /// [`FabricError::Mismatch`] only in the world group.
    pub fn memory(&mut self, bytes: usize) -> impl Future<Output = Result<GroupMemory>> {
        compiled_here(self.make_memory(bytes))
    }

    async fn make_memory(&mut self, bytes: usize) -> Result<GroupMemory> {
        match self.members().listed.clone() {
            None => GroupMemory::symmetric(&self.fabric, bytes).await,
            Some(ranks) => self.make_listed(bytes, ranks).await,
        }
    }

    async fn make_listed(&mut self, bytes: usize, ranks: Arc<[Rank]>) -> Result<GroupMemory> {
        let region = self.fabric.alloc(bytes)?;
        let keys = self.allgather(region.key()).await?;
        Ok(GroupMemory::listed(region, ranks, keys.into()))
    }

    /// Allocates as [`Group::memory`] does. Unless the group is the world, its control block moves
    /// to the same region, so that both together occupy one region of the rank instead of two. The
    /// region stays registered until both are dropped. Collective over this group.
    ///
    /// # Errors
    /// As [`Group::memory`].
    pub fn memory_with_control(&mut self, bytes: usize) -> impl Future<Output = Result<GroupMemory>> {
        compiled_here(self.make_with_control(bytes))
    }

    async fn make_with_control(&mut self, bytes: usize) -> Result<GroupMemory> {
        let Some(ranks) = self.members().listed.clone() else { return self.make_memory(bytes).await };
        // A sum that overflows is rejected like any other size that is too large.
        let whole = self.make_listed(bytes.saturating_add(CONTROL_BYTES), ranks).await?;
        let memory = whole.part(CONTROL_BYTES, bytes)?;
        // The allgather has waited for each word that a member writes into this block for it, so no
        // write to the old block is in flight. The new one may already contain words of the next
        // collective.
        self.control = whole;
        Ok(memory)
    }
}
