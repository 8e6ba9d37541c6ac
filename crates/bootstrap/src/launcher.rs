//! What a launcher offers to the processes that it started: a store that all can read.

use std::{io, time::Duration};

/// A launcher's store. What a rank puts under a key, every rank gets after a fence.
///
/// Every call is bounded: by the time that the implementation was given, or by its own.
pub trait Bootstrap {
    /// Returns the launcher's name, for errors.
    fn launcher(&self) -> &'static str;
    /// Returns this process's rank.
    fn rank(&self) -> u32;
    /// Returns how many ranks the job has.
    fn ranks(&self) -> usize;
    /// Puts a value of any bytes under a key that no rank has used: letters and digits, `-` and `.`,
    /// up to 32.
    fn put(&mut self, key: &str, value: &[u8]) -> Result<(), LauncherError>;
    /// Waits until all ranks are here: what they have put before can be got after.
    fn fence(&mut self) -> Result<(), LauncherError>;
    /// Returns the value that rank `of` has put under a key.
    fn get(&mut self, of: u32, key: &str) -> Result<Vec<u8>, LauncherError>;
}

/// A launcher did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LauncherError {
    /// What PMIx says.
    #[error(transparent)]
    Pmix(#[from] crate::pmix::PmixError),
    /// It did not answer in time. At a fence that may be since a rank did not come.
    #[error("{launcher} did not answer `{call}` within {within:?}")]
    Silent {
        /// The launcher.
        launcher: &'static str,
        /// What it was asked.
        call: &'static str,
        /// How long it was waited for.
        within: Duration,
    },
    /// It refused.
    #[error("{launcher} refused `{call}`: {answer}")]
    Refused {
        /// The launcher.
        launcher: &'static str,
        /// What it was asked.
        call: &'static str,
        /// What it answered.
        answer: String,
    },
    /// It answered something that is no answer.
    #[error("{launcher} answered `{call}` by `{answer}`")]
    Malformed {
        /// The launcher.
        launcher: &'static str,
        /// What it was asked.
        call: &'static str,
        /// What it answered, the first part of it.
        answer: String,
    },
    /// A key or value does not fit into its store.
    #[error("a {what} of {size} bytes is more than the {limit} of {launcher}")]
    TooLong {
        /// The launcher.
        launcher: &'static str,
        /// `key` or `value`.
        what: &'static str,
        /// Its bytes.
        size: usize,
        /// How many may be.
        limit: usize,
    },
    /// The system refused a call, or the launcher has ended.
    #[error("{launcher}, `{call}`: {cause}")]
    System {
        /// The launcher.
        launcher: &'static str,
        /// What it was asked.
        call: &'static str,
        /// Why.
        cause: io::Error,
    },
}
