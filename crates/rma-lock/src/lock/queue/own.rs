//! This rank's queue nodes: their states, and the preparation of a node for its next turn.

use super::{
    Queue,
    layout::{self, NODES, NodeWord},
    node::{NodeId, Wait, wake_word},
};
use crate::{
    LockError, Result,
    error::Stopped,
    lock::detach::{Cancelled, before},
};
use core::{
    fmt,
    sync::atomic::{
        AtomicU8, AtomicU16,
        Ordering::{Acquire, Relaxed, Release},
    },
};
use rdma_fabric::{FabricError, LocalWord, Rank, RemoteAddr, RemoteWord, Time};
use std::sync::OnceLock;

/// The states of this rank's nodes.
///
/// The first node belongs to the [thread](super::Published::is_owner) that used the lock first,
/// which therefore takes it without a read-modify-write; any thread may release it.
pub(crate) struct Nodes {
    slots: [Slot; NODES],
    /// The wake and next words of each node, resolved when a node is first used: most readers never
    /// use one.
    words: OnceLock<Box<[LocalWord<u64>]>>,
}

struct Slot {
    /// [`CLEAN`], [`DIRTY`] or [`TAKEN`].
    state: AtomicU8,
    /// The node's turn when it was last taken. Only the thread that has taken it changes this.
    turn: AtomicU16,
}

/// The node is not in use, and its words are ready for the same turn.
const CLEAN: u8 = 0;
/// The node is not in use at this rank. Its words show whether it has left its queue, in its next
/// turn.
const DIRTY: u8 = 1;
/// The node is in use at this rank.
const TAKEN: u8 = 2;

impl Nodes {
    pub(crate) fn new() -> Self {
        let slot = || Slot { state: AtomicU8::new(CLEAN), turn: AtomicU16::new(0) };
        Nodes { slots: [(); NODES].map(|()| slot()), words: OnceLock::new() }
    }
}

impl fmt::Debug for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Slot { state, turn } in &self.slots {
            let state = match state.load(Relaxed) {
                CLEAN => "clean",
                DIRTY => "dirty",
                _ => "taken",
            };
            write!(f, ", node {state} in turn {}", turn.load(Relaxed))?;
        }
        Ok(())
    }
}

/// A node in use by this rank. Dropping it releases the node in the dirty state.
pub(crate) struct Own<'a> {
    slot: &'a Slot,
    pub(crate) id: NodeId,
}

impl Own<'_> {
    /// Keeps the node taken beyond this value's lifetime; [`Queue::adopt`] takes it over again.
    #[inline(always)]
    pub(crate) fn keep(self) -> NodeId {
        let id = self.id;
        core::mem::forget(self);
        id
    }

    /// Releases the node unchanged: no rank has woken it or linked to it.
    #[inline(always)]
    pub(crate) fn give_back_clean(self) {
        // Release: pairs with the acquire of the thread that takes it.
        self.slot.state.store(CLEAN, Release);
        core::mem::forget(self);
    }
}

impl Drop for Own<'_> {
    fn drop(&mut self) {
        // Release: pairs with the acquire of the thread that takes it.
        self.slot.state.store(DIRTY, Release);
    }
}

