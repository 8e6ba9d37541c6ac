//! Errors.

use crate::{AtomicKind, probe::Reason, raw};
use core::fmt;
use std::io;

/// A result with [`OfiError`].
pub type Result<T> = core::result::Result<T, OfiError>;

/// The error of a failed operation, as a completion queue reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reply {
    /// libfabric's code, positive.
    pub code: i32,
    /// libfabric's message for it.
    pub text: String,
    /// The provider's own code.
    pub provider_code: i32,
    /// The provider's own text, if it has one.
    pub provider: Option<String>,
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (code {})", self.text, self.code)?;
        match &self.provider {
            Some(text) if *text != self.text => write!(f, "; the provider says: {text} (code {})", self.provider_code),
            _ => Ok(()),
        }
    }
}

/// Why an endpoint's name can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadName {
    /// The bytes do not start like a name, or have the wrong length.
    #[error("these {len} bytes are not the name of an endpoint")]
    Form {
        /// Number of bytes.
        len: usize,
    },
    /// Endpoints of different providers can't communicate.
    #[error("the peer uses provider {theirs}, this endpoint {ours}")]
    Provider {
        /// This endpoint's provider.
        ours: String,
        /// The peer's provider.
        theirs: String,
    },
    /// The address has another format or length than this endpoint's.
    #[error("the peer's address has form {theirs} and {len} bytes, this endpoint's form {ours}")]
    Address {
        /// This endpoint's format, as numbered by libfabric.
        ours: u32,
        /// The peer's format.
        theirs: u32,
        /// The length of the peer's address.
        len: usize,
    },
}

/// An error of libfabric or of its use. Peers are numbered in the order of their insertion, from 0.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OfiError {
    /// A libfabric call failed.
    #[error("{call} of provider {provider}: {text} (code {code})")]
    Call {
        /// The libfabric call.
        call: &'static str,
        /// The provider, or `any`.
        provider: String,
        /// libfabric's code, positive.
        code: i32,
        /// libfabric's message for it.
        text: String,
    },
    /// The bytes are not in the region.
    #[error("{len} bytes from {offset} on are not in {whose} region of {size} bytes with key {key:#x}")]
    OutOfBounds {
        /// `own` or `remote`.
        whose: &'static str,
        /// The region's key.
        key: u64,
        /// The offset of the first byte.
        offset: u64,
        /// Number of bytes.
        len: usize,
        /// The region's size in bytes.
        size: u64,
    },
    /// The word is not aligned to its size, or its size is not supported.
    #[error("a word of {width} bytes at {offset} in the region with key {key:#x}: no multiple, or no such words")]
    Misaligned {
        /// The region's key.
        key: u64,
        /// The offset of the word.
        offset: u64,
        /// The word's size in bytes; 4 and 8 are supported.
        width: usize,
    },
    /// The endpoint does not have this atomic.
    #[error("provider {provider} has no fetching {} on words of {width} bytes", kind.name())]
    NoAtomic {
        /// The provider.
        provider: String,
        /// The operation of the atomic.
        kind: AtomicKind,
        /// The word's size in bytes.
        width: usize,
    },
    /// Network atomics were requested for ranks that share memory, whose CPUs access the same
    /// words.
    #[error(
        "atomics by the network need one rank on each node: ranks {} and {} are both on node {node}",
        ranks[0], ranks[1]
    )]
    SharedNode {
        /// The node.
        node: u32,
        /// Two ranks on it.
        ranks: [u32; 2],
    },
    /// The data of a put does not fit in what the provider delivers to the target.
    #[error("{data:#x} is data for a put of more than {limit} bytes, which is what the provider delivers")]
    Data {
        /// The data.
        data: u64,
        /// Number of bytes that the provider delivers.
        limit: usize,
    },
    /// More bytes than a message, put or get may have.
    #[error("{len} bytes by one operation, which may have at most {limit}")]
    TooLong {
        /// Number of bytes.
        len: usize,
        /// The limit.
        limit: usize,
    },
    /// A peer of another endpoint, or a region of another domain.
    #[error("this {what} belongs to another endpoint or domain")]
    Foreign {
        /// `peer` or `region`.
        what: &'static str,
    },
    /// The bytes are not a name that this endpoint can use.
    #[error(transparent)]
    Name(#[from] BadName),
    /// The bytes are not a remote key.
    #[error("these {len} bytes are not a remote key")]
    Key {
        /// Number of bytes.
        len: usize,
    },
    /// The name of a provider or domain that libfabric can't accept.
    #[error("{name:?} can't be the name of a provider or domain")]
    Wanted {
        /// The name.
        name: String,
    },
    /// The offer lacks a requirement.
    #[error("provider {provider}, domain {domain}: {reason}")]
    Unusable {
        /// The provider.
        provider: String,
        /// Its domain.
        domain: String,
        /// The missing requirement.
        reason: Reason,
    },
    /// The memory could not be allocated, or an empty region was requested.
    #[error("{bytes} bytes of memory: {source}")]
    Memory {
        /// Number of bytes.
        bytes: usize,
        /// The system's error.
        source: io::Error,
    },
    /// More memory would be pinned than the system allows this process.
    #[error(
        "{}{bytes} bytes of memory can't be pinned: the limit is {limit} bytes, of which {pinned} are in use \
         (`ulimit -l` sets it, in KiB)",
        of_rank(*rank)
    )]
    PinLimit {
        /// The rank, if the memory is that of a rank of a job.
        rank: Option<u32>,
        /// Number of bytes to pin.
        bytes: usize,
        /// Number of bytes that the process has pinned.
        pinned: u64,
        /// RLIMIT_MEMLOCK.
        limit: u64,
    },
    /// The system did not return how much memory this process has pinned or may pin.
    #[error("pinned memory: {0}")]
    Pinned(#[source] io::Error),
    /// The system did not return random numbers for a key.
    #[error("random numbers for a key: {0}")]
    Random(#[source] io::Error),
}

fn of_rank(rank: Option<u32>) -> String {
    rank.map_or_else(String::new, |rank| format!("rank {rank}: "))
}

impl OfiError {
    pub(crate) fn call(failed: raw::Failed, provider: &str) -> Self {
        let raw::Failed { call, code } = failed;
        Self::Call { call, provider: provider.to_owned(), code, text: raw::text_of(code) }
    }
}
