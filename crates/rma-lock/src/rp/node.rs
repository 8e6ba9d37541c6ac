//! Queue nodes: where a rank waits.
//!
//! A node is two words of the waiter's own memory. `wake` says how the wait stands; `next` names the waiter to be
//! woken afterwards (of the stack or queue the node is in).
//!
//! A node is free when its wake word is idle and its next word is not [`NodeId::PASSED`]: as long as that mark stands,
//! a successor is still on its way to it.

use super::{
    RpLock,
    layout::{self, NODES, Part},
};
use crate::{LockError, Result};
use core::{
    fmt,
    sync::atomic::{AtomicU16, AtomicU32, Ordering},
};
use rdma_fabric::{Deps, Fabric, LocalWord, Rank, RemoteWord};
use std::sync::OnceLock;

/// Names a node in a lock word: `turn:16 | rank + 1:32 | slot:16`. Zero names none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct NodeId(u64);

impl NodeId {
    /// Left in a next word by a writer that is gone: whoever links itself here is first in the queue.
    pub(super) const PASSED: u64 = u64::MAX;

    fn new(rank: Rank, slot: usize, turn: u16) -> Self {
        NodeId((turn as u64) << 48 | (rank.number() as u64 + 1) << 16 | slot as u64)
    }

    /// The node that `bits` of a lock word name.
    pub(super) fn decode(word: &'static str, bits: u64, ranks: usize) -> Result<Option<Self>> {
        if bits == 0 {
            return Ok(None);
        }
        let id = NodeId(bits);
        let owner = (bits >> 16) as u32;
        if owner == 0 || owner as usize > ranks || id.slot() >= NODES {
            return Err(LockError::Corrupt { word, value: bits });
        }
        Ok(Some(id))
    }

    pub(super) fn bits(self) -> u64 {
        self.0
    }

    pub(super) fn rank(self) -> Rank {
        Rank::new((self.0 >> 16) as u32 - 1)
    }

    pub(super) fn slot(self) -> usize {
        (self.0 & 0xffff) as usize
    }

    fn turn(self) -> u16 {
        (self.0 >> 48) as u16
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {} of {}, turn {}", self.slot(), self.rank(), self.turn())
    }
}

/// How a wait stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wait {
    /// The node is in no queue.
    Idle = 0,
    /// Its rank waits.
    Blocked = 1,
    /// It was woken.
    Granted = 2,
    /// Its rank gave up; whoever would wake it acts for it.
    Abandoned = 3,
}

/// A wake word: `turn:16 | epoch:16 | unused:24 | wait:8`. A wake names turn and epoch, so that one that comes too
/// late for either changes nothing.
pub(super) fn wake_word(wait: Wait, epoch: u16, node: NodeId) -> u64 {
    (node.turn() as u64) << 48 | (epoch as u64) << 32 | wait as u64
}

/// Which of this rank's nodes are in use by this rank.
pub(super) struct Nodes<F: Fabric> {
    /// Bit i: node i is taken.
    taken: AtomicU32,
    /// How often each node was taken: the next turn.
    turns: [AtomicU16; NODES],
    /// Wake and next of each node, resolved when one is first used: most readers never use any.
    words: OnceLock<Box<[LocalWord<F, u64>]>>,
}

impl<F: Fabric> Nodes<F> {
    pub(super) fn new() -> Self {
        Nodes { taken: AtomicU32::new(0), turns: [const { AtomicU16::new(0) }; NODES], words: OnceLock::new() }
    }
}

/// A node in use by this rank. Dropping it gives the node back; the words say when it can be used again.
pub(super) struct Own<'a> {
    taken: &'a AtomicU32,
    pub(super) id: NodeId,
}

impl Own<'_> {
    /// Keep the node taken beyond this value's life; [`RpLock::adopt`] takes it up again.
    pub(super) fn keep(self) -> NodeId {
        let id = self.id;
        core::mem::forget(self);
        id
    }
}

impl Drop for Own<'_> {
    fn drop(&mut self) {
        self.taken.fetch_and(!(1 << self.id.slot()), Ordering::Release);
    }
}

