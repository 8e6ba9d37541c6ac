//! Contended writers: queueing up, waiting for the readers and for their turn (W2–W7), and
//! withdrawing.

use super::{
    Core, Scheme,
    duties::{Departing, Duties, Found},
    scheme::WRITER_INTERESTED,
    writer::{NotInside, WriteEntry, Writing},
};
use crate::{
    Result,
    detach::Cancelled,
    error::Stopped,
    queue::{NodeId, NodeWord, Own, Transition},
};
use rdma_fabric::{Amo, FabricError, Time};
use std::sync::Arc;

/// W2–W7 from `entry` on.
pub(super) async fn acquire<S: Scheme>(
    core: Arc<Core<S>>,
    node: NodeId,
    entry: WriteEntry,
    deadline: Time,
    cancelled: Cancelled,
) -> Result<Writing> {
    core.broken.answer(core.enter_from(node, entry, deadline, &cancelled).await)
}

/// W2–W7 of a try, from `entry` on.
pub(super) async fn try_acquire<S: Scheme>(
    core: Arc<Core<S>>,
    node: NodeId,
    entry: WriteEntry,
    cancelled: Cancelled,
) -> Result<Option<Writing>> {
    core.broken.answer(core.try_enter_from(node, entry, &cancelled).await)
}

impl<S: Scheme> Core<S> {
    /// Returns a node whose W2, `first`, was posted; posts it now if need be. Until W2 is posted
    /// nothing depends on this future, and once it is, the future completes.
    pub(super) async fn started(
        &self,
        entry: NotInside,
        deadline: Time,
        first: impl Fn(NodeId) -> Amo<u64>,
    ) -> Result<(NodeId, WriteEntry)> {
        if let Some(started) = entry {
            return Ok(*started);
        }
        let queued = self.queue.queue_up(deadline, Transition::writer_goes_on, &self.writers()?.tail, first).await;
        self.went_on();
        queued.map(|(node, posting)| (node, WriteEntry::Tail(posting)))
    }

    async fn enter_from(
        &self,
        node: NodeId,
        entry: WriteEntry,
        deadline: Time,
        cancelled: &Cancelled,
    ) -> Result<Writing, Stopped> {
        let own = self.adopt(node);
        let (first, entry) = match entry {
            WriteEntry::Tail(posting) => match posting.result().await? {
                0 => (Ok(true), WriteEntry::First),
                before => (self.link(node, before).await, WriteEntry::First),
            },
            WriteEntry::Link(posting) => (is_first(posting.result().await), WriteEntry::First),
            WriteEntry::Linked => (Ok(false), WriteEntry::First),
            entry => (Ok(true), entry),
        };
        let inside = match first {
            Ok(first) => first && self.contend(node, entry).await?,
            Err(stopped) => {
                // The node stays in a queue from which nobody will take it.
                own.keep();
                return Err(stopped);
            }
        };
        if !inside {
            self.await_turn(&own, deadline, cancelled).await?;
        }
        self.now_inside(own, !inside, cancelled).await
    }

    async fn try_enter_from(
        &self,
        node: NodeId,
        entry: WriteEntry,
        cancelled: &Cancelled,
    ) -> Result<Option<Writing>, Stopped> {
        let own = self.adopt(node);
        let inside = match entry {
            WriteEntry::Tail(posting) => {
                if posting.result().await? != 0 {
                    self.publish(Transition::writer_goes_back(node, 1))?;
                    own.give_back_fresh();
                    return Ok(None);
                }
                self.try_contend(node, WriteEntry::First).await?
            }
            entry => self.try_contend(node, entry).await?,
        };
        if !inside {
            // Readers are inside. Withdraw my interest, unless one of them has already let me in.
            if !S::HEAD_APART || self.fabric.fetch_and(&self.count, !WRITER_INTERESTED).await? & WRITER_INTERESTED != 0
            {
                let departing = Some(Departing { node, queue: Found::Nothing });
                self.do_duties(Duties { departing, ..Duties::default() }).await?;
                self.publish(Transition::writer_goes_back(node, 1))?;
                return Ok(None);
            }
            self.await_turn(&own, Time::MAX, cancelled).await?;
        }
        self.now_inside(own, !inside, cancelled).await.map(Some)
    }

