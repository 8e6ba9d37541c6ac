//! Errors of PMIx.

use core::time::Duration;
use std::io;

/// An error of PMIx. Ranks are those of the job; a status is the library's, negative.
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
        /// The message of the system's loader.
        reason: String,
    },
    /// The library lacks a function.
    #[error("the PMIx library {library} has no {symbol}: {reason}")]
    Symbol {
        /// The library's name or path.
        library: String,
        /// The function.
        symbol: &'static str,
        /// The message of the system's loader.
        reason: String,
    },
    /// The library's structures have a different layout, or one that has not been compared.
    #[error("the PMIx library {library} says {version:?}; versions 3 and later on 64 bits can be used")]
    Version {
        /// The library's name or path.
        library: String,
        /// The version as the library gives it.
        version: String,
    },
    /// This process already has a client. A client that hangs is never released.
    #[error("this process has a PMIx client already")]
    InUse,
    /// The system refused to create a thread for the calls.
    #[error("a thread for PMIx: {0}")]
    Thread(#[source] io::Error),
    /// A call failed.
    #[error("{call}: {text} (status {status})")]
    Call {
        /// The function of the library.
        call: &'static str,
        /// The returned status.
        status: i32,
        /// The library's text for the status.
        text: String,
    },
    /// Not all ranks called a fence in time, or another call took too long.
    #[error("{call}: nothing within {within:?}")]
    TimedOut {
        /// The function of the library.
        call: &'static str,
        /// The time spent waiting.
        within: Duration,
    },
    /// A rank's value did not arrive in time: it was not put or not published, or the rank is gone.
    #[error("rank {rank}: no value of key {key:?} within {within:?}")]
    Silent {
        /// The rank.
        rank: u32,
        /// Its key.
        key: String,
        /// The time spent waiting.
        within: Duration,
    },
    /// The launcher reports that there is no such value.
    #[error("rank {rank} has published no value of key {key:?}")]
    NotFound {
        /// The rank.
        rank: u32,
        /// Its key.
        key: String,
    },
    /// A call did not return, so the client's thread can't make further calls.
    #[error("{call} did not come back; this client is of no use any more")]
    Lost {
        /// The function of the library.
        call: &'static str,
    },
    /// A value that does not consist of bytes and was not put by a client of this kind.
    #[error("rank {rank}: the value of key {key:?} has PMIx's type {kind}, which is none of bytes")]
    Kind {
        /// The rank.
        rank: u32,
        /// Its key.
        key: String,
        /// PMIx's number of the value's type.
        kind: u16,
    },
    /// The job has no such rank.
    #[error("rank {rank} of a job of {ranks} ranks")]
    NoSuchRank {
        /// The rank.
        rank: u32,
        /// The number of ranks of the job.
        ranks: usize,
    },
    /// A key that PMIx can't accept: empty, longer than the limit, with a zero byte, or reserved.
    #[error("key {key:?}: from 1 to {limit} bytes without zeros that do not start with \"pmix\" are possible")]
    BadKey {
        /// The key.
        key: String,
        /// The maximum length of a key in bytes.
        limit: usize,
    },
}
