//! The processes that take part in a call, and the numbering of its messages.

use crate::{BlacsError, Grid, Result};
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// The processes of a broadcast, combine or barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The processes of the caller's row.
    Row,
    /// The processes of the caller's column.
    Column,
    /// All processes of the grid.
    All,
}

impl Scope {
    /// Returns the scope with this letter in BLACS.
    pub const fn from_letter(letter: u8) -> Option<Self> {
        match letter.to_ascii_lowercase() {
            b'r' => Some(Scope::Row),
            b'c' => Some(Scope::Column),
            b'a' => Some(Scope::All),
            _ => None,
        }
    }
}

/// A class of messages that is independent of all other classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// Messages between two processes.
    Pair,
    /// Messages in a scope.
    Of(Scope),
}

/// The number of indices for messages between two processes. For each index, the receiver has room for
/// two offers; it finds further ones in the sender's memory, at the cost of one more transfer.
const PAIR_INDICES: usize = 64;
/// The number of indices for messages of each scope.
const SCOPE_INDICES: usize = 8;
/// The number of indices of a communicator, for all spaces together.
pub(crate) const INDICES: usize = PAIR_INDICES + SCOPE_INDICES * (SPACES - 1);
/// The number of spaces.
const SPACES: usize = 4;

impl Space {
    /// Returns the number of the space.
    const fn place(self) -> usize {
        match self {
            Space::Pair => 0,
            Space::Of(Scope::Row) => 1,
            Space::Of(Scope::Column) => 2,
            Space::Of(Scope::All) => 3,
        }
    }

    /// Returns the index of a message by its number among those from the same sender to the same
    /// receiver. Message numbers wrap around at 256, a multiple of the number of indices.
    const fn index(self, message: u8) -> usize {
        match self.place() {
            0 => message as usize % PAIR_INDICES,
            place => PAIR_INDICES + SCOPE_INDICES * (place - 1) + message as usize % SCOPE_INDICES,
        }
    }
}

/// Counts the messages to and from each member, in each space. The peers count the same messages.
#[derive(Debug)]
pub(crate) struct Counters(Box<[[AtomicU8; 2 * SPACES]]>);

impl Counters {
    pub(crate) fn new(members: usize) -> Self {
        Counters((0..members).map(|_| Default::default()).collect())
    }

    /// Returns the index of the next message to a member.
    #[inline]
    pub(crate) fn next_to(&self, member: usize, space: Space) -> usize {
        self.next(member, space, space.place())
    }

    /// Returns the index of the next message from a member.
    #[inline]
    pub(crate) fn next_from(&self, member: usize, space: Space) -> usize {
        self.next(member, space, SPACES + space.place())
    }

    #[inline]
    fn next(&self, member: usize, space: Space, place: usize) -> usize {
        // Wraps around, as the indices do.
        space.index(self.0[member][place].fetch_add(1, Relaxed))
    }
}

/// The members of a scope, numbered from 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Members {
    pub(crate) scope: Scope,
    pub(crate) count: usize,
    /// The number of the caller.
    pub(crate) me: usize,
    /// The number in the communicator of the first member, and the step to the next one.
    first: usize,
    step: usize,
}

impl Members {
    /// Returns the number of a member in the communicator.
    pub(crate) fn member(&self, index: usize) -> usize {
        self.first + index * self.step
    }
}

impl Grid {
    /// Returns the members of a scope of the caller.
    pub(crate) fn members(&self, scope: Scope) -> Members {
        let (row, column) = self.me();
        match scope {
            Scope::Row => Members { scope, count: self.columns(), me: column, first: row * self.columns(), step: 1 },
            Scope::Column => Members { scope, count: self.rows(), me: row, first: column, step: self.columns() },
            Scope::All => {
                let (count, me) = (self.rows() * self.columns(), row * self.columns() + column);
                Members { scope, count, me, first: 0, step: 1 }
            }
        }
    }

    /// Returns the number within a scope of the process at these coordinates. Only the column counts
    /// in a row, and only the row in a column.
    pub(crate) fn index_in(&self, scope: Scope, (row, column): (usize, usize)) -> Result<usize> {
        let (rows, columns) = (self.rows(), self.columns());
        let (within, index) = match scope {
            Scope::Row => (column < columns, column),
            Scope::Column => (row < rows, row),
            Scope::All => (row < rows && column < columns, row.saturating_mul(columns).saturating_add(column)),
        };
        if within { Ok(index) } else { Err(BlacsError::OutsideGrid { row, column, rows, columns }) }
    }
}
