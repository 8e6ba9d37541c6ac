//! The state of a model: the words, and the position of each rank.

use crate::{level::AtLevel, walk::Walk, words::Word};

/// The largest number of ranks in a model.
pub const MOST_RANKS: usize = 5;

/// The position of a rank: its next step.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Pc {
    End,
    /// Taking a queue node.
    Take(Taking),
    /// Inside, about to read the data.
    Look,
    /// Inside, about to put the next version.
    Write,
    /// Executing the lock's steps.
    Walk,
    Level(AtLevel),
}

impl Pc {
    pub(crate) fn number(self) -> u64 {
        match self {
            Pc::End => 0,
            Pc::Take(taking) => 1 | (taking as u64) << 3,
            Pc::Look => 2,
            Pc::Write => 3,
            Pc::Walk => 4,
            Pc::Level(at) => 6 | (at as u64) << 3,
        }
    }
}

/// The steps that renew a previously used node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Taking {
    /// Checking whether a successor is still about to link itself to the node.
    Load,
    Clear,
    /// Renewing the node too late, when it is already in its queue.
    ClearLate,
}

/// The step for which the node is taken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Goal {
    /// The next step of the lock.
    Walk,
    N8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Slot {
    Clean,
    Taken,
    Dirty,
}

/// A queue node's words.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Cell {
    pub(crate) wake: u64,
    pub(crate) next: u64,
}

/// The memory of one rank: its local variables, and its own words.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rank {
    /// The words of its queue nodes: two of the lock or, for a reader of a lock that knows which
    /// ranks share a node, one of the lock and one of the level.
    pub(crate) cells: [Cell; 2],
    pub(crate) slots: [Slot; 2],
    /// The turn in which each node was last taken.
    pub(crate) turns: [u8; 2],
    pub(crate) pc: Pc,
    pub(crate) goal: Goal,
    /// The current acquisition or release.
    pub(crate) walk: Walk,
    /// The cell in use.
    pub(crate) cell: u8,
    /// The number of remaining rounds, including the current one.
    pub(crate) rounds: u8,
    /// Whether another rank woke this one.
    pub(crate) woken: bool,
    /// Whether it still has to clear its node's next word ([`Taking::ClearLate`]).
    pub(crate) late: bool,
    /// A link or node that it has stored; 0 if none.
    pub(crate) link: u64,
    /// A node to be woken; 0 if none.
    pub(crate) other: u64,
    /// If writers may barge: the count word with which the rank entered, and the one that its last
    /// release left.
    pub(crate) word: u64,
    pub(crate) left: u64,
    /// The rank's put to the head that has not arrived yet; 0 if none.
    pub(crate) head_put: u64,
    /// The rank's put to the data that has not arrived yet; 0 if none.
    pub(crate) data_put: u8,
}

/// The state of a model, as plain data: a copy is independent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct State {
    /// The words of the home.
    pub(crate) home: [u64; 4],
    /// The two words of each node of the machine.
    pub(crate) level: [[u64; 2]; 2],
    pub(crate) data: u8,
    /// The number of writes to the data so far, for the checks; no rank reads it.
    pub(crate) writes: u8,
    pub(crate) ranks: [Rank; MOST_RANKS],
}

impl State {
    /// Returns the value of a word.
    #[inline]
    pub fn read(&self, word: Word) -> u64 {
        match word {
            Word::Home(word) => self.home[word as usize],
            Word::Level { node, word } => self.level[node as usize][word as usize],
            Word::Wake(rank, cell) => self.ranks[rank as usize].cells[cell as usize].wake,
            Word::Next(rank, cell) => self.ranks[rank as usize].cells[cell as usize].next,
            Word::Data => u64::from(self.data),
        }
    }

    #[inline]
    pub(crate) fn write(&mut self, word: Word, bits: u64) {
        match word {
            Word::Home(word) => self.home[word as usize] = bits,
            Word::Level { node, word } => self.level[node as usize][word as usize] = bits,
            Word::Wake(rank, cell) => self.ranks[rank as usize].cells[cell as usize].wake = bits,
            Word::Next(rank, cell) => self.ranks[rank as usize].cells[cell as usize].next = bits,
            Word::Data => self.data = bits as u8,
        }
    }

    /// Returns all shared words: those of the home and those of the machine's nodes.
    pub fn shared(&self) -> [u64; 8] {
        let [a, b] = self.level;
        let [c, r, t, h] = self.home;
        [c, r, t, h, a[0], a[1], b[0], b[1]]
    }
}
