//! A launcher's interface to the processes that it started: a key-value store that all of them can
//! read.

use std::{io, time::Duration};

/// A launcher's key-value store. A value that one rank puts is visible to every rank after a fence.
///
/// Every call has a time limit: the one given to the implementation, or the implementation's own.
pub trait Bootstrap {
    /// Returns the launcher's name, for error messages.
    fn launcher(&self) -> &'static str;
    /// Returns this process's rank.
    fn rank(&self) -> u32;
    /// Returns the number of ranks of the job.
    fn ranks(&self) -> usize;
    /// Puts arbitrary bytes under a key that no rank has used. A key consists of up to 32 letters,
    /// digits, `-` and `.`.
    fn put(&mut self, key: &str, value: &[u8]) -> Result<(), LauncherError>;
    /// Waits until all ranks have called this. Values put before the fence can be read after it.
    fn fence(&mut self) -> Result<(), LauncherError>;
    /// Returns the value that rank `of` put under a key.
    fn get(&mut self, of: u32, key: &str) -> Result<Vec<u8>, LauncherError>;
}

/// A failed call of a launcher.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LauncherError {
    /// An error of PMIx.
    #[error(transparent)]
    Pmix(#[from] crate::pmix::PmixError),
    /// It did not answer in time. In a fence, the cause may be a rank that did not call it.
    #[error("{launcher} did not answer `{call}` within {within:?}")]
    Silent {
        /// The launcher.
        launcher: &'static str,
        /// The request.
        call: &'static str,
        /// The time spent waiting.
        within: Duration,
    },
    /// It refused the request.
    #[error("{launcher} refused `{call}`: {answer}")]
    Refused {
        /// The launcher.
        launcher: &'static str,
        /// The request.
        call: &'static str,
        /// The answer.
        answer: String,
    },
    /// Its answer is malformed.
    #[error("{launcher} answered `{call}` by `{answer}`")]
    Malformed {
        /// The launcher.
        launcher: &'static str,
        /// The request.
        call: &'static str,
        /// The first part of the answer.
        answer: String,
    },
    /// A key or value exceeds the limit of the store.
    #[error("a {what} of {size} bytes is more than the {limit} of {launcher}")]
    TooLong {
        /// The launcher.
        launcher: &'static str,
        /// `key` or `value`.
        what: &'static str,
        /// The size in bytes.
        size: usize,
        /// The maximum size in bytes.
        limit: usize,
    },
    /// The system refused a call, or the launcher has ended.
    #[error("{launcher}, `{call}`: {cause}")]
    System {
        /// The launcher.
        launcher: &'static str,
        /// The request.
        call: &'static str,
        /// The reason.
        cause: io::Error,
    },
}
