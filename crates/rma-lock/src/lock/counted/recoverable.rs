//! The packed scheme in an epoch of a recoverable lock: two more flags, and operations on its words
//! for the recovery.

use super::{
    Core, CountedLock, Home, Steps, WriteGuard,
    scheme::{HEAD, READER, Scheme, WRITER_ACTIVE},
};
use crate::{
    Guard, LockError, Result,
    lock::{
        queue::{self, NodeId, Walk},
        recovery::{self, EpochLink},
    },
};
use rdma_fabric::{Fabric, GroupMemory, Rank, RemoteWord, Time};
use std::sync::Arc;

/// The epoch is closed: it admits no more ranks.
pub(super) const CLOSED: u64 = 1 << 31;
/// The data that the lock protects may be half-written: only an acquisition that accepts this is
/// admitted.
pub(super) const TORN: u64 = 1 << 30;

/// Reader preference, packed, in an epoch of a [`crate::locks::RecoverableLock`].
#[derive(Clone, Copy, Debug)]
pub struct Recoverable;

impl CountedLock<Recoverable> {
    /// Returns the lock of an epoch, in the epoch's words. After the first epoch, a rank's last
    /// node is reserved for its stand-in.
    pub(crate) fn of_epoch(core: &Arc<recovery::Core>, epoch: usize, memory: GroupMemory) -> Result<Self> {
        let link = EpochLink::new(core, epoch)?;
        let lock = CountedLock::with(core.fabric(), memory, core.home(), link)?;
        if epoch > 0 {
            lock.core.reserve_last_node();
        }
        Ok(lock)
    }

    /// Returns whether this rank is inside or about to enter.
    pub(crate) fn is_inside(&self) -> bool {
        queue::is_inside(self.core.published.sum())
    }

    /// Returns the conditions that currently keep acquisitions out.
    pub(crate) async fn shut(&self) -> Result<Shut> {
        let word = self.core.fabric.get_word(&self.core.count).await?;
        Ok(Shut { torn: word & TORN != 0, closed: word & CLOSED != 0 })
    }

    /// Returns whether it can be determined without waiting that the lock is not torn.
    #[inline(always)]
    pub(crate) fn is_whole_now(&self) -> bool {
        self.core.fabric.direct().get_word(&self.core.count).is_some_and(|word| word & TORN == 0)
    }

    pub(crate) fn tears(&self) -> bool {
        self.core.link.tears()
    }

    pub(crate) async fn mark_torn(&self) -> Result<()> {
        self.core.fabric.fetch_or(&self.core.count, TORN).await?;
        Ok(())
    }

    /// Marks the protected data as consistent; returns whether the epoch was already closed.
    pub(crate) async fn mark_whole(&self) -> Result<bool> {
        Ok(self.core.fabric.fetch_and(&self.core.count, !TORN).await? & CLOSED != 0)
    }

    /// Makes this rank's stand-in leave: as a reader at U1, or as a writer at X2.
    pub(crate) async fn stand_in_leaves(&self, writes: bool) -> Result<()> {
        let steps = match writes {
            true => Steps::leave_for_writer(NodeId::stand_in(self.core.me)),
            false => Steps::leave_for_reader(),
        };
        match Walk::<Core>::new(steps, Time::MAX).run(&self.core) {
            Ok(left) => left.map(drop),
            Err(call) => call.await.map(drop),
        }
    }
}

impl WriteGuard<'_, Recoverable> {
    /// Releases the lock with half-written data, in the background.
    pub(crate) fn release_torn(self, core: Arc<recovery::Core>) {
        let lock = self.lock().clone();
        let held = self.disarm();
        lock.core.link.tear();
        core.fabric().clone().detach(async move {
            // Marked as torn before the lock is passed on.
            let _ = core.record_who_tore(lock.core.me).await;
            let _ = lock.mark_torn().await;
            drop(WriteGuard::new(&lock, held).release().await);
        });
    }
}

/// The conditions that keep acquisitions out, regardless of the holders.
#[derive(Clone, Copy)]
pub(crate) struct Shut {
    /// The protected data may be half-written.
    pub(crate) torn: bool,
    /// The epoch is closed.
    pub(crate) closed: bool,
}

/// An epoch's words at the home, for the rank that closes or opens it.
pub(crate) struct HomeWords {
    count: RemoteWord<u64>,
    tail: RemoteWord<u64>,
    home: Rank,
}

/// The state of an epoch when it was closed.
pub(crate) struct Closed {
    /// The writer that was active.
    pub(crate) writer: Option<Rank>,
    /// Whether the protected data was marked as torn.
    pub(crate) torn: bool,
}

impl HomeWords {
    pub(crate) fn new(fabric: &Fabric, memory: &GroupMemory, home: Rank) -> Result<Self> {
        let word = |word: Home| fabric.remote_word(memory.at(home, word as u64)?);
        Ok(HomeWords { count: word(Home::Count)?, tail: word(Home::Tail)?, home })
    }

    /// Closes the epoch: from now on it admits no ranks. (Acquire and release: everything that was
    /// published before an atomic that found the epoch open is visible afterwards.)
    pub(crate) async fn close(&self, fabric: &Fabric) -> Result<Closed> {
        let word = fabric.fetch_or(&self.count, CLOSED).await?;
        let active = word & WRITER_ACTIVE != 0;
        let writer = NodeId::decode("count", if active { word >> HEAD } else { 0 }, fabric.ranks())?;
        if active && writer.is_none() {
            return Err(LockError::corrupt("count", word));
        }
        Ok(Closed { writer: writer.map(NodeId::rank), torn: word & TORN != 0 })
    }

    /// Writes the words of an epoch that no other rank knows yet, with the stand-in of `writer`
    /// inside, if any.
    pub(crate) async fn install(&self, fabric: &Fabric, writer: Option<Rank>, torn: bool) -> Result<()> {
        let node = writer.map_or(0, |rank| NodeId::stand_in(rank).bits());
        let active = if node == 0 { 0 } else { Recoverable::RULES.active(node) };
        fabric.put_word(&self.tail, node).await?;
        fabric.put_word(&self.count, active | if torn { TORN } else { 0 }).await?;
        fabric.flush(self.home).await?;
        Ok(())
    }

    pub(crate) async fn count_reader(&self, fabric: &Fabric) -> Result<()> {
        fabric.fetch_add(&self.count, READER).await?;
        Ok(())
    }

    pub(crate) async fn uncount_reader(&self, fabric: &Fabric) -> Result<()> {
        fabric.fetch_add(&self.count, READER.wrapping_neg()).await?;
        Ok(())
    }

    /// Removes the stand-in of `writer` again: the writer is not inside after all, and no rank has
    /// queued behind it.
    pub(crate) async fn unseat(&self, fabric: &Fabric, writer: Rank) -> Result<()> {
        let node = NodeId::stand_in(writer).bits();
        fabric.fetch_add(&self.count, Recoverable::RULES.active(node).wrapping_neg()).await?;
        fabric.compare_swap(&self.tail, node, 0).await?;
        Ok(())
    }
}
