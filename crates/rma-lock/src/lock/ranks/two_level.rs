//! A lock for each rank, under one lock by which accesses to single ranks and accesses to all ranks
//! exclude each other.

use super::PerRank;
use crate::{
    Access, AccessLock, Fairness, Guard, Lock, Result, RmaLock,
    lock::{
        classes::{CLASSES_BYTES, Class, ClassOf, Classes},
        nodes::{Inside, Levels, Stair},
    },
};
use core::fmt;
use rdma_fabric::{Fabric, GroupMemory, Rank, Time};
use std::sync::Arc;

/// The class of accesses to all ranks.
const ALL: Class = Class::Even;
/// The class of exclusive accesses.
const SOME: Class = Class::Odd;

/// A lock for each rank, and above them one lock for two classes: accesses to all ranks, and
/// exclusive accesses. Exclusive accesses to different ranks do not wait for each other, and an
/// access to all ranks takes one lock, regardless of the number of ranks. Shared access to one rank
/// takes only that rank's lock.
///
/// The ranks of a node enter a class together: the first takes it for the node, the last one to
/// leave releases it. So for each node an access to all ranks costs the home at most 1 operation to
/// enter and 1 to leave, or 2 while the other class waits.
///
/// # Fairness
/// Turns of the two classes alternate as long as both are requested; each turn admits all ranks
/// that waited when it began. A node whose ranks follow one another in the same class without a gap
/// keeps its turn for that long. Among exclusive accesses to one rank, and between them and shared
/// accesses to it, the rank's lock determines the order.
///
/// # Deadlock
/// The class is entered first, and a rank's lock is taken under it; a rank that holds a rank's lock
/// never waits. This applies to a rank with one access at a time. A rank that holds another rank
/// shared and requests all ranks may wait forever, for an exclusive access to that rank that has
/// its turn.
///
/// # Memory
/// Each rank holds the queue nodes of all ranks' locks: `L`'s bytes times the number of ranks.
#[derive(Clone)]
pub struct PerRankLock<L: Lock> {
    locks: PerRank<L>,
    all: Arc<Stair>,
    some: Arc<Stair>,
    home: Rank,
}

impl<L: Lock> fmt::Debug for PerRankLock<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PerRankLock({:?}, {:?}, {:?})", self.all, self.some, self.locks)
    }
}

/// Access through a [`PerRankLock`].
///
/// Dropping it releases the lock in the background, without reporting errors.
#[must_use = "a guard that is dropped at once protects nothing"]
pub struct PerRankGuard<'a, L: RmaLock> {
    held: Held<'a, L>,
    access: Access,
}

/// The holds, in the order in which they must be dropped.
enum Held<'a, L: RmaLock> {
    All(Inside<'a>),
    Shared(L::Shared<'a>),
    Exclusive(L::Exclusive<'a>, Inside<'a>),
}

impl<L: RmaLock> fmt::Debug for PerRankGuard<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.held {
            Held::All(_) => write!(f, "{:?}", self.access),
            Held::Shared(guard) => write!(f, "{:?}, {guard:?}", self.access),
            Held::Exclusive(guard, _) => write!(f, "{:?}, {guard:?}", self.access),
        }
    }
}

impl<L: RmaLock> PerRankGuard<'_, L> {
    /// Returns the access that is held.
    pub fn access(&self) -> Access {
        self.access
    }
}

impl<L: RmaLock> Guard for PerRankGuard<'_, L> {
    async fn release(self) -> Result<()> {
        match self.held {
            Held::All(inside) => inside.release().await,
            Held::Shared(guard) => guard.release().await,
            Held::Exclusive(guard, inside) => {
                let released = guard.release().await;
                inside.release().await.and(released)
            }
        }
    }
}

fn stair_bytes(members: usize) -> usize {
    Stair::bytes(Levels::Nodes, members)
}

impl<L: RmaLock> Lock for PerRankLock<L> {
    /// The options of each rank's lock.
    type Options = L::Options;

    const NAME: &'static str = "per rank, two classes";
    const FAIRNESS: Fairness = L::FAIRNESS;
    const HOME_WORDS: usize = 6;

    fn bytes(options: &L::Options, members: usize) -> usize {
        CLASSES_BYTES + 2 * stair_bytes(members) + PerRank::<L>::bytes(options, members)
    }

    fn over(fabric: &Fabric, memory: GroupMemory, home: Rank, options: L::Options) -> Result<Self> {
        let members = memory.members();
        let stair = stair_bytes(members);
        let classes = Arc::new(Classes::over(fabric, memory.part(0, CLASSES_BYTES)?, home)?);
        let by_node = |class, start| {
            let above = ClassOf { classes: classes.clone(), class };
            Stair::over(fabric, memory.part(start, stair)?, home, Levels::Nodes, above).map(Arc::new)
        };
        let (all, some) = (by_node(ALL, CLASSES_BYTES)?, by_node(SOME, CLASSES_BYTES + stair)?);
        let start = CLASSES_BYTES + 2 * stair;
        let locks = memory.part(start, PerRank::<L>::bytes(&options, members))?;
        Ok(PerRankLock { locks: PerRank::over(fabric, locks, options)?, all, some, home })
    }

    fn home(&self) -> Rank {
        self.home
    }

    fn fabric(&self) -> &Fabric {
        self.locks.fabric()
    }
}

impl<L: RmaLock> AccessLock for PerRankLock<L> {
    type Guard<'a> = PerRankGuard<'a, L>;

    async fn lock_before(&self, access: Access, deadline: Time) -> Result<PerRankGuard<'_, L>> {
        let held = match access {
            Access::All => Held::All(self.all.enter_before(deadline).await?),
            Access::Shared(rank) => Held::Shared(self.locks.of(rank)?.read_before(deadline).await?),
            Access::Exclusive(rank) => {
                let lock = self.locks.of(rank)?;
                let inside = self.some.enter_before(deadline).await?;
                match lock.write_before(deadline).await {
                    Ok(guard) => Held::Exclusive(guard, inside),
                    Err(error) => {
                        inside.release().await?;
                        return Err(error);
                    }
                }
            }
        };
        Ok(PerRankGuard { held, access })
    }

    async fn try_lock(&self, access: Access) -> Result<Option<PerRankGuard<'_, L>>> {
        let held = match access {
            Access::All => self.all.try_enter().await?.map(Held::All),
            Access::Shared(rank) => self.locks.of(rank)?.try_read().await?.map(Held::Shared),
            Access::Exclusive(rank) => {
                let lock = self.locks.of(rank)?;
                let Some(inside) = self.some.try_enter().await? else { return Ok(None) };
                match lock.try_write().await {
                    Ok(Some(guard)) => Some(Held::Exclusive(guard, inside)),
                    other => {
                        inside.release().await?;
                        other?;
                        None
                    }
                }
            }
        };
        Ok(held.map(|held| PerRankGuard { held, access }))
    }
}
