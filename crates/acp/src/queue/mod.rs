//! The command queue: a rank's program writes commands, a helper executes them.
//!
//! This is the design of the paper's library. The program writes a command into the next entry of a
//! ring, and continues; the *communication helper*, on its own core, takes the commands in order,
//! starts each once the operations that it waits for are complete, and publishes the last command
//! up to which all commands are complete. Program and helper share the ring and two words of the
//! rank's memory: the number of commands issued, which the helper waits for, and the last command
//! up to which all commands are complete, which the program waits for.
//!
//! An entry goes through the states of [`EntryState`]. The helper has one read pointer: a command
//! that waits for another one delays all commands behind it, even those that wait for nothing.
//!
//! In [`Mode::Split`](crate::Mode::Split), a second helper serves other ranks, and the first one
//! only orders and completes its own rank's operations.
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
    /// The operations that the command waits for are complete.
    OrderEnd,
    /// The network executes the command.
    Executing,
    /// Another rank executes the command.
    Delegated,
    /// The command has completed, behind others that have not.
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
