//! What goes wrong with PMIx.

use core::time::Duration;
use std::io;

/// What goes wrong with PMIx. Ranks are those of the job; a status is the library's, negative.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PmixError {
    /// No launcher with PMIx started this process.
    #[error("no launcher with PMIx started this process: {variable} is not set")]
    NotLaunched {
        /// The environment variable that such a launcher sets.
        variable: &'static str,
    },
    /// The library can't be loaded.
    #[error("the PMIx library {library} can't be loaded: {reason}")]
    Missing {
        /// Its name or path.
        library: String,
        /// What the system's loader says.
        reason: String,
    },
    /// The library lacks a function.
    #[error("the PMIx library {library} has no {symbol}: {reason}")]
    Symbol {
        /// The library's name or path.
        library: String,
        /// The function.
        symbol: &'static str,
        /// What the system's loader says.
        reason: String,
    },
    /// The library's structures are laid out in another way, or nobody compared them.
    #[error("the PMIx library {library} says {version:?}; versions 3 and later on 64 bits can be used")]
    Version {
        /// The library's name or path.
        library: String,
        /// The version as the library gives it.
        version: String,
    },
    /// This process has a client already; one that hung keeps its place for ever.
    #[error("this process has a PMIx client already")]
    InUse,
    /// The system gave no thread for the calls.
    #[error("a thread for PMIx: {0}")]
    Thread(#[source] io::Error),
    /// A call failed.
    #[error("{call}: {text} (status {status})")]
    Call {
        /// The function of the library.
        call: &'static str,
        /// What it returned.
        status: i32,
        /// The library's text for that.
        text: String,
    },
    /// Not all came to a fence, or another call took too long.
    #[error("{call}: nothing within {within:?}")]
    TimedOut {
        /// The function of the library.
        call: &'static str,
        /// How long was waited.
        within: Duration,
    },
    /// A rank's value did not come in time: it was not put, not published, or the rank is gone.
    #[error("rank {rank}: no value of key {key:?} within {within:?}")]
    Silent {
        /// Whose value.
        rank: u32,
        /// Its key.
        key: String,
        /// How long was waited.
        within: Duration,
    },
    /// The launcher knows that there is no such value.
    #[error("rank {rank} has published no value of key {key:?}")]
    NotFound {
        /// Whose value.
        rank: u32,
        /// Its key.
        key: String,
    },
    /// A call did not come back, so there is nobody to call any more.
    #[error("{call} did not come back; this client is of no use any more")]
    Lost {
        /// The function of the library.
        call: &'static str,
    },
    /// A value that is no bytes and was not put by a client of this kind.
    #[error("rank {rank}: the value of key {key:?} has PMIx's type {kind}, which is none of bytes")]
    Kind {
        /// Whose value.
        rank: u32,
        /// Its key.
        key: String,
        /// PMIx's number of its type.
        kind: u16,
    },
    /// The job has no such rank.
    #[error("rank {rank} of a job of {ranks} ranks")]
    NoSuchRank {
        /// The rank.
        rank: u32,
        /// How many ranks there are.
        ranks: usize,
    },
    /// A key that PMIx can't take: empty, longer than the limit, with a zero, or one of its own.
    #[error("key {key:?}: from 1 to {limit} bytes without zeros that do not start with \"pmix\" are possible")]
    BadKey {
        /// The key.
        key: String,
        /// The most bytes that a key may have.
        limit: usize,
    },
}
