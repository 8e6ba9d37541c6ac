//! Writers: a queue, whose first waits for the readers.

use super::{
    NodeId, RpLock, WRITER_ACTIVE, WRITER_INTERESTED, layout::Part, node::Own, publish::Writer, settle::Duties,
};
use crate::{LockError, Result, WriteGuard, guard::Writing};
use rdma_fabric::{Fabric, PutOrder, Time};

impl<F: Fabric> RpLock<F> {
    /// Take the lock exclusively.
    ///
    /// Everything that earlier holders put is visible to gets posted afterwards. On an idle lock this is 3 remote
    /// atomics and a put, one after the other. On dropping the future see [`RpLock::read`].
    ///
    /// # Errors
    /// [`LockError::Fabric`], [`LockError::GuardLeaked`], [`LockError::Interrupted`], [`LockError::TooManyWaiting`].
    pub async fn write(&self) -> Result<WriteGuard<'_, F>> {
        self.write_before(Time::MAX).await
    }

    /// Take the lock exclusively, or give up at `deadline`. Giving up costs 1 atomic on own memory; whoever would
    /// have woken this rank hands the lock on.
    ///
    /// # Errors
    /// As [`RpLock::write`], and [`LockError::TimedOut`].
    pub async fn write_before(&self, deadline: Time) -> Result<WriteGuard<'_, F>> {
        let protocol = self.enter()?;
        let own = match self.take_node().await {
            Ok(own) => own, // W1
            Err(error) => {
                protocol.leave();
                return Err(error);
            }
        };
        let id = own.id;
        self.published.writer(&self.fabric, Writer::Arriving, id.slot())?;
        let before = self.fabric.swap(&self.tail, id.bits()).await?; // W2
        let first = match self.decode("tail", before)? {
            None => true,
            // W6: behind a writer that may be gone already.
            Some(before) => {
                let old = self.fabric.swap(&self.node(before, Part::Next)?, id.bits()).await?;
                old == NodeId::PASSED
            }
        };
        let inside = first && self.contend(id).await?;
        if !inside && !self.wait_to_be_woken(&own, deadline).await? {
            // W7 given up. The node stays in the queue; its waker will set it idle.
            self.published.writer(&self.fabric, Writer::None, 0)?;
            protocol.leave();
            return Err(LockError::TimedOut);
        }
        self.inside(protocol, own)
    }

    /// Take the lock exclusively if nobody is inside or waits to write.
    ///
    /// # Errors
    /// As [`RpLock::write`].
    pub async fn try_write(&self) -> Result<Option<WriteGuard<'_, F>>> {
        let protocol = self.enter()?;
        let own = match self.take_node().await {
            Ok(own) => own,
            Err(error) => {
                protocol.leave();
                return Err(error);
            }
        };
        let id = own.id;
        self.published.writer(&self.fabric, Writer::Arriving, id.slot())?;
        let queued = self.fabric.compare_swap(&self.tail, 0, id.bits()).await?;
        if queued == 0 {
            if self.contend(id).await? {
                return self.inside(protocol, own).map(Some);
            }
            // Readers are inside. Withdraw my interest, unless one of them has already let me in.
            let old = self.fabric.fetch_and(&self.count, !WRITER_INTERESTED).await?;
            if old & WRITER_INTERESTED == 0 {
                self.wait_to_be_woken(&own, Time::MAX).await?;
                return self.inside(protocol, own).map(Some);
            }
            self.settle(Duties { departing: Some(id), ..Duties::default() }).await?;
        } else {
            self.retire(id).await?;
        }
        self.published.writer(&self.fabric, Writer::None, 0)?;
        drop(own);
        protocol.leave();
        Ok(None)
    }

    pub(crate) async fn release_write(&self, Writing(id): Writing) -> Result<()> {
        let protocol = self.begin();
        self.flush_data().await?;
        let own = self.adopt(id);
        self.published.writer(&self.fabric, Writer::Leaving, id.slot())?;
        let reader = self.writer_leaves().await?;
        self.settle(Duties { reader, departing: Some(id), ..Duties::default() }).await?;
        self.published.writer(&self.fabric, Writer::None, 0)?;
        drop(own);
        protocol.leave();
        Ok(())
    }

    fn inside<'a>(&'a self, protocol: super::Protocol<'_>, own: Own<'_>) -> Result<WriteGuard<'a, F>> {
        self.published.writer(&self.fabric, Writer::Inside, own.id.slot())?;
        protocol.leave();
        Ok(WriteGuard::new(self, Writing(own.keep())))
    }

    /// W3–W5: first in the queue, `id` registers and enters if no reader is there.
    async fn contend(&self, id: NodeId) -> Result<bool> {
        let old = self.register(id).await?;
        if old != 0 {
            return Ok(false);
        }
        let old = self.fabric.compare_swap(&self.count, WRITER_INTERESTED, WRITER_ACTIVE).await?; // W5
        Ok(old == WRITER_INTERESTED)
    }

    /// W3, W4; X5, X6: make `id` the head, visibly, and then show interest. Yields the count before.
    async fn register(&self, id: NodeId) -> Result<u64> {
        self.fabric.put_word(&self.head, id.bits()).await?;
        if self.fabric.caps().put_order < PutOrder::SameTarget {
            self.fabric.flush(self.home).await?;
        }
        Ok(self.fabric.fetch_or(&self.count, WRITER_INTERESTED).await?)
    }

    /// X2, X3: give up the lock. Yields the top of the readers that waited for that.
    ///
    /// The stack is taken before the next writer can register (X6): a later sweep could release readers that queued behind
    /// that one.
    pub(super) async fn writer_leaves(&self) -> Result<Option<NodeId>> {
        let old = self.fabric.fetch_and(&self.count, !WRITER_ACTIVE).await?; // X2
        if old < super::READER {
            return Ok(None);
        }
        let top = self.fabric.swap(&self.readers, 0).await?; // X3
        self.decode("readers", top)
    }

    /// X4–X7 for `node`, mine or abandoned: leave the queue, register the successor. Yields the writer to
    /// be woken, if there is one and no reader is in its way.
    pub(super) async fn pass_queue_on(&self, node: NodeId) -> Result<Option<NodeId>> {
        let successor = self.successor(node).await?;
        // The node is out of the queue; a successor that has yet to link itself finds the mark.
        self.retire(node).await?;
        let Some(successor) = successor else { return Ok(None) };
        let old = self.register(successor).await?; // X5, X6
        if old != 0 {
            return Ok(None);
        }
        self.let_writer_in().await // X7
    }

    /// X4: who comes after `node`. `None` if nobody does, or if who does will register itself.
    async fn successor(&self, node: NodeId) -> Result<Option<NodeId>> {
        let linked = if node.rank() == self.fabric.rank() {
            self.fabric.load(self.own(node.slot(), Part::Next)?)?
        } else {
            self.fabric.get_word(&self.node(node, Part::Next)?).await?
        };
        if linked != 0 {
            return self.decode("next", linked);
        }
        if self.fabric.compare_swap(&self.tail, node.bits(), 0).await? == node.bits() {
            return Ok(None);
        }
        let next = self.node(node, Part::Next)?;
        let linked = self.fabric.compare_swap(&next, 0, NodeId::PASSED).await?;
        self.decode("next", linked)
    }
}
