//! The words of the locks, with the values that the locks themselves use.

use crate::model::Violation;

/// A word of a lock, or the data that it protects.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Word {
    /// One of the home's words: for a lock that counts readers, the count, the stack of readers,
    /// the tail and the head; for the fair lock, its state and tail.
    Home(u8),
    /// A word of a node of the machine: its count, or the stack of waiting ranks.
    Level {
        /// The node.
        node: u8,
        /// The word.
        word: u8,
    },
    /// The word on which a rank waits, in one of its two cells: two nodes of the lock or, for a
    /// reader of [`crate::Lock::Aggregated`], one of the lock and one of its level.
    Wake(u8, u8),
    /// The link of a cell's queue node to its neighbours.
    Next(u8, u8),
    /// A version number at some rank: the number of writes to the data.
    Data,
}

/// The count of a lock that counts readers.
pub(crate) const COUNT: Word = Word::Home(0);
/// The stack of waiting readers.
pub(crate) const READERS: Word = Word::Home(1);
/// The first node of the queue of writers.
pub(crate) const HEAD: Word = Word::Home(3);
/// The number of a node's ranks that are inside or about to enter, and whether the lock is held for
/// them.
pub(crate) const LEVEL_COUNT: u8 = 0;
/// The stack of a node's ranks that wait until the lock is held for them.
pub(crate) const LEVEL_WAITING: u8 = 1;

pub(crate) const WRITER_INTERESTED: u64 = 1;
pub(crate) const WRITER_ACTIVE: u64 = 2;
pub(crate) const READER: u64 = 4;
pub(crate) const READERS_WAIT: u64 = 1 << 31;
/// In a level's count: the lock is held for all that are counted.
pub(crate) const HELD: u64 = 1;

/// The mark in a next word: a rank that links itself there is the first.
pub(crate) const PASSED: u64 = u64::MAX;
/// In a link: the successor writes (fair lock).
pub(crate) const WRITES: u64 = 1 << 32;
/// In a next word: the node's reader is inside (fair lock).
pub(crate) const INSIDE: u64 = 1 << 33;

const RANK: u32 = 2;
const TURN: u32 = 28;
/// The number of turns after which turn numbers repeat.
pub(crate) const TURNS: u8 = 16;

pub(crate) const BLOCKED: u64 = 0;
pub(crate) const GRANTED: u64 = 1;

/// The name of a queue node in a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Id(u32);

impl Id {
    pub(crate) fn new(rank: usize, slot: u8, turn: u8) -> Id {
        Id(u32::from(turn % TURNS) << TURN | (rank as u32 + 1) << RANK | u32::from(slot))
    }

    /// Returns the node identified by `bits`; `None` if they do not identify a node of this number
    /// of ranks with two nodes each.
    #[inline]
    pub(crate) fn of(bits: u64, ranks: usize) -> Option<Id> {
        let id = Id(u32::try_from(bits).ok()?);
        let owner = (id.0 & ((1 << TURN) - 1)) >> RANK;
        (owner >= 1 && owner as usize <= ranks && id.slot() < 2).then_some(id)
    }

    /// Returns the node identified by `bits` like [`Id::of`]; `None` for a word that is 0.
    ///
    /// # Errors
    /// If the lock would report the word as corrupt.
    pub(crate) fn decode(what: &'static str, bits: u64, ranks: usize) -> Result<Option<Id>, Violation> {
        match (bits, Id::of(bits, ranks)) {
            (0, _) => Ok(None),
            (_, Some(id)) => Ok(Some(id)),
            (bits, None) => Err(Violation::Corrupt { what, bits }),
        }
    }

    pub(crate) fn bits(self) -> u64 {
        u64::from(self.0)
    }

    pub(crate) fn rank(self) -> usize {
        ((self.0 & ((1 << TURN) - 1)) >> RANK) as usize - 1
    }

    pub(crate) fn slot(self) -> u8 {
        (self.0 & ((1 << RANK) - 1)) as u8
    }

    pub(crate) fn turn(self) -> u8 {
        (self.0 >> TURN) as u8
    }
}

pub(crate) fn wake_word(wait: u64, turn: u8) -> u64 {
    u64::from(turn % TURNS) << 48 | wait
}

/// Returns the turn of a wake word.
pub(crate) fn turn_of(wake: u64) -> u8 {
    (wake >> 48) as u8
}
