//! Errors of schedules and replays.

use std::{borrow::Cow, io};

/// A schedule that can't be read or built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadSchedule {
    /// A line of a text is wrong.
    #[error("line {line}: {reason}")]
    Line {
        /// The line, from 1.
        line: u64,
        /// Why.
        reason: Reason,
    },
    /// A place in a binary file is wrong.
    #[error("byte {offset}: {reason}")]
    Byte {
        /// The offset from the start of the file.
        offset: u64,
        /// Why.
        reason: Reason,
    },
    /// A schedule that is being built is wrong.
    #[error("{0}")]
    Built(#[from] Reason),
    /// The file can't be read.
    #[error("the schedule can't be read: {0}")]
    Io(#[from] io::Error),
}

/// The defect of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The text is not of the format.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// The words that the format allows here.
        expected: &'static str,
        /// The word that is here.
        found: String,
    },
    /// A number is too large for its purpose.
    #[error("{what} {number} is more than {most}")]
    TooLarge {
        /// Its purpose.
        what: &'static str,
        /// The number.
        number: u64,
        /// The largest number allowed.
        most: u64,
    },
    /// An operation names a rank that the schedule doesn't have.
    #[error("rank {peer} does not exist: there are {ranks}")]
    NoSuchRank {
        /// The rank.
        peer: u32,
        /// The number of ranks.
        ranks: u32,
    },
    /// Ranks are not given once each in ascending order.
    #[error("rank {found} instead of rank {expected}: ranks are given in ascending order, each once")]
    OutOfOrder {
        /// The rank found.
        found: u64,
        /// The next rank.
        expected: u32,
    },
    /// Ranks are missing at the end.
    #[error("{given} of {ranks} ranks are given")]
    RanksMissing {
        /// The number of ranks given.
        given: u32,
        /// The number of ranks of the schedule.
        ranks: u32,
    },
    /// A dependency names an operation that its rank doesn't have.
    #[error("operation {0} does not exist in this rank")]
    NoSuchOperation(String),
    /// Two operations of a rank have the same label.
    #[error("label {0} is used twice in this rank")]
    SameLabel(String),
    /// A send has the tag that means any.
    #[error("only a receive may have any tag or any source")]
    WildcardSend,
    /// The binary file has another first number.
    #[error("{0}")]
    NoSchedule(&'static str),
    /// The binary file is shorter than its tables say.
    #[error("{what} ends at byte {end} of {available}")]
    Truncated {
        /// The table.
        what: &'static str,
        /// Where it should end.
        end: u64,
        /// The length of the file, or of the rank's part.
        available: u64,
    },
    /// A stored count in a binary file is wrong.
    #[error("{what}: {stored} is stored, {counted} counted")]
    Inconsistent {
        /// The items that are counted.
        what: &'static str,
        /// The stored number.
        stored: u64,
        /// The number counted.
        counted: u64,
    },
}

/// A schedule that can't be replayed to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// Operations wait for messages that are never sent, for ones never received, or for each other.
    #[error(
        "{unfinished} operations never finish ({receives} posted receives, {messages} unreceived messages); the first \
         is operation {operation} of rank {rank}"
    )]
    Unfinished {
        /// The number of operations that have not finished.
        unfinished: usize,
        /// The number of posted receives that no message matched.
        receives: usize,
        /// The number of messages that arrived and were not received.
        messages: usize,
        /// The first rank with an operation that has not finished or whose message was not received.
        rank: u32,
        /// That operation's number in its rank, from 0.
        operation: u32,
    },
    /// The time does not fit in 64 bits of picoseconds: 213 days.
    #[error("virtual time ends after 213 days, before the schedule does")]
    EndOfTime,
    /// The tables of the replay don't fit in this machine's memory.
    #[error("too little memory for the replay: {needed} bytes are needed, and {limit} leaves {available}")]
    TooLittleMemory {
        /// Bytes needed.
        needed: u64,
        /// Bytes available.
        available: u64,
        /// The limit that leaves them.
        limit: Cow<'static, str>,
    },
}
