//! Node-aware locks: the first rank of a node takes the lock for all of them, the last one releases
//! it.
//!
//! # Words
//! At each node's first rank, and in a tree at one rank of each larger unit: `count`, the number of
//! ranks that are inside or about to enter times 4, [`level::HELD`], [`level::ORPHAN`]; and
//! `waiting`, the top of a stack of queue nodes ([`crate::lock::queue`]). At each rank: its queue nodes,
//! which serve all levels.
//!
//! # Steps
//! N1–N13 in comments are those of `docs/systems/locks.md`. A level does not depend on the
//! kind of the next one above ([`Above`]): another level or, at the top, the lock. An acquisition
//! is a loop up and a loop down ([`climb`]), a release a loop up ([`level`]); nothing is recursive,
//! and the number of levels is known at run time ([`shape`]).
//!
//! No level has a phase in which it is being released: the last reader to leave first ends the
//! level, and then releases the hold above. A reader that arrives in between takes that hold a
//! second time, which is harmless, because the level above counts anonymous holders.

mod aggregated;
mod climb;
mod inside;
mod level;
mod shape;

pub use aggregated::{Aggregated, AggregatedGuard, AggregatedOptions};
pub(crate) use climb::unless_cancelled;
pub(crate) use inside::Inside;
pub use shape::Levels;
pub(crate) use shape::{first_ranks, own_node};

use crate::{
    Result,
    error::Stopped,
    lock::{
        detach::{DetachOnDrop, HasFabric},
        posting::Unfinished,
        queue::{LOCK_BYTES, Queue},
    },
};
use core::fmt;
use level::Level;
use rdma_fabric::{Fabric, GroupMemory, Rank, Time, provider::Boxed};
use shape::meetings;
use std::sync::Arc;

/// The lock above the levels, held shared in a way that any rank may end: the first reader takes
/// the hold for all, the last one releases it.
pub(crate) trait Above: fmt::Debug + Send + Sync {
    /// Takes the hold. Dropping the future undoes its effects; if it fails, there is no hold.
    fn enter(&self, deadline: Time) -> Boxed<'_, Result<()>>;

    /// Takes the hold if that does not require waiting.
    fn try_enter(&self) -> Boxed<'_, Result<bool>>;

    /// Ends a hold. Waits only for operations. If the future is dropped, the rest is done in the
    /// background.
    fn leave(&self) -> Boxed<'_, Result<()>>;
}

/// The time limit of an acquisition.
#[derive(Clone, Copy)]
pub(crate) enum Patience {
    Before(Time),
    /// Does not wait.
    None,
}

/// The part at one rank of the levels below a shared lock.
pub(crate) struct Stair {
    pub(crate) queue: Queue,
    /// The levels, from the lowest. Empty if this rank shares no level with others.
    levels: Box<[Level]>,
    above: Box<dyn Above>,
}

impl fmt::Debug for Stair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} levels below {:?}, {:?}", self.levels.len(), self.above, self.queue)
    }
}

impl HasFabric for Stair {
    fn fabric(&self) -> &Fabric {
        &self.queue.fabric
    }
}

impl Stair {
    /// Returns the number of bytes needed at each of `members` ranks: enough for the levels that
    /// would exist if each rank were on a separate node.
    pub(crate) fn bytes(levels: Levels, members: usize) -> usize {
        level::offset(levels.count(members))
    }

    /// Makes the levels in zeroed memory of [`Stair::bytes`].
    pub(crate) fn over(
        fabric: &Fabric,
        memory: GroupMemory,
        home: Rank,
        levels: Levels,
        above: impl Above + 'static,
    ) -> Result<Self> {
        let met = meetings(fabric, &memory, levels)?;
        let levels = met.into_iter().map(|meeting| Level::over(fabric, &memory, meeting));
        let levels = levels.collect::<Result<Box<[_]>, _>>()?;
        Ok(Stair {
            levels,
            queue: Queue::over(fabric, memory.part(0, LOCK_BYTES)?, home, false)?,
            above: Box::new(above),
        })
    }

    /// Enters, or returns false if `patience` does not suffice. The first atomic may have been
    /// posted. Dropping the future undoes its effects.
    fn acquire(self: &Arc<Self>, first: Unfinished, patience: Patience) -> Boxed<'_, Result<bool>> {
        Box::pin(async move {
            if first.is_none() {
                self.queue.broken.check()?;
            }
            DetachOnDrop::new(self, |stair, cancelled| async move {
                stair.queue.broken.answer(stair.enter(first, patience, &cancelled).await)
            })
            .await
        })
    }

    /// Leaves; the first atomic may have been posted. If the future is dropped, the rest is done in
    /// the background.
    async fn release(self: &Arc<Self>, first: Unfinished) -> Result<()> {
        DetachOnDrop::new(self, |stair, _| async move { stair.queue.broken.answer(stair.leave_by(first).await) }).await
    }

    /// Detaches a [`Stair::release`]; flushes first, unless the first atomic was posted.
    #[cold]
    fn release_unawaited(self: &Arc<Self>, first: Unfinished) {
        let stair = self.clone();
        self.queue.fabric.detach(async move {
            if first.is_none() {
                let _ = stair.queue.flush_data().await;
            }
            let _ = stair.queue.broken.answer(stair.leave_by(first).await);
        });
    }

    async fn leave_by(&self, first: Unfinished) -> Result<(), Stopped> {
        let old = match first {
            Some(posting) => Some(posting.result().await?),
            None => None,
        };
        self.leave_from(0, old).await
    }
}
