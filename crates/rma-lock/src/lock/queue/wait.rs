//! Waits on the rank's own node, and wakes other ranks' nodes.

use super::{
    Queue,
    layout::NodeWord,
    node::{NodeId, Wait, wake_word},
    own::Own,
};
use crate::{
    LockError,
    error::Stopped,
    lock::detach::{Cancelled, before},
};
use core::hint::spin_loop;
use rdma_fabric::{LocalWord, RemoteWord, Time};

/// The number of times that a word that other ranks' CPUs write is checked before a wait for it is
/// prepared: a holder that leaves immediately admits the next rank sooner than that.
const SPIN_LIMIT: u32 = 64;

/// Returns the kind of wake-up of `node`, if its wake word holds `bits`.
fn woken(bits: u64, node: NodeId) -> Option<Wait> {
    [Wait::Granted, Wait::Offered].into_iter().find(|how| bits == wake_word(*how, node))
}

impl Queue {
    /// Wakes `node`. Returns false if its owner gave up. A wake for an earlier turn changes nothing
    /// and counts as done.
    pub(crate) async fn wake(&self, node: NodeId) -> Result<bool, Stopped> {
        self.wake_to(node, Wait::Granted).await
    }

    /// Wakes `node` as [`Queue::wake`] does, leaving it in the state `how`.
    pub(crate) async fn wake_to(&self, node: NodeId, how: Wait) -> Result<bool, Stopped> {
        let word = self.node(node, NodeWord::Wake)?;
        // Release for the woken rank: pairs with the acquire of its wait.
        Ok(self.fabric.atomic(&word, node.wake(how)).await? != wake_word(Wait::Abandoned, node))
    }

    /// Checks for a short time whether `node`, this rank's own, has been woken, and returns the
    /// kind of wake-up (acquire, as in [`Queue::until_woken`]).
    #[inline]
    pub(crate) fn soon_woken(&self, node: NodeId) -> Option<Wait> {
        let word = self.own(node.slot(), NodeWord::Wake).ok()?;
        let blocked = wake_word(Wait::Blocked, node);
        if !self.is_soon(word, |bits| bits != blocked) {
            return None;
        }
        woken(self.fabric.load(word).ok()?, node)
    }

    /// Returns the kind of wake-up of `node`, this rank's own, if it was woken.
    pub(crate) fn woken_now(&self, node: NodeId) -> Option<Wait> {
        woken(self.fabric.load(self.own(node.slot(), NodeWord::Wake).ok()?).ok()?, node)
    }

    /// Checks for a short time whether a writer links itself behind `node`, this rank's own.
    #[cold]
    #[inline(never)]
    pub(crate) fn is_soon_followed(&self, node: NodeId) -> bool {
        self.own(node.slot(), NodeWord::Next).is_ok_and(|word| self.is_soon(word, |bits| bits != 0))
    }

    /// Checks a word of this rank a number of times, where that may be worthwhile.
    #[inline(always)]
    fn is_soon(&self, word: &LocalWord<u64>, so: impl Fn(u64) -> bool) -> bool {
        let looks = if word.is_shared() { SPIN_LIMIT } else { 0 };
        (0..looks).any(|look| {
            if look > 0 {
                spin_loop();
            }
            self.fabric.load(word).is_ok_and(&so)
        })
    }

    /// Waits on this rank's own memory until `node` is woken, and returns the kind of wake-up. If
    /// anything else ends the wait (the deadline, a dropped future, the loss of a rank), the node
    /// may still be woken, and must be marked as abandoned.
    pub(crate) async fn until_woken(
        &self,
        node: NodeId,
        deadline: Time,
        cancelled: Option<&Cancelled>,
    ) -> Result<Wait, Stopped> {
        let word = self.own(node.slot(), NodeWord::Wake)?;
        let how = |bits| woken(bits, node);
        let is_cancelled = || cancelled.is_some_and(Cancelled::is_set);
        // Acquire: pairs with the wake's release.
        let woken = self.fabric.wait_until(word, self.memory.deps(), |bits| how(bits).is_some() || is_cancelled());
        Err(Stopped::GaveUp(match before(&self.fabric, deadline, woken).await {
            Some(Ok(bits)) => match how(bits) {
                Some(how) => return Ok(how),
                None => Cancelled::REASON,
            },
            Some(Err(error)) => error.into(),
            None => LockError::TimedOut,
        }))
    }

    /// Waits on this rank's own memory until woken. If anything else ends the wait, the node is
    /// left abandoned and no rank depends on it.
    pub(crate) async fn wait_to_be_woken(
        &self,
        own: &Own<'_>,
        deadline: Time,
        cancelled: &Cancelled,
    ) -> Result<(), Stopped> {
        match self.wait_for_any_wake(own, deadline, cancelled).await? {
            Wait::Granted => Ok(()),
            how => Err(Stopped::Broken(LockError::corrupt("wake", how as u64))),
        }
    }

    /// Waits as [`Queue::wait_to_be_woken`] does, but for any wake, and returns its kind.
    pub(crate) async fn wait_for_any_wake(
        &self,
        own: &Own<'_>,
        deadline: Time,
        cancelled: &Cancelled,
    ) -> Result<Wait, Stopped> {
        let stopped = match self.until_woken(own.id, deadline, Some(cancelled)).await {
            Err(stopped @ Stopped::GaveUp(_)) => stopped,
            ended => return ended,
        };
        let word = self.own(own.id.slot(), NodeWord::Wake)?.as_remote();
        match self.fabric.atomic(&word, own.id.abandon()).await? {
            old if old == wake_word(Wait::Blocked, own.id) => Err(stopped),
            value => woken(value, own.id).ok_or_else(|| Stopped::Broken(LockError::corrupt("wake", value))),
        }
    }

    /// Pushes `own` onto a stack of waiting nodes, which is called `name` in errors. Returns the
    /// node below it. Only the owner, or the rank that finds it abandoned, reads its next word.
    pub(crate) async fn push(
        &self,
        stack: &RemoteWord<u64>,
        name: &'static str,
        own: &Own<'_>,
    ) -> Result<Option<NodeId>, Stopped> {
        let below = self.fabric.swap(stack, own.id.bits()).await?;
        let next = self.decode(name, below)?;
        if next.is_some() {
            self.fabric.store(self.own(own.id.slot(), NodeWord::Next)?, below)?;
        }
        Ok(next)
    }

    /// Returns the node below `node`, whose rank gave up while it was on a stack, and retires
    /// `node`.
    pub(crate) async fn pop_abandoned(&self, node: NodeId) -> Result<Option<NodeId>, Stopped> {
        let below = self.fabric.get_word(&self.node(node, NodeWord::Next)?).await?;
        let below = self.decode("next", below)?;
        self.retire(node).await?;
        Ok(below)
    }

    /// Starts the next turn of a node that is no longer in a queue, so that its owner may use it
    /// again.
    pub(crate) async fn retire(&self, node: NodeId) -> Result<(), Stopped> {
        let ready = node.ready();
        if node.rank() == self.me {
            self.fabric.store(self.own(node.slot(), NodeWord::Wake)?, ready)?;
        } else if self.recoverable {
            // An atomic is used because the next flush would report a failed put.
            self.fabric.swap(&self.node(node, NodeWord::Wake)?, ready).await?;
        } else {
            self.fabric.put_word(&self.node(node, NodeWord::Wake)?, ready).await?;
        }
        Ok(())
    }
}
