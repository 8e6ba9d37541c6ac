//! Memory of one layout at every member of a group.

use super::{Group, Members, compiled_here};
use crate::{Deps, Fabric, FabricError, Rank, Region, RegionKey, RemoteAddr, Result};
use core::fmt;
use std::sync::Arc;

/// Zeroed bytes at every member of a group, which every member can address at every other: what a protocol stands on.
///
/// Cloning is cheap and yields the same memory. It is deregistered when the last clone and [part](GroupMemory::part) is dropped.
/// Over the whole job no table of keys is needed; in a smaller group each member keeps one.
pub struct GroupMemory {
    whole: Arc<Whole>,
    start: u64,
    len: usize,
    /// Whom waits depend on, if not on every member.
    living: Option<Arc<[Rank]>>,
}

struct Whole {
    region: Region,
    who: Who,
}

enum Who {
    /// All ranks of so many, under one key.
    World { ranks: usize },
    /// These.
    Listed(Arc<Listed>),
}

struct Listed {
    /// In the group's order.
    ranks: Arc<[Rank]>,
    /// Of each member.
    keys: Box<[RegionKey]>,
    /// Sorted by rank: a rank and its number in the group.
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
    /// `bytes` at every rank of the job. Collective over the job, in the same order relative to other symmetric allocations.
    ///
    /// # Errors
    /// As [`Fabric::alloc_symmetric`].
    pub async fn symmetric(fabric: &Fabric, bytes: usize) -> Result<Self> {
        let region = fabric.alloc_symmetric(bytes).await?;
        let who = Who::World { ranks: fabric.ranks() };
        Ok(GroupMemory { whole: Arc::new(Whole { region, who }), start: 0, len: bytes, living: None })
    }

    /// A part of it: what is given out to a protocol that needs only so much. It keeps all of it registered.
    ///
    /// # Errors
    /// [`FabricError::OutOfBounds`].
    pub fn part(&self, start: usize, len: usize) -> Result<Self> {
        match start.checked_add(len) {
            Some(end) if end <= self.len => Ok(GroupMemory { start: self.start + start as u64, len, ..self.clone() }),
            _ => {
                let first = self.member(0).unwrap_or(Rank::new(0));
                let addr = self.whole.region.at(first, self.start.saturating_add(start as u64));
                Err(FabricError::out_of_bounds(addr, len as u64, self.start + self.len as u64))
            }
        }
    }

    /// The same memory for those who go on after some members are lost: waits for its words do not depend on `dead`, who stay addressable.
    pub fn without(&self, dead: &[Rank]) -> Self {
        if dead.is_empty() {
            return self.clone();
        }
        let living = self.ranks().filter(|rank| !dead.contains(rank)).collect();
        GroupMemory { living: Some(living), ..self.clone() }
    }

    /// Bytes at each member.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// How many ranks have it.
    pub fn members(&self) -> usize {
        match &self.whole.who {
            Who::World { ranks } => *ranks,
            Who::Listed(listed) => listed.ranks.len(),
        }
    }

    /// The rank of a member.
    ///
    /// # Errors
    /// [`FabricError::NoSuchRank`] if there is no member of that number.
    pub fn member(&self, number: usize) -> Result<Rank> {
        match &self.whole.who {
            Who::World { ranks } if number < *ranks => Ok(Rank::new(number as u32)),
            Who::Listed(listed) if number < listed.ranks.len() => Ok(listed.ranks[number]),
            _ => Err(FabricError::NoSuchRank { rank: Rank::new(number as u32), ranks: self.members() }),
        }
    }

    /// The ranks that have it, in the group's order: member 0 first. Those that are [lost](GroupMemory::without) are among them.
    pub fn ranks(&self) -> impl ExactSizeIterator<Item = Rank> {
        let listed = match &self.whole.who {
            Who::World { .. } => None,
            Who::Listed(listed) => Some(&listed.ranks),
        };
        (0..self.members()).map(move |number| listed.map_or(Rank::new(number as u32), |ranks| ranks[number]))
    }

    /// A rank's number in the group; `None` if it is no member.
    pub fn number(&self, rank: Rank) -> Option<usize> {
        match &self.whole.who {
            Who::World { ranks } => (rank.index() < *ranks).then(|| rank.index()),
            Who::Listed(listed) => {
                let at = listed.numbers.binary_search_by_key(&rank, |(rank, _)| *rank).ok()?;
                Some(listed.numbers[at].1 as usize)
            }
        }
    }

    /// The address `offset` bytes into `rank`'s part.
    ///
    /// # Errors
    /// [`FabricError::NotInGroup`].
    #[inline]
    pub fn at(&self, rank: Rank, offset: u64) -> Result<RemoteAddr> {
        let region = match &self.whole.who {
            Who::World { .. } => self.whole.region.key(),
            Who::Listed(listed) => match self.number(rank) {
                Some(number) => listed.keys[number],
                None => return Err(FabricError::NotInGroup { rank, members: listed.ranks.len() }),
            },
        };
        Ok(RemoteAddr { rank, region, offset: self.start + offset })
    }

    /// What a wait for a word of it depends on: every member that is [not known to be lost](GroupMemory::without).
    #[inline]
    pub fn deps(&self) -> Deps<'_> {
        match (&self.living, &self.whole.who) {
            (Some(living), _) => Deps::Ranks(living),
            (None, Who::World { .. }) => Deps::All,
            (None, Who::Listed(listed)) => Deps::Ranks(&listed.ranks),
        }
    }
}

impl Group {
    /// `bytes` zeroed bytes at every member. Collective over this group.
    ///
    /// # Errors
    /// As [`Fabric::alloc_symmetric`] and [`Group::broadcast`]. [`FabricError::Mismatch`] when sizes differ is told for the world group only.
    pub fn memory(&mut self, bytes: usize) -> impl Future<Output = Result<GroupMemory>> {
        compiled_here(self.make_memory(bytes))
    }

    async fn make_memory(&mut self, bytes: usize) -> Result<GroupMemory> {
        let Members::Listed { ranks, .. } = &self.members else {
            return GroupMemory::symmetric(&self.fabric, bytes).await;
        };
        let ranks = ranks.clone();
        let region = self.fabric.alloc(bytes)?;
        let keys = self.allgather(region.key()).await?;
        let mut numbers: Vec<_> = ranks.iter().zip(0..).map(|(rank, number)| (*rank, number)).collect();
        numbers.sort_unstable_by_key(|(rank, _)| *rank);
        let listed = Listed { ranks, keys: keys.into(), numbers: numbers.into() };
        let whole = Whole { region, who: Who::Listed(Arc::new(listed)) };
        Ok(GroupMemory { whole: Arc::new(whole), start: 0, len: bytes, living: None })
    }
}
