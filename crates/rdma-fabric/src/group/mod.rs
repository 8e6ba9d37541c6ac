//! Groups of ranks and the small collectives that every protocol's set-up needs.
//!
//! Each collective takes O(log n) steps. They are for set-up, not for bulk data: a value is
//! exchanged by offers. The receiver puts the address of its buffer and the operation's number into
//! a slot of the sender's control block; the sender puts the data there and then the number into
//! the receiver's slot. A data collective starts with a barrier, so that no slot of the previous
//! one is still in use.
//!
//! If a member has left, a collective can't be completed, and every member that enters it receives
//! an error: see `absence`.

mod absence;
mod collectives;
mod control;
mod memory;

pub use memory::GroupMemory;

use crate::{Deps, Fabric, FabricError, Pod, Rank, RegionKey, Result, Zeroable, provider::Boxed};
use absence::Missing;
use control::CONTROL_BYTES;
use core::{fmt, future::Future};
use std::sync::Arc;

/// An ordered set of ranks with its own numbering.
///
/// All members make the same collective calls on it in the same order; `&mut` keeps one rank from
/// running two at once. The world group stores no table of its members.
///
/// ```
/// use rdma_fabric::{Fabric, Group, ProgramResult};
///
/// /// Ranks of the same parity exchange their numbers.
/// async fn parities(fabric: Fabric) -> ProgramResult<()> {
///     let mut world = Group::world(&fabric).await?;
///     let me = u64::from(fabric.rank().number());
///     let mut half = world.split(Some(me % 2), me).await?.ok_or("a colour was given")?;
///     let numbers = half.allgather(me).await?;
///     assert_eq!(numbers, if me % 2 == 0 { [0, 2] } else { [1, 3] });
///     Ok(world.barrier().await?)
/// }
/// # tofu2_sim::shm::Threads::new(4).run(&parities).unwrap();
/// # tofu2_sim::virt::Job::new(&tofu2_sim::virt::Platform::fx100(), 4).run(&parities).unwrap();
/// ```
pub struct Group {
    fabric: Fabric,
    /// This rank's number in the group.
    me: usize,
    /// The members, and their control blocks: the first bytes of the memory. Registered as long as the
    /// group lives.
    control: GroupMemory,
    /// Number of collectives started on this group: the value with which all its flags are
    /// compared. Incremented by every member for each collective.
    epoch: u64,
    /// Number of agreements on this group so far.
    agreements: u64,
    /// The missing member, if any; no collective completes without it.
    missing: Option<Missing>,
}

/// The members of a group, in its order. Cloning is cheap; an object whose waits outlive the group
/// keeps a clone. The members of the world are not listed.
#[derive(Clone, Debug)]
pub struct Members {
    len: usize,
    /// `None` for all ranks of the job.
    listed: Option<Arc<[Rank]>>,
}

impl Members {
    /// Returns the number of members.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the rank of a member.
    ///
    /// # Errors
    /// [`FabricError::NoSuchRank`] if no member has that number.
    pub fn rank(&self, number: usize) -> Result<Rank> {
        match &self.listed {
            _ if number >= self.len => Err(FabricError::NoSuchRank { rank: Rank::new(number as u32), ranks: self.len }),
            None => Ok(Rank::new(number as u32)),
            Some(ranks) => Ok(ranks[number]),
        }
    }

    /// Returns the dependencies of a wait for any of the members.
    pub fn deps(&self) -> Deps<'_> {
        self.listed().map_or(Deps::All, Deps::Ranks)
    }

    fn world(fabric: &Fabric) -> Self {
        Members { len: fabric.ranks(), listed: None }
    }

    fn of(ranks: Arc<[Rank]>) -> Self {
        Members { len: ranks.len(), listed: Some(ranks) }
    }

    /// Returns the ranks; `None` for all ranks of the job.
    fn listed(&self) -> Option<&[Rank]> {
        self.listed.as_deref()
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Group(member {} of {}, collective {})", self.me, self.len(), self.epoch)
    }
}

