//! The command queue: a rank's program writes commands, a helper carries them out.
//!
//! This is how the library of the paper works. The program writes a command into the next entry of
//! a ring, and goes on; the *communication helper*, on a core of its own, takes the commands in
//! order, starts each when what it waits for is complete, and publishes how far everything is
//! complete. Program and helper meet in the ring and in two words of the rank's memory: how many
//! commands have been issued, which the helper waits for, and up to which all are complete, which
//! the program waits for.
//!
//! An entry goes through the states of [`EntryState`]. The helper has one read pointer: a command
//! that waits for another one holds up all behind it, even those that wait for nothing.
//!
//! In [`Mode::Split`](crate::Mode::Split) the helper leaves it to a second one to serve other ranks,
//! and does nothing but order and complete its own rank's operations.
//!
//! # Source
//! Sections 3.2 and 4 of the paper, table 1, figures 5 and 6.

mod command;
mod helper;
mod issuing;
mod program;
mod ring;

pub(crate) use command::Command;
pub(crate) use program::{CommandQueue, more_complete};

/// The state of an entry of the command queue (table 1 of the paper).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum EntryState {
    /// The entry holds no command.
    Free,
    /// The command has just been written.
    Queued,
    /// The command waits for others.
    Order,
    /// What the command waits for is complete.
    OrderEnd,
    /// The network carries the command out.
    Executing,
    /// Another rank carries the command out.
    Delegated,
    /// The command is over, behind others that are not.
    Finished,
}

impl EntryState {
    /// All states, in the order in which a command may go through them.
    pub const ALL: [EntryState; 7] = [
        EntryState::Free,
        EntryState::Queued,
        EntryState::Order,
        EntryState::OrderEnd,
        EntryState::Executing,
        EntryState::Delegated,
        EntryState::Finished,
    ];

    fn from_word(word: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(word).ok()?).copied()
    }
}
