//! The names of queue nodes, and the meaning of their words.
//!
//! A node is two words of the waiter's own memory. `wake` is the state of the wait; `next` names
//! the waiter to be woken afterwards (in the stack or queue that the node is in).
//!
//! A node in no queue is blocked in its next turn and has no next, so it is ready for R2 or W1
//! without a store. The rank that takes a node out of its queue starts its next turn
//! ([`Queue::retire`]), for itself or for an owner that gave up. A writer that did not have to be
//! woken, and that leaves the queue as its last, uses the same turn again: no other rank knows its
//! node.
//!
//! [`NodeId::PASSED`] in the next word means that a successor is about to link itself to the node;
//! the node is not taken until it has done so.

use super::layout::NODES;
use crate::{LockError, Result};
use core::{fmt, num::NonZeroU32};
use rdma_fabric::{Amo, Rank};

/// The name of a node in half a lock word: `turn:4 | rank + 1:26 | slot:2`. Zero does not name a
/// node.
///
/// Turns repeat after 16. No decision depends on an id that may be that old: a node is in at most
/// one queue at a time, and a rank that compares a word with an id either has that node in the
/// queue, or finds in the same word everything that its next step depends on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(NonZeroU32);

const RANK: u32 = 2;
const TURN: u32 = 28;
/// The number of ranks that can be named.
const RANKS: u32 = (1 << (TURN - RANK)) - 1;
const _: () = assert!(NODES <= 1 << RANK);

impl NodeId {
    /// The mark that a writer that has left stores in a next word: a successor that links itself
    /// there is first in the queue.
    pub const PASSED: u64 = u64::MAX;

    /// The number of nodes that a lock can have.
    pub(crate) const MOST: u64 = RANKS as u64 * NODES as u64;

    /// Checks that the nodes of all `ranks` ranks have names.
    pub(super) fn check(ranks: usize) -> Result<()> {
        match u32::try_from(ranks) {
            Ok(ranks) if ranks <= RANKS => Ok(()),
            ranks => Err(LockError::TooManyRanks { ranks: ranks.unwrap_or(u32::MAX), most: RANKS }),
        }
    }

    /// Returns the name of a node by its rank, slot and turn.
    #[inline(always)]
    pub fn new(rank: Rank, slot: usize, turn: u16) -> Self {
        NodeId::of_bits((turn as u32) << TURN | (rank.number() + 1) << RANK | slot as u32)
    }

    /// Returns the node of a rank's stand-in ([`crate::lock::recovery`]): the rank's last node, in its
    /// first turn.
    pub(crate) fn stand_in(rank: Rank) -> Self {
        NodeId::new(rank, NODES - 1, 0)
    }

    /// Returns the node named by `bits` of a lock word.
    pub fn decode(word: &'static str, bits: u64, ranks: usize) -> Result<Option<Self>> {
        if bits == 0 {
            return Ok(None);
        }
        let corrupt = || LockError::corrupt(word, bits);
        let id = NodeId::of_bits(u32::try_from(bits).map_err(|_| corrupt())?);
        let owner = id.owner();
        if owner == 0 || owner as usize > ranks || id.slot() >= NODES {
            return Err(corrupt());
        }
        Ok(Some(id))
    }

    /// Restores a node from [`NodeId::bits`]. Callers exclude zero, which does not name a node: it
    /// gives the id whose bits are all ones.
    #[inline(always)]
    pub const fn of_bits(bits: u32) -> Self {
        match NonZeroU32::new(bits) {
            Some(bits) => NodeId(bits),
            None => NodeId(NonZeroU32::MAX),
        }
    }

    /// Returns the node's name, as stored in words.
    #[inline(always)]
    pub fn bits(self) -> u64 {
        self.0.get() as u64
    }

    fn owner(self) -> u32 {
        self.0.get() << (32 - TURN) >> (32 - TURN + RANK)
    }

    /// Returns the rank whose node it is.
    pub fn rank(self) -> Rank {
        Rank::new(self.owner() - 1)
    }

    /// Returns the node's index among the nodes of its rank.
    #[inline(always)]
    pub fn slot(self) -> usize {
        (self.0.get() & ((1 << RANK) - 1)) as usize
    }

    /// Returns the name of the node in its next turn.
    pub fn next_turn(self) -> NodeId {
        NodeId::of_bits(self.0.get().wrapping_add(1 << TURN))
    }

    /// Returns the wake word with which the node's next turn begins.
    pub(crate) fn ready(self) -> u64 {
        wake_word(Wait::Blocked, self.next_turn())
    }

    /// Returns the atomic that wakes the node's owner and leaves the node in the state `how`; it
    /// changes nothing if the owner gave up or the node is in another turn.
    #[inline]
    pub(crate) fn wake(self, how: Wait) -> Amo<u64> {
        Amo::CompareSwap { expected: wake_word(Wait::Blocked, self), new: wake_word(how, self) }
    }

    /// Returns the atomic that gives up the node's wait; it changes nothing if the owner was woken.
    #[inline]
    pub(crate) fn abandon(self) -> Amo<u64> {
        self.wake(Wait::Abandoned)
    }

    /// Returns the node's turn.
    pub fn turn(self) -> u16 {
        (self.0.get() >> TURN) as u16
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {} of {}, turn {}", self.slot(), self.rank(), self.turn())
    }
}

/// The state of a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// The node's rank waits, or may start to wait.
    Blocked = 0,
    /// The waiter was woken.
    Granted = 1,
    /// The waiter gave up; the rank that would wake it acts on its behalf.
    Abandoned = 2,
    /// The waiter was woken to check again: for locks in which a waiter may have to take over a
    /// task.
    Offered = 3,
}

/// Returns a wake word: `turn:16 | unused:40 | wait:8`. A wake names the turn, so that a late wake
/// changes nothing.
#[inline(always)]
pub fn wake_word(wait: Wait, node: NodeId) -> u64 {
    (node.turn() as u64) << 48 | wait as u64
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
        assert_eq!(NodeId::new(Rank::new(RANKS - 1), 3, 0xf).bits(), u64::from(u32::MAX));
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
