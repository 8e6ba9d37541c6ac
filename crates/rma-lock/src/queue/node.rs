//! Queue nodes: where a rank waits.
//!
//! A node is two words of the waiter's own memory. `wake` says how the wait stands; `next` names the waiter to be
//! woken afterwards (of the stack or queue the node is in).
//!
//! A node in no queue is blocked in its next turn and has no next, ready for R2 or W1 without a store. Who takes a node out of
//! its queue begins its next turn ([`Queue::retire`]), for itself or for an owner who gave up. A writer that nobody had to wake and that leaves
//! the queue as its last takes the same turn again: nobody knows it of its node.
//!
//! [`NodeId::PASSED`] in the next word means that a successor is still on its way to it; the node is not taken before.

use super::{
    Queue,
    layout::{self, NODES, Part},
    publish::Lane,
};
use crate::{LockError, Result, error::Trouble, owed::Quit};
use core::{
    fmt,
    sync::atomic::{
        AtomicU8, AtomicU16,
        Ordering::{Acquire, Relaxed, Release},
    },
};
use rdma_fabric::{FabricError, LocalWord, Rank, RemoteWord, Time};
use std::sync::OnceLock;

/// Names a node in a lock word, of which it needs half: `turn:4 | rank + 1:26 | slot:2`. Zero names none.
///
/// A turn comes again after 16. Nothing is decided by an id that may be so old: a node is in a queue once at a time, and whoever compares a
/// word with an id either has that node in the queue, or finds in the same word all that what it does depends on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct NodeId(u32);

const RANK: u32 = 2;
const TURN: u32 = 28;
/// Ranks that can be named.
const RANKS: u32 = (1 << (TURN - RANK)) - 1;
const _: () = assert!(NODES <= 1 << RANK);

impl NodeId {
    /// Left in a next word by a writer that is gone: whoever links itself here is first in the queue.
    pub(crate) const PASSED: u64 = u64::MAX;

    /// Nodes that a lock can have.
    pub(crate) const MOST: u64 = RANKS as u64 * NODES as u64;

    /// Whether all of `ranks` ranks' nodes have names.
    pub(super) fn check(ranks: usize) -> Result<()> {
        match u32::try_from(ranks) {
            Ok(ranks) if ranks <= RANKS => Ok(()),
            ranks => Err(LockError::TooManyRanks { ranks: ranks.unwrap_or(u32::MAX), most: RANKS }),
        }
    }

    #[inline(always)]
    fn new(rank: Rank, slot: usize, turn: u16) -> Self {
        NodeId((turn as u32) << TURN | (rank.number() + 1) << RANK | slot as u32)
    }

    /// The node by which a rank stands in for itself ([`crate::recovery`]): its last, in its first turn.
    pub(crate) fn stand_in(rank: Rank) -> Self {
        NodeId::new(rank, NODES - 1, 0)
    }

    /// The node that `bits` of a lock word name.
    pub(crate) fn decode(word: &'static str, bits: u64, ranks: usize) -> Result<Option<Self>> {
        if bits == 0 {
            return Ok(None);
        }
        let corrupt = || LockError::corrupt(word, bits);
        let id = NodeId(u32::try_from(bits).map_err(|_| corrupt())?);
        let owner = id.owner();
        if owner == 0 || owner as usize > ranks || id.slot() >= NODES {
            return Err(corrupt());
        }
        Ok(Some(id))
    }

    /// From [`NodeId::bits`].
    #[inline(always)]
    pub(crate) fn of_bits(bits: u32) -> Self {
        NodeId(bits)
    }

    #[inline(always)]
    pub(crate) fn bits(self) -> u64 {
        u64::from(self.0)
    }

    fn owner(self) -> u32 {
        self.0 << (32 - TURN) >> (32 - TURN + RANK)
    }

    pub(crate) fn rank(self) -> Rank {
        Rank::new(self.owner() - 1)
    }

    #[inline(always)]
    pub(crate) fn slot(self) -> usize {
        (self.0 & ((1 << RANK) - 1)) as usize
    }

    /// The same node the next time it is used.
    pub(crate) fn next_turn(self) -> NodeId {
        NodeId(self.0.wrapping_add(1 << TURN))
    }

    fn turn(self) -> u16 {
        (self.0 >> TURN) as u16
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {} of {}, turn {}", self.slot(), self.rank(), self.turn())
    }
}

/// How a wait stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// The node's rank waits, or may begin to.
    Blocked = 0,
    /// It was woken.
    Granted = 1,
    /// Its rank gave up; whoever would wake it acts for it.
    Abandoned = 2,
    /// It was woken to look again: for locks in which a waiter may have to take something over.
    Offered = 3,
}

