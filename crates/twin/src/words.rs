//! The words of the locks, with the values that the locks themselves give them.

use crate::model::Violation;

/// A word of a lock, or the data that it protects.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Word {
    /// One of the home's words: for a lock that counts readers the count, the stack of readers, the
    /// tail and the head; for the fair lock its state and tail.
    Home(u8),
    /// A word of a node of machines: its count, and the stack of those that wait.
    Level {
        /// Which node.
        node: u8,
        /// Which word.
        word: u8,
    },
    /// Where a rank waits, in one of its two cells: two nodes of the lock, or, for a reader of
    /// [`crate::Lock::Aggregated`], one of the lock and one of its level.
    Wake(u8, u8),
    /// What that cell's queue node says of its neighbours.
    Next(u8, u8),
    /// A version number at some rank: how often it was written.
    Data,
}

/// Of the locks that count readers.
pub(crate) const COUNT: Word = Word::Home(0);
/// The stack of waiting readers.
pub(crate) const READERS: Word = Word::Home(1);
/// The last of the queue of writers.
pub(crate) const TAIL: Word = Word::Home(2);
/// The first of it.
pub(crate) const HEAD: Word = Word::Home(3);
/// Of the fair lock.
pub(crate) const STATE: Word = Word::Home(0);
/// Its queue's last.
pub(crate) const FAIR_TAIL: Word = Word::Home(1);
/// Those of a node that are inside or come, and whether the lock is held for them.
pub(crate) const LEVEL_COUNT: u8 = 0;
/// The stack of those that wait for that.
pub(crate) const LEVEL_WAITING: u8 = 1;

pub(crate) const WRITER_INTERESTED: u64 = 1;
pub(crate) const WRITER_ACTIVE: u64 = 2;
pub(crate) const READER: u64 = 4;
pub(crate) const READERS_WAIT: u64 = 1 << 31;
/// Of a level.
pub(crate) const HELD: u64 = 1;

/// Left in a next word: whoever comes is first.
pub(crate) const PASSED: u64 = u64::MAX;
/// Of a link: the successor writes (fair lock).
pub(crate) const WRITES: u64 = 1 << 32;
/// In a next word: its reader is inside (fair lock).
pub(crate) const INSIDE: u64 = 1 << 33;

const RANK: u32 = 2;
const TURN: u32 = 28;
/// Turns come again.
pub(crate) const TURNS: u8 = 16;

pub(crate) const BLOCKED: u64 = 0;
pub(crate) const GRANTED: u64 = 1;

/// A queue node as words name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Id(u32);

impl Id {
    pub(crate) fn new(rank: usize, slot: u8, turn: u8) -> Id {
        Id(u32::from(turn % TURNS) << TURN | (rank as u32 + 1) << RANK | u32::from(slot))
    }

    /// What `bits` name; `None` if that is no node of so many ranks with two nodes each.
    #[inline]
    pub(crate) fn of(bits: u64, ranks: usize) -> Option<Id> {
        let id = Id(u32::try_from(bits).ok()?);
        let owner = (id.0 & ((1 << TURN) - 1)) >> RANK;
        (owner >= 1 && owner as usize <= ranks && id.slot() < 2).then_some(id)
    }

    /// Returns what [`Id::of`] does, or `None` for a word that names nobody.
    ///
    /// # Errors
    /// Where the lock would call the word corrupt.
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

/// The turn that a wake word is in.
pub(crate) fn turn_of(wake: u64) -> u8 {
    (wake >> 48) as u8
}
