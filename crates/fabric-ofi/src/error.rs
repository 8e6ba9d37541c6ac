//! What goes wrong.

use crate::{AtomicKind, probe::Reason, raw};
use core::fmt;
use std::io;

/// A result with [`OfiError`].
pub type Result<T> = core::result::Result<T, OfiError>;

/// What a completion queue says of an operation that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reply {
    /// libfabric's code, positive.
    pub code: i32,
    /// libfabric's text for it.
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

/// What is wrong with an endpoint's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadName {
    /// The bytes do not start as names do, or end too early or too late.
    #[error("these {len} bytes are no name of an endpoint")]
    Form {
        /// How many bytes there are.
        len: usize,
    },
    /// Endpoints of different providers do not understand each other.
    #[error("the peer uses provider {theirs}, this endpoint {ours}")]
    Provider {
        /// This endpoint's provider.
        ours: String,
        /// The peer's.
        theirs: String,
    },
    /// The address is of another form than this endpoint's.
    #[error("the peer's address has form {theirs} and {len} bytes, this endpoint's form {ours}")]
    Address {
        /// This endpoint's form, as libfabric numbers them.
        ours: u32,
        /// The peer's.
        theirs: u32,
        /// The length of the peer's address.
        len: usize,
    },
}

/// What goes wrong with libfabric. Peers are numbered as the endpoint inserted them, from 0.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OfiError {
    /// A call failed.
    #[error("{call} of provider {provider}: {text} (code {code})")]
    Call {
        /// The call of libfabric.
        call: &'static str,
        /// The provider, or `any`.
        provider: String,
        /// libfabric's code, positive.
        code: i32,
        /// libfabric's text for it.
        text: String,
    },
    /// Bytes that are not in the memory.
    #[error("{len} bytes from {offset} on are not in {whose} region of {size} bytes with key {key:#x}")]
    OutOfBounds {
        /// `own` or `remote`.
        whose: &'static str,
        /// The region's key.
        key: u64,
        /// The first byte.
        offset: u64,
        /// How many.
        len: usize,
        /// The region's size in bytes.
        size: u64,
    },
    /// A word that is not at a multiple of its size.
    #[error("a word of {width} bytes at {offset} in the region with key {key:#x}: no multiple, or no such words")]
    Misaligned {
        /// The region's key.
        key: u64,
        /// Where.
        offset: u64,
        /// The word's size in bytes, which is 4 or 8 where there are such words.
        width: usize,
    },
    /// An atomic that the endpoint does not have.
    #[error("provider {provider} has no fetching {} on words of {width} bytes", kind.name())]
    NoAtomic {
        /// The provider.
        provider: String,
        /// What the atomic does.
        kind: AtomicKind,
        /// The word's size in bytes.
        width: usize,
    },
    /// Atomics of the network for words of ranks that share memory, whose CPUs use the same words.
    #[error(
        "atomics by the network need one rank on each node: ranks {} and {} are both on node {node}",
        ranks[0], ranks[1]
    )]
    SharedNode {
        /// The node.
        node: u32,
        /// Two ranks of it.
        ranks: [u32; 2],
    },
    /// More bytes than a message or a put or get may have.
    #[error("{len} bytes by one operation, which may have at most {limit}")]
    TooLong {
        /// How many bytes.
        len: usize,
        /// The limit.
        limit: usize,
    },
    /// A peer or a region of another endpoint or domain.
    #[error("this {what} belongs to another endpoint or domain")]
    Foreign {
        /// `peer` or `region`.
        what: &'static str,
    },
    /// Bytes that are no name that this endpoint can use.
    #[error(transparent)]
    Name(#[from] BadName),
    /// Bytes that are no remote key.
    #[error("these {len} bytes are no remote key")]
    Key {
        /// How many bytes there are.
        len: usize,
    },
    /// A name of a provider or domain that libfabric can't be asked for.
    #[error("{name:?} can't be the name of a provider or domain")]
    Wanted {
        /// The name.
        name: String,
    },
    /// An offer that has not all that is needed.
    #[error("provider {provider}, domain {domain}: {reason}")]
    Unusable {
        /// The provider.
        provider: String,
        /// Its domain.
        domain: String,
        /// What is missing.
        reason: Reason,
    },
    /// There was no memory, or an empty region was asked for.
    #[error("{bytes} bytes of memory: {source}")]
    Memory {
        /// How many bytes.
        bytes: usize,
        /// What the system says.
        source: io::Error,
    },
    /// The system gave no random numbers for a key.
    #[error("random numbers for a key: {0}")]
    Random(#[source] io::Error),
}

impl OfiError {
    pub(crate) fn call(failed: raw::Failed, provider: &str) -> Self {
        let raw::Failed { call, code } = failed;
        Self::Call { call, provider: provider.to_owned(), code, text: raw::text_of(code) }
    }
}