/// A wake word: `turn:16 | unused:40 | wait:8`. A wake names the turn, so that one that comes too late for it changes nothing.
pub(crate) fn wake_word(wait: Wait, node: NodeId) -> u64 {
    (node.turn() as u64) << 48 | wait as u64
}

/// Which of this rank's nodes are in use by this rank.
///
/// The first belongs to the [thread](super::Published::is_owner) that used the lock first, which therefore takes it without a
/// read-modify-write; any thread may give it back.
pub(crate) struct Nodes {
    slots: [Slot; NODES],
    /// Wake and next of each node, resolved when one is first used: most readers never use any.
    words: OnceLock<Box<[LocalWord<u64>]>>,
}

struct Slot {
    /// [`FRESH`], [`WORN`] or [`TAKEN`].
    state: AtomicU8,
    /// The node's turn when it was last taken. Changed by who has taken it.
    turn: AtomicU16,
}

/// Nobody uses the node, and its words are ready for the same turn.
const FRESH: u8 = 0;
/// Nobody of this rank uses the node. Its words tell whether it is out of its queue, in its next turn.
const WORN: u8 = 1;
/// Somebody of this rank uses the node.
const TAKEN: u8 = 2;

impl Nodes {
    pub(crate) fn new() -> Self {
        let slot = || Slot { state: AtomicU8::new(FRESH), turn: AtomicU16::new(0) };
        Nodes { slots: [(); NODES].map(|()| slot()), words: OnceLock::new() }
    }
}

impl fmt::Debug for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Slot { state, turn } in &self.slots {
            let state = match state.load(Relaxed) {
                FRESH => "fresh",
                WORN => "worn",
                _ => "taken",
            };
            write!(f, ", node {state} in turn {}", turn.load(Relaxed))?;
        }
        Ok(())
    }
}

/// A node in use by this rank. Dropping it gives the node back, worn.
pub(crate) struct Own<'a> {
    slot: &'a Slot,
    pub(crate) id: NodeId,
}

impl Own<'_> {
    /// Keep the node taken beyond this value's life; [`Queue::adopt`] takes it up again.
    #[inline(always)]
    pub(crate) fn keep(self) -> NodeId {
        let id = self.id;
        core::mem::forget(self);
        id
    }

    /// Give it back as it was: nobody woke it or linked to it.
    #[inline(always)]
    pub(crate) fn give_back_fresh(self) {
        // Release: pairs with the acquire of who takes it.
        self.slot.state.store(FRESH, Release);
        core::mem::forget(self);
    }
}

impl Drop for Own<'_> {
    fn drop(&mut self) {
        // Release: pairs with the acquire of who takes it.
        self.slot.state.store(WORN, Release);
    }
}

impl Queue {
    /// Take a node that is ready to wait on: blocked, no next (R2, W1).
    #[inline(always)]
    pub(crate) fn take_fresh_node(&self, lane: Lane) -> Option<Own<'_>> {
        let slot = &self.nodes.slots[0];
        // Acquire: pairs with the release of who gave it back.
        if lane.is_first() && slot.state.load(Acquire) == FRESH {
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

    /// The same, whatever must be done for it. Until it is done nothing is owed.
    ///
    /// If the only node left waits for a successor on its way, so does this.
    #[cold]
    pub(crate) async fn take_node(&self, deadline: Time, quit: &Quit) -> Result<Own<'_>, Trouble> {
        let Some(own) = self.take_any().map_err(LockError::from).map_err(Trouble::GaveUp)? else {
            let error = LockError::TooManyWaiting { rank: self.me, nodes: NODES as u32 };
            return Err(Trouble::GaveUp(error));
        };
        let next = self.own(own.id.slot(), Part::Next)?;
        if self.fabric.load(next)? == NodeId::PASSED {
            let linked =
                self.fabric.wait_until(next, self.memory.deps(), |bits| bits != NodeId::PASSED || quit.is_set());
            let linked = if deadline == Time::MAX {
                linked.await
            } else {
                match self.fabric.before(deadline, linked).await {
                    Some(linked) => linked,
                    None => return Err(Trouble::GaveUp(LockError::TimedOut)),
                }
            };
            match linked {
                Ok(NodeId::PASSED) => return Err(Trouble::GaveUp(Quit::REASON)),
                Ok(_) => {}
                Err(error) => return Err(Trouble::GaveUp(error.into())),
            }
        }
        Ok(self.next_turn(own)?)
    }

