//! Locks that know which ranks share a node: the first of a node takes the lock for all of them, the last one lets go of it.
//!
//! # Words
//! At each node's first rank, and in a tree at one rank of each larger unit: `count`, those inside or on their way times 4,
//! [`level::HELD`], [`level::ORPHAN`]; and `waiting`, the top of a stack of queue nodes ([`crate::queue`]). At each rank: its queue
//! nodes, which serve all levels.
//!
//! # Steps
//! N1–N13 in comments are those of `docs/node-locks.md`. A level is the same whatever is above it ([`above::Above`]): the next level, or at last the lock.
//! An acquisition is a loop up and one down ([`climb`]), a release a loop up ([`level`]); nothing is recursive, and how many levels there are is
//! known at run time ([`shape`]).
//!
//! There is no phase in which a level lets go: the last one out ends it first, and gives back what is above then. Who comes in between takes that a second
//! time, which its owner, counting anonymous holders, does not mind.

mod above;
mod aggregated;
pub(crate) mod climb;
mod enter;
mod guard;
mod layout;
mod level;
mod shape;

pub(crate) use above::Above;
pub use aggregated::{Aggregated, AggregatedGuard, AggregatedOptions};
pub(crate) use guard::Inside;
pub use shape::Levels;
pub(crate) use shape::{first_ranks, own_node};

use crate::{
    Result,
    error::Trouble,
    owed::{Owed, Side},
    posting::NotOver,
    queue::{LOCK_BYTES, Queue},
};
use climb::Patience;
use core::fmt;
use level::Level;
use rdma_fabric::{Fabric, GroupMemory, Rank};
use shape::meetings;
use std::sync::Arc;

/// A rank's side of the levels below something that is held in common.
pub(crate) struct Stair<A> {
    pub(crate) queue: Queue,
    /// From the lowest. Empty if this rank meets nobody.
    levels: Box<[Level]>,
    pub(crate) above: A,
}

impl<A: Above> fmt::Debug for Stair<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} levels below {:?}, {:?}", self.levels.len(), self.above, self.queue)
    }
}

impl<A: Above> Side for Stair<A> {
    fn fabric(&self) -> &Fabric {
        &self.queue.fabric
    }
}

impl<A: Above> Stair<A> {
    /// Bytes at each of so many ranks.
    pub(crate) fn bytes(levels: Levels, members: usize) -> usize {
        layout::bytes(levels, members)
    }

    /// In zeroed memory of [`Stair::bytes`].
    pub(crate) fn over(fabric: &Fabric, memory: GroupMemory, home: Rank, levels: Levels, above: A) -> Result<Self> {
        let met = meetings(fabric, &memory, levels)?;
        let levels = met.into_iter().map(|meeting| Level::over(fabric, &memory, meeting));
        let levels = levels.collect::<Result<Box<[_]>, _>>()?;
        Ok(Stair { levels, queue: Queue::over(fabric, memory.part(0, LOCK_BYTES)?, home, false)?, above })
    }

    /// Get inside, or find that it takes too long. The first atomic may have been posted. Dropping the future takes back what it has done.
    async fn acquire(self: &Arc<Self>, first: NotOver, patience: Patience) -> Result<bool> {
        if first.is_none() {
            self.queue.check()?;
        }
        Owed::new(self, |stair, quit| async move { stair.queue.answer(stair.enter(first, patience, &quit).await) })
            .await
    }

    /// Leave, with the puts visible that this rank posted. The first atomic may have been posted. If the future is dropped the rest is done in the
    /// background.
    async fn release(self: &Arc<Self>, first: NotOver) -> Result<()> {
        Owed::new(self, |stair, _| async move { stair.queue.answer(stair.leave_by(first).await) }).await
    }

    /// [`Stair::release`] by nobody; flushes, unless the first atomic was posted.
    #[cold]
    fn release_unawaited(self: &Arc<Self>, first: NotOver) {
        let stair = self.clone();
        self.queue.fabric.detach(async move {
            if first.is_none() {
                let _ = stair.queue.flush_data().await;
            }
            let _ = stair.queue.answer(stair.leave_by(first).await);
        });
    }

    async fn leave_by(&self, first: NotOver) -> Result<(), Trouble> {
        let old = match first {
            Some(posting) => Some(posting.result().await?),
            None => None,
        };
        self.leave_from(0, old).await
    }
}