/// Boxes `future`. The body of an `async` block is compiled again in each crate
/// that polls it; behind this pointer, created by a function that is not generic, it is compiled
/// only here.
fn compiled_here<'a, T>(future: impl Future<Output = T> + Send + 'a) -> Boxed<'a, T> {
    Box::pin(future)
}

/// The contribution of each member to a split.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct SplitEntry {
    colour: u64,
    order: u64,
    key: RegionKey,
    rank: Rank,
    joins: u32,
}

impl Group {
    /// Creates the group of all ranks. Collective over the job.
    ///
    /// # Errors
    /// As [`Fabric::alloc_symmetric`].
    pub async fn world(fabric: &Fabric) -> Result<Self> {
        let control = GroupMemory::symmetric(fabric, CONTROL_BYTES).await?;
        Group::new(fabric, fabric.rank().index(), control)
    }

    /// Splits the group into one group per `colour`; members are numbered by `order`, then by their
    /// number in this group. A member that passes `None` joins no group. Collective over this
    /// group.
    ///
    /// # Errors
    /// As [`Group::broadcast`].
    pub fn split(&mut self, colour: Option<u64>, order: u64) -> impl Future<Output = Result<Option<Group>>> {
        compiled_here(self.make_split(colour, order))
    }

    async fn make_split(&mut self, colour: Option<u64>, order: u64) -> Result<Option<Group>> {
        let control = self.fabric.alloc(CONTROL_BYTES)?;
        let (key, rank, joins) = (control.key(), self.fabric.rank(), u32::from(colour.is_some()));
        let mut entries = self.allgather(SplitEntry { colour: colour.unwrap_or(0), order, key, rank, joins }).await?;
        let Some(colour) = colour else { return Ok(None) };
        entries.retain(|entry| entry.joins == 1 && entry.colour == colour);
        entries.sort_by_key(|entry| entry.order);
        let me = entries.iter().position(|entry| entry.rank == rank).unwrap_or(0);
        let members = entries.iter().map(|entry| entry.rank).collect();
        let keys = entries.iter().map(|entry| entry.key).collect();
        Group::new(&self.fabric, me, GroupMemory::listed(control, members, keys)).map(Some)
    }

    fn new(fabric: &Fabric, me: usize, control: GroupMemory) -> Result<Self> {
        control::check(fabric, control.region())?;
        let fabric = fabric.clone();
        Ok(Group { fabric, me, control, epoch: 0, agreements: 0, missing: None })
    }

    /// Returns the number of members.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.members().len()
    }

    /// Returns this rank's number in the group, from 0.
    pub fn me(&self) -> usize {
        self.me
    }

    /// Returns the rank of a member.
    ///
    /// # Errors
    /// [`FabricError::NoSuchRank`] if no member has that number.
    pub fn rank(&self, member: usize) -> Result<Rank> {
        self.members().rank(member)
    }

    /// Returns the number of a rank in the group.
    ///
    /// # Errors
    /// [`FabricError::NotInGroup`].
    pub fn number(&self, rank: Rank) -> Result<usize> {
        self.control.number(rank).ok_or(FabricError::NotInGroup { rank, members: self.len() })
    }

    /// Returns the underlying fabric.
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// Returns the members.
    pub fn members(&self) -> &Members {
        self.control.group()
    }

    /// Returns the key of the region in which a member's control block is.
    fn key(&self, member: usize) -> RegionKey {
        self.control.key(member)
    }

    /// Returns the number of steps that reach all members by doubling.
    fn rounds(&self) -> u32 {
        self.len().next_power_of_two().trailing_zeros()
    }

    /// Returns the member `by` places after this one.
    fn further(&self, by: usize) -> usize {
        (self.me + by) % self.len()
    }

    /// Returns the member `by` places before this one.
    fn before(&self, by: usize) -> usize {
        (self.me + self.len() - by) % self.len()
    }
}