    /// A fresh node; else one that can begin its next turn; else one whose next turn awaits a successor.
    fn take_any(&self) -> Result<Option<Own<'_>>, FabricError> {
        let (mut ready, mut passed) = (None, None);
        for (slot, Slot { state, .. }) in self.nodes.slots.iter().enumerate() {
            // Acquire: pairs with the release of who gave it back.
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
            if before == FRESH {
                return Ok(Some(own));
            }
            let wake = self.fabric.load(self.own(slot, Part::Wake)?)?;
            if wake == wake_word(Wait::Blocked, own.id) {
                // It was given back before anything was posted for it.
                return Ok(Some(own));
            }
            // Somebody may still have to act on it.
            if wake != wake_word(Wait::Blocked, own.id.next_turn()) {
                continue;
            }
            match self.fabric.load(self.own(slot, Part::Next)?)? {
                NodeId::PASSED => passed = Some(own),
                _ => {
                    ready = Some(own);
                    break;
                }
            }
        }
        Ok(ready.or(passed))
    }

    /// Begin the next turn of a worn node, which its wake word has begun.
    fn next_turn<'a>(&self, mut own: Own<'a>) -> Result<Own<'a>, FabricError> {
        let id = own.id.next_turn();
        let slot = id.slot();
        if self.fabric.load(self.own(slot, Part::Wake)?)? == wake_word(Wait::Blocked, id) {
            // The last user's successor, or reader below.
            if self.fabric.load(self.own(slot, Part::Next)?)? != 0 {
                self.fabric.store(self.own(slot, Part::Next)?, 0)?;
            }
            own.slot.turn.store(id.turn(), Relaxed);
            own.id = id;
        }
        Ok(own)
    }

    /// Leave this rank's last node to its stand-in.
    pub(crate) fn reserve_last_node(&self) {
        self.nodes.slots[NODES - 1].state.store(TAKEN, Relaxed);
    }

    /// Take up a node that was [kept](Own::keep).
    #[inline(always)]
    pub(crate) fn adopt(&self, id: NodeId) -> Own<'_> {
        Own { slot: &self.nodes.slots[id.slot()], id }
    }

    /// A word of one of my nodes.
    #[inline(always)]
    pub(crate) fn own(&self, slot: usize, part: Part) -> Result<&LocalWord<u64>, FabricError> {
        let words = match self.nodes.words.get() {
            Some(words) => words,
            None => self.resolve_own()?,
        };
        Ok(&words[2 * slot + usize::from(matches!(part, Part::Next))])
    }

    #[cold]
    fn resolve_own(&self) -> Result<&[LocalWord<u64>], FabricError> {
        let word = |slot, part| self.fabric.local_word(self.memory.at(self.me, layout::node(slot, part))?);
        let mut words = Vec::with_capacity(2 * NODES);
        for slot in 0..NODES {
            words.extend([word(slot, Part::Wake)?, word(slot, Part::Next)?]);
        }
        Ok(self.nodes.words.get_or_init(|| words.into()))
    }

    /// A word of anybody's node.
    pub(crate) fn node(&self, id: NodeId, part: Part) -> Result<RemoteWord<u64>, FabricError> {
        self.fabric.remote_word(self.memory.at(id.rank(), layout::node(id.slot(), part))?)
    }

    pub(crate) fn decode(&self, word: &'static str, bits: u64) -> Result<Option<NodeId>, Trouble> {
        NodeId::decode(word, bits, self.fabric.ranks()).map_err(Trouble::Broken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_survive_a_lock_word_and_garbage_does_not() {
        let id = NodeId::new(Rank::new(663_551), 2, 0xe);
        assert_eq!(NodeId::decode("tail", id.bits(), 663_552).unwrap(), Some(id));
        assert_eq!((id.rank(), id.slot(), id.turn()), (Rank::new(663_551), 2, 0xe));
        assert_eq!(id.next_turn().next_turn(), NodeId::new(id.rank(), 2, 0));
        assert_eq!(NodeId::new(Rank::new(RANKS - 1), 3, 0xf).0, u32::MAX);
        assert_eq!(NodeId::decode("tail", 0, 4).unwrap(), None);
        for bits in [NodeId::PASSED, 1, 5 << RANK, id.bits(), 1 << 32 | 1 << RANK] {
            assert!(NodeId::decode("tail", bits, 4).is_err(), "{bits:#x}");
        }
    }

    #[test]
    fn ranks_without_a_name_are_told() {
        assert_eq!(NodeId::check(663_552), Ok(()));
        assert_eq!(NodeId::check(RANKS as usize), Ok(()));
        assert_eq!(NodeId::check(RANKS as usize + 1), Err(LockError::TooManyRanks { ranks: RANKS + 1, most: RANKS }));
    }
}
