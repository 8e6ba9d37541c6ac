//! Waiting on one's own node, waking another's, and readying a node for its next turn.

use super::{
    NodeId, Own, Part, Queue,
    node::{Wait, wake_word},
};
use crate::{LockError, error::Trouble, owed::Quit};
use rdma_fabric::Time;

impl Queue {
    /// Wake `node`. False if it gave up. A wake for an earlier turn changes nothing and counts as done.
    pub(crate) async fn wake(&self, node: NodeId) -> Result<bool, Trouble> {
        self.wake_to(node, Wait::Granted).await
    }

    /// [`Queue::wake`], to find that it was woken so.
    pub(crate) async fn wake_to(&self, node: NodeId, how: Wait) -> Result<bool, Trouble> {
        let word = self.node(node, Part::Wake)?;
        let blocked = wake_word(Wait::Blocked, node);
        let granted = wake_word(how, node);
        // Release for the woken rank: pairs with the acquire in `wait_to_be_woken`.
        let old = self.fabric.compare_swap(&word, blocked, granted).await?;
        Ok(old != wake_word(Wait::Abandoned, node))
    }

    /// Wait on own memory, until woken. Whatever else ends the wait (the deadline, quitting, the loss of a rank), the
    /// node is abandoned then and nothing is owed.
    pub(crate) async fn wait_to_be_woken(&self, own: &Own<'_>, deadline: Time, quit: &Quit) -> Result<(), Trouble> {
        match self.wait_for_any_wake(own, deadline, quit).await? {
            Wait::Granted => Ok(()),
            how => Err(Trouble::Broken(LockError::corrupt("wake", how as u64))),
        }
    }

    /// [`Queue::wait_to_be_woken`], by any wake. Yields how.
    pub(crate) async fn wait_for_any_wake(&self, own: &Own<'_>, deadline: Time, quit: &Quit) -> Result<Wait, Trouble> {
        let word = self.own(own.id.slot(), Part::Wake)?;
        let granted = wake_word(Wait::Granted, own.id);
        let offered = wake_word(Wait::Offered, own.id);
        let how = |bits| match bits {
            bits if bits == granted => Some(Wait::Granted),
            bits if bits == offered => Some(Wait::Offered),
            _ => None,
        };
        // Acquire: pairs with the wake's release.
        let woken = self.fabric.wait_until(word, self.memory.deps(), |bits| how(bits).is_some() || quit.is_set());
        let woken = if deadline == Time::MAX { Some(woken.await) } else { self.fabric.before(deadline, woken).await };
        let reason = match woken {
            Some(Ok(bits)) => match how(bits) {
                Some(how) => return Ok(how),
                None => Quit::REASON,
            },
            Some(Err(error)) => error.into(),
            None => LockError::TimedOut,
        };
        let blocked = wake_word(Wait::Blocked, own.id);
        let abandoned = wake_word(Wait::Abandoned, own.id);
        match self.fabric.compare_swap(&word.as_remote(), blocked, abandoned).await? {
            old if old == blocked => Err(Trouble::GaveUp(reason)),
            value => how(value).ok_or_else(|| Trouble::Broken(LockError::corrupt("wake", value))),
        }
    }

    /// The node is in no queue any more: begin its next turn, so that its owner may use it again.
    pub(crate) async fn retire(&self, node: NodeId) -> Result<(), Trouble> {
        let ready = wake_word(Wait::Blocked, node.next_turn());
        if node.rank() == self.me {
            self.fabric.store(self.own(node.slot(), Part::Wake)?, ready)?;
        } else if self.survives {
            // A put that fails would be told to whoever flushes next.
            self.fabric.swap(&self.node(node, Part::Wake)?, ready).await?;
        } else {
            self.fabric.put_word(&self.node(node, Part::Wake)?, ready).await?;
        }
        Ok(())
    }
}