impl Queue {
    /// Takes this thread's usual node if it is ready to be waited on: blocked, no next (R2, W1).
    #[inline(always)]
    pub(crate) fn take_clean_node(&self) -> Option<Own<'_>> {
        let slot = &self.nodes.slots[0];
        // Acquire: pairs with the release by the thread that released it.
        if self.published.is_owner() && slot.state.load(Acquire) == CLEAN {
            slot.state.store(TAKEN, Relaxed);
            return Some(self.own_node(0));
        }
        None
    }

    #[inline(always)]
    fn own_node(&self, slot: usize) -> Own<'_> {
        let turn = self.nodes.slots[slot].turn.load(Relaxed);
        Own { slot: &self.nodes.slots[slot], id: NodeId::new(self.me, slot, turn) }
    }

    /// Takes a node that is ready to be waited on, if that does not require waiting.
    pub(crate) fn take_node_now(&self) -> Result<Option<Own<'_>>, FabricError> {
        if let Some(own) = self.take_clean_node() {
            return Ok(Some(own));
        }
        let Some(own) = self.take_any()? else { return Ok(None) };
        if self.fabric.load(self.own(own.id.slot(), NodeWord::Next)?)? == NodeId::PASSED {
            return Ok(None);
        }
        self.next_turn(own).map(Some)
    }

    /// Releases a node that was [kept](Own::keep); makes it ready for its next turn if that saves
    /// work in a later acquisition.
    pub(crate) fn give_back(&self, node: NodeId) {
        let own = self.adopt(node);
        let is = |part, bits| self.own(node.slot(), part).is_ok_and(|word| self.fabric.load(word) == Ok(bits));
        let ready = self.is_fast() && is(NodeWord::Wake, node.ready()) && !is(NodeWord::Next, NodeId::PASSED);
        if ready && self.renew(node).is_ok() {
            own.give_back_clean();
        }
    }

    /// Takes a node that is ready to be waited on, with all steps that this requires. No other rank
    /// depends on this future until it is complete.
    ///
    /// If the only remaining node waits for its successor to link itself, this waits as well.
    pub(crate) async fn take_node(&self, deadline: Time, cancelled: &Cancelled) -> Result<Own<'_>, Stopped> {
        match self.take_clean_node() {
            Some(own) => Ok(own),
            None => self.take_dirty_node(deadline, cancelled).await,
        }
    }

    #[cold]
    async fn take_dirty_node(&self, deadline: Time, cancelled: &Cancelled) -> Result<Own<'_>, Stopped> {
        let Some(own) = self.take_any().map_err(LockError::from).map_err(Stopped::GaveUp)? else {
            let error = LockError::TooManyWaiting { rank: self.me, nodes: NODES as u32 };
            return Err(Stopped::GaveUp(error));
        };
        let next = self.own(own.id.slot(), NodeWord::Next)?;
        if self.fabric.load(next)? == NodeId::PASSED {
            let linked =
                self.fabric.wait_until(next, self.memory.deps(), |bits| bits != NodeId::PASSED || cancelled.is_set());
            match before(&self.fabric, deadline, linked).await {
                None => return Err(Stopped::GaveUp(LockError::TimedOut)),
                Some(Ok(NodeId::PASSED)) => return Err(Stopped::GaveUp(Cancelled::REASON)),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(Stopped::GaveUp(error.into())),
            }
        }
        Ok(self.next_turn(own)?)
    }

    /// Takes a clean node; otherwise one that can begin its next turn; otherwise one whose next
    /// turn waits for a successor.
    fn take_any(&self) -> Result<Option<Own<'_>>, FabricError> {
        let (mut ready, mut passed) = (None, None);
        for (slot, Slot { state, .. }) in self.nodes.slots.iter().enumerate() {
            // Acquire: pairs with the release by the thread that released it.
            let before = if slot > 0 {
                state.swap(TAKEN, Acquire)
            } else if self.published.is_owner() {
                let before = state.load(Acquire);
                state.store(TAKEN, Relaxed);
                before
            } else {
                continue;
            };
            if before == TAKEN {
                continue;
            }
            let own = self.own_node(slot);
            if before == CLEAN {
                return Ok(Some(own));
            }
            let wake = self.fabric.load(self.own(slot, NodeWord::Wake)?)?;
            if wake == wake_word(Wait::Blocked, own.id) {
                // It was released before any operation was posted for it.
                return Ok(Some(own));
            }
            // Another rank may still have to act on it.
            if wake != wake_word(Wait::Blocked, own.id.next_turn()) {
                continue;
            }
            match self.fabric.load(self.own(slot, NodeWord::Next)?)? {
                NodeId::PASSED => passed = Some(own),
                _ => {
                    ready = Some(own);
                    break;
                }
            }
        }
        Ok(ready.or(passed))
    }

    /// Starts the next turn of a dirty node, if its wake word is already in that turn.
    fn next_turn<'a>(&self, mut own: Own<'a>) -> Result<Own<'a>, FabricError> {
        let id = own.id.next_turn();
        let slot = id.slot();
        if self.fabric.load(self.own(slot, NodeWord::Wake)?)? == wake_word(Wait::Blocked, id) {
            // It contains the last user's successor, or the reader below.
            if self.fabric.load(self.own(slot, NodeWord::Next)?)? != 0 {
                self.fabric.store(self.own(slot, NodeWord::Next)?, 0)?;
            }
            own.slot.turn.store(id.turn(), Relaxed);
            own.id = id;
        }
        Ok(own)
    }

    /// Starts the next turn of this rank's node, which is in no queue and no longer known to other
    /// ranks, so that it may be given back clean.
    #[inline]
    pub(crate) fn renew(&self, node: NodeId) -> Result<(), FabricError> {
        let (id, slot) = (node.next_turn(), node.slot());
        self.fabric.store_unwaited(self.own(slot, NodeWord::Next)?, 0)?;
        self.fabric.store_unwaited(self.own(slot, NodeWord::Wake)?, wake_word(Wait::Blocked, id))?;
        self.nodes.slots[slot].turn.store(id.turn(), Relaxed);
        Ok(())
    }

    /// Reserves this rank's last node for its stand-in.
    pub(crate) fn reserve_last_node(&self) {
        self.nodes.slots[NODES - 1].state.store(TAKEN, Relaxed);
    }

    /// Takes over a node that was [kept](Own::keep).
    #[inline(always)]
    pub(crate) fn adopt(&self, id: NodeId) -> Own<'_> {
        Own { slot: &self.nodes.slots[id.slot()], id }
    }

    /// Returns a word of one of this rank's nodes.
    #[inline(always)]
    pub(crate) fn own(&self, slot: usize, part: NodeWord) -> Result<&LocalWord<u64>, FabricError> {
        let words = match self.nodes.words.get() {
            Some(words) => words,
            None => self.resolve_own()?,
        };
        Ok(&words[layout::index(slot, part)])
    }

    #[cold]
    fn resolve_own(&self) -> Result<&[LocalWord<u64>], FabricError> {
        let words = self.node_words(self.me, |addr| self.fabric.local_word(addr))?;
        Ok(self.nodes.words.get_or_init(|| words))
    }

    /// Resolves the words of all of a rank's nodes; they are indexed by [`layout::index`].
    pub(super) fn node_words<W>(
        &self,
        rank: Rank,
        resolve: impl Fn(RemoteAddr) -> Result<W, FabricError>,
    ) -> Result<Box<[W]>, FabricError> {
        let word = |slot, part| resolve(self.memory.at(rank, layout::node(slot, part))?);
        let mut words = Vec::with_capacity(2 * NODES);
        for slot in 0..NODES {
            words.extend([word(slot, NodeWord::Wake)?, word(slot, NodeWord::Next)?]);
        }
        Ok(words.into())
    }

    /// Returns a word of any rank's node.
    pub(crate) fn node(&self, id: NodeId, part: NodeWord) -> Result<RemoteWord<u64>, FabricError> {
        self.fabric.remote_word(self.memory.at(id.rank(), layout::node(id.slot(), part))?)
    }

    pub(crate) fn decode(&self, word: &'static str, bits: u64) -> Result<Option<NodeId>, Stopped> {
        NodeId::decode(word, bits, self.fabric.ranks()).map_err(Stopped::Broken)
    }
}