impl<F: Fabric> RpLock<F> {
    /// Take a free node and make it ready to wait on: blocked, no next (R2, W1). Must precede the
    /// atomic that puts the node into a queue; own-memory stores are releases.
    pub(super) async fn take_node(&self) -> Result<Own<'_>> {
        let own = self.take_any().await?;
        self.fabric.store(self.own(own.id.slot(), Part::Next)?, 0)?;
        let blocked = wake_word(Wait::Blocked, self.epoch, own.id);
        self.fabric.store(self.own(own.id.slot(), Part::Wake)?, blocked)?;
        Ok(own)
    }

    async fn take_any(&self) -> Result<Own<'_>> {
        let rank = self.fabric.rank();
        let mut passed = None;
        for slot in 0..NODES {
            let bit = 1 << slot;
            if self.nodes.taken.fetch_or(bit, Ordering::Acquire) & bit != 0 {
                continue;
            }
            let own = Own { taken: &self.nodes.taken, id: NodeId::new(rank, slot, 0) };
            // Only after these loads is the node mine alone: somebody may still have to act on it.
            if self.fabric.load(self.own(slot, Part::Wake)?)? & 0xff != Wait::Idle as u64 {
                continue;
            }
            if self.fabric.load(self.own(slot, Part::Next)?)? == NodeId::PASSED {
                passed = Some(own);
                continue;
            }
            return Ok(self.next_turn(own));
        }
        let Some(own) = passed else { return Err(LockError::TooManyWaiting { rank, nodes: NODES }) };
        let next = self.own(own.id.slot(), Part::Next)?;
        self.fabric.wait_until(next, Deps::All, |bits| bits != NodeId::PASSED).await?;
        Ok(self.next_turn(own))
    }

    fn next_turn<'a>(&self, mut own: Own<'a>) -> Own<'a> {
        let turn = self.nodes.turns[own.id.slot()].fetch_add(1, Ordering::Relaxed);
        own.id = NodeId::new(own.id.rank(), own.id.slot(), turn);
        own
    }

    /// Take up a node that was [kept](Own::keep).
    pub(super) fn adopt(&self, id: NodeId) -> Own<'_> {
        Own { taken: &self.nodes.taken, id }
    }

    /// A word of one of my nodes.
    pub(super) fn own(&self, slot: usize, part: Part) -> Result<&LocalWord<F, u64>> {
        let words = match self.nodes.words.get() {
            Some(words) => words,
            None => {
                let word =
                    |slot, part| self.fabric.local_word(layout::node(self.fabric.rank(), self.key(), slot, part));
                let mut words = Vec::with_capacity(2 * NODES);
                for slot in 0..NODES {
                    words.extend([word(slot, Part::Wake)?, word(slot, Part::Next)?]);
                }
                self.nodes.words.get_or_init(|| words.into())
            }
        };
        Ok(&words[2 * slot + usize::from(matches!(part, Part::Next))])
    }

    /// A word of anybody's node.
    pub(super) fn node(&self, id: NodeId, part: Part) -> Result<RemoteWord<F, u64>> {
        Ok(self.fabric.remote_word(layout::node(id.rank(), self.key(), id.slot(), part))?)
    }

    pub(super) fn decode(&self, word: &'static str, bits: u64) -> Result<Option<NodeId>> {
        NodeId::decode(word, bits, self.fabric.ranks())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_survive_a_lock_word_and_garbage_does_not() {
        let id = NodeId::new(Rank::new(663_551), 2, 0xfffe);
        assert_eq!(NodeId::decode("tail", id.bits(), 663_552).unwrap(), Some(id));
        assert_eq!((id.rank(), id.slot(), id.turn()), (Rank::new(663_551), 2, 0xfffe));
        assert_eq!(NodeId::decode("tail", 0, 4).unwrap(), None);
        for bits in [NodeId::PASSED, 1, 5 << 16, id.bits(), 1 << 16 | 3] {
            assert!(NodeId::decode("tail", bits, 4).is_err(), "{bits:#x}");
        }
    }
}
