//! Groups of ranks and the small collectives that every protocol's set-up needs.
//!
//! Each collective takes O(log n) steps. They are for set-up, not for bulk data: a value is exchanged by
//! offers. Who is to receive puts the address of its buffer and the operation's number into a slot of the
//! sender's control block; the sender puts the data there and then the number into the receiver's slot.
//! A data collective starts with a barrier, so that no slot of the one before is still in use.
//!
//! A collective that a member has left before can't be completed, which everybody is told: see `absence`.

mod absence;
mod allgather;
mod barrier;
mod broadcast;
mod control;
mod gates;
mod memory;
mod split;

pub use memory::GroupMemory;

use crate::{Deps, Fabric, FabricError, Rank, RegionKey, Result, provider::Boxed};
use absence::Missing;
use control::{CONTROL_BYTES, Control};
use core::fmt;
use std::sync::Arc;

/// An ordered set of ranks with a numbering of its own.
///
/// All members make the same collective calls on it in the same order; `&mut` keeps one rank from
/// running two at once. The world group stores no table of its members.
pub struct Group {
    fabric: Fabric,
    members: Members,
    /// My number in this group.
    me: usize,
    /// My control block; registered as long as the group lives.
    control: Control,
    /// Number of collectives started on this group: the value that all its flags are compared with.
    /// Grows by one per collective on every member alike.
    epoch: u64,
    /// Number of agreements on a number so far.
    agreements: u64,
    /// Why nothing is completed any more, if a member is missing.
    missing: Option<Missing>,
}

/// A group's members, as waits that outlive the group name them.
#[derive(Clone, Debug)]
pub(crate) enum Peers {
    /// All ranks of the job.
    All,
    /// These.
    Listed(Arc<[Rank]>),
}

impl Peers {
    pub(crate) fn deps(&self) -> Deps<'_> {
        match self {
            Peers::All => Deps::All,
            Peers::Listed(ranks) => Deps::Ranks(ranks),
        }
    }
}

enum Members {
    /// All ranks of the job; control blocks are symmetric.
    World { ranks: usize, key: RegionKey },
    /// These ranks, in this order, with the keys of their control blocks.
    Listed { ranks: Arc<[Rank]>, keys: Arc<[RegionKey]> },
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Group(member {} of {}, collective {})", self.me, self.len(), self.epoch)
    }
}

/// `future` behind a pointer. The body of an `async` block is compiled again in each crate that polls it; behind this one, called by a function that is not
/// generic, only here.
fn compiled_here<'a, T>(future: impl Future<Output = T> + Send + 'a) -> Boxed<'a, T> {
    Box::pin(future)
}

impl Group {
    /// The group of all ranks. Collective over the job.
    ///
    /// # Errors
    /// As [`Fabric::alloc_symmetric`].
    pub async fn world(fabric: &Fabric) -> Result<Self> {
        let region = fabric.alloc_symmetric(CONTROL_BYTES).await?;
        Ok(Group {
            me: fabric.rank().index(),
            members: Members::World { ranks: fabric.ranks(), key: region.key() },
            control: Control::new(fabric, region)?,
            fabric: fabric.clone(),
            epoch: 0,
            agreements: 0,
            missing: None,
        })
    }

    /// Number of members.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        match &self.members {
            Members::World { ranks, .. } => *ranks,
            Members::Listed { ranks, .. } => ranks.len(),
        }
    }

    /// My number in the group, from 0.
    pub fn me(&self) -> usize {
        self.me
    }

    /// The rank of a member.
    ///
    /// # Errors
    /// [`FabricError::NoSuchRank`] if there is no member of that number.
    pub fn rank(&self, member: usize) -> Result<Rank> {
        match &self.members {
            Members::World { ranks, .. } if member < *ranks => Ok(Rank::new(member as u32)),
            Members::Listed { ranks, .. } if member < ranks.len() => Ok(ranks[member]),
            _ => Err(FabricError::NoSuchRank { rank: Rank::new(member as u32), ranks: self.len() }),
        }
    }

    /// The number of a rank in the group.
    ///
    /// # Errors
    /// [`FabricError::NotInGroup`].
    pub fn number(&self, rank: Rank) -> Result<usize> {
        let number = match &self.members {
            Members::World { ranks, .. } => Some(rank.index()).filter(|number| number < ranks),
            Members::Listed { ranks, .. } => ranks.iter().position(|member| *member == rank),
        };
        number.ok_or(FabricError::NotInGroup { rank, members: self.len() })
    }

    /// The fabric the group lives on.
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    fn key(&self, member: usize) -> RegionKey {
        match &self.members {
            Members::World { key, .. } => *key,
            Members::Listed { keys, .. } => keys[member],
        }
    }

    /// The members, for waits of what was built with the group.
    pub(crate) fn peers(&self) -> Peers {
        match &self.members {
            Members::World { .. } => Peers::All,
            Members::Listed { ranks, .. } => Peers::Listed(ranks.clone()),
        }
    }

    /// The members; `None` if they are all ranks of the job.
    fn listed(&self) -> Option<&[Rank]> {
        match &self.members {
            Members::World { .. } => None,
            Members::Listed { ranks, .. } => Some(ranks),
        }
    }

    /// Number of steps that reach `len` members by doubling.
    fn rounds(&self) -> u32 {
        self.len().next_power_of_two().trailing_zeros()
    }
}