    /// W7. A node that is given up stays in the queue; its waker will make it ready again.
    async fn await_turn(&self, own: &Own<'_>, deadline: Time, cancelled: &Cancelled) -> Result<(), Stopped> {
        let woken = self.wait_to_be_woken(own, deadline, cancelled).await;
        if let Err(Stopped::GaveUp(_)) = woken {
            self.publish(Transition::writer_goes_back(own.id, 1))?;
        }
        woken
    }

    async fn now_inside(&self, own: Own<'_>, woken: bool, cancelled: &Cancelled) -> Result<Writing, Stopped> {
        self.publish(Transition::writer_goes_on(own.id))?;
        let held = Writing::new(own.keep(), woken);
        if cancelled.is_set() {
            self.release_writer(held).await?;
            return Err(Stopped::GaveUp(Cancelled::REASON));
        }
        Ok(held)
    }

    /// W6: links behind a writer that may already be gone; returns true if it is, and `node` is
    /// therefore first.
    async fn link(&self, node: NodeId, before: u64) -> Result<bool, Stopped> {
        let Some(before) = self.decode("tail", before)? else { return Ok(true) };
        let linked = async { self.fabric.swap(&self.node(before, NodeWord::Next)?, node.bits()).await };
        match is_first(linked.await) {
            Err(Stopped::Broken(lost)) if self.is_gone(&lost) => {
                self.publish(Transition::writer_goes_back(node, 1))?;
                Err(Stopped::GaveUp(lost))
            }
            first => first,
        }
    }

    /// W3–W5 from `entry` on: being first in the queue, `node` registers, and enters if no reader
    /// is present.
    async fn contend(&self, node: NodeId, entry: WriteEntry) -> Result<bool, Stopped> {
        let interest = S::interest(node.bits());
        let count = match entry {
            _ if !S::HEAD_APART => {
                if self.found_free(node, entry).await? {
                    return Ok(true);
                }
                self.register(node).await?
            }
            WriteEntry::Tail(_) | WriteEntry::First | WriteEntry::Link(_) | WriteEntry::Linked => {
                self.register(node).await?
            }
            WriteEntry::Interest(posting) => posting.result().await?,
            WriteEntry::Alone => 0,
            WriteEntry::Enter(posting) => return Ok(posting.result().await? == interest),
        };
        Ok(S::is_free(count) && self.activate(count + interest).await?)
    }

    /// W3–W5 from `entry` on, for a writer that wants to enter immediately. Where a single
    /// compare-and-swap does this, it fails without having registered.
    async fn try_contend(&self, node: NodeId, entry: WriteEntry) -> Result<bool, Stopped> {
        if S::HEAD_APART { self.contend(node, entry).await } else { self.found_free(node, entry).await }
    }

    /// W3–W5 in one, from `entry` on.
    async fn found_free(&self, node: NodeId, entry: WriteEntry) -> Result<bool, Stopped> {
        let count = match entry {
            WriteEntry::Enter(posting) => posting.result().await?,
            _ => self.fabric.atomic(&self.count, self.enter_free(node)).await?,
        };
        Ok(count == 0)
    }

    /// W3, W4; X5, X6: makes `node` the head, visibly, and then shows interest. Returns the
    /// previous count word.
    ///
    /// No interest is shown before: only the first of the queue shows it, and a writer is no longer
    /// first once it has become active or has withdrawn.
    pub(super) async fn register(&self, node: NodeId) -> Result<u64, Stopped> {
        if S::HEAD_APART {
            self.fabric.put_word(&self.writers()?.head, node.bits()).await?;
            if !self.ordered_here {
                self.fabric.flush(self.home).await?;
            }
        }
        Ok(self.fabric.atomic(&self.count, Amo::Add(S::interest(node.bits()))).await?)
    }
}

/// Returns whether the writer that a node was linked behind is gone already, by what W6's swap found.
fn is_first(linked: Result<u64, FabricError>) -> Result<bool, Stopped> {
    Ok(linked? == NodeId::PASSED)
}
