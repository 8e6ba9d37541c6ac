//! Waking, and acting for those who gave up.
//!
//! A waiter whose deadline comes, or whose future is dropped, marks its own node abandoned and goes. Exactly one rank will try to wake
//! that node, as for every node; it finds the mark and does what the waiter would have done with its grant: a reader wakes the
//! next reader and leaves, a writer leaves. That may lead to further nodes, abandoned or not, so the duties form a loop.

use super::{
    Core, NodeId,
    layout::Part,
    node::{Own, Wait, wake_word},
};
use crate::{LockError, error::Trouble, owed::Quit};
use rdma_fabric::{Deps, Fabric, Time};

/// What this rank still has to do for others. Each entry is owed exactly once.
#[derive(Debug, Default)]
pub(super) struct Duties {
    /// A reader to wake; it wakes the rest of its chain.
    pub(super) reader: Option<NodeId>,
    /// A writer to wake; the lock is already set active for it.
    pub(super) writer: Option<NodeId>,
    /// A writer that has given up the lock (X2, X3) and must still care for the queue (X4–X7).
    pub(super) departing: Option<Departing>,
    /// Readers that gave up and are still counted.
    pub(super) leaving: u32,
}

/// A writer on its way out of the queue.
#[derive(Debug)]
pub(super) struct Departing {
    pub(super) node: NodeId,
    /// What X4 found in the tail, if it has come so far.
    pub(super) tail: Option<u64>,
}

impl Departing {
    pub(super) fn new(node: NodeId) -> Self {
        Departing { node, tail: None }
    }
}

impl<F: Fabric> Core<F> {
    /// Do all duties, and those they lead to.
    ///
    /// Readers first: they wait only for us. A departing writer's queue comes next, then the writer to let in, and
    /// last the leaves of absent readers, which may let another writer in. Readers still owed a leave are counted, so
    /// no writer gets in meanwhile that shouldn't.
    pub(super) async fn settle(&self, mut duties: Duties) -> Result<(), Trouble> {
        loop {
            if let Some(reader) = duties.reader.take() {
                if !self.wake(reader).await? {
                    let below = self.fabric.get_word(&self.node(reader, Part::Next)?).await?;
                    duties.reader = self.decode("next", below)?;
                    self.retire(reader).await?;
                    duties.leaving += 1;
                }
            } else if let Some(writer) = duties.departing.take() {
                duties.writer = self.pass_queue_on(writer).await?;
            } else if let Some(writer) = duties.writer.take() {
                if !self.wake(writer).await? {
                    duties.reader = self.writer_leaves().await?;
                    duties.departing = Some(Departing::new(writer));
                }
            } else if duties.leaving > 0 {
                duties.leaving -= 1;
                duties.writer = self.reader_leaves().await?;
            } else {
                return Ok(());
            }
        }
    }

    /// Wake `node`. False if it gave up. A wake for an earlier turn or epoch changes nothing and counts as done.
    async fn wake(&self, node: NodeId) -> Result<bool, Trouble> {
        let word = self.node(node, Part::Wake)?;
        let blocked = wake_word(Wait::Blocked, self.epoch, node);
        let granted = wake_word(Wait::Granted, self.epoch, node);
        // Release for the woken rank: pairs with the acquire in `wait_to_be_woken`.
        let old = self.fabric.compare_swap(&word, blocked, granted).await?;
        Ok(old != wake_word(Wait::Abandoned, self.epoch, node))
    }

    /// R6, W7: wait on own memory, until woken. Whatever else ends the wait (the deadline, quitting, the loss of a rank), the
    /// node is abandoned then and nothing is owed.
    pub(super) async fn wait_to_be_woken(&self, own: &Own<'_>, deadline: Time, quit: &Quit) -> Result<(), Trouble> {
        let word = self.own(own.id.slot(), Part::Wake)?;
        let granted = wake_word(Wait::Granted, self.epoch, own.id);
        // Acquire: pairs with the wake's release.
        let woken = self.fabric.wait_until(word, Deps::All, |bits| bits == granted || quit.is_set());
        let woken = if deadline == Time::MAX { Some(woken.await) } else { self.fabric.before(deadline, woken).await };
        let reason = match woken {
            Some(Ok(bits)) if bits == granted => return Ok(()),
            Some(Ok(_)) => Quit::REASON,
            Some(Err(error)) => error.into(),
            None => LockError::TimedOut,
        };
        let blocked = wake_word(Wait::Blocked, self.epoch, own.id);
        let abandoned = wake_word(Wait::Abandoned, self.epoch, own.id);
        match self.fabric.compare_swap(&word.as_remote(), blocked, abandoned).await? {
            old if old == blocked => Err(Trouble::GaveUp(reason)),
            old if old == granted => Ok(()),
            value => Err(Trouble::Broken(LockError::corrupt("wake", value))),
        }
    }

    /// The node is in no queue any more: begin its next turn, so that its owner may use it again.
    pub(super) async fn retire(&self, node: NodeId) -> Result<(), Trouble> {
        let ready = wake_word(Wait::Blocked, self.epoch, node.next_turn());
        if node.rank() == self.me {
            self.fabric.store(self.own(node.slot(), Part::Wake)?, ready)?;
        } else {
            self.fabric.put_word(&self.node(node, Part::Wake)?, ready).await?;
        }
        Ok(())
    }
}
