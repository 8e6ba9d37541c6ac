//! What an endpoint tells its owner.

use crate::{Peer, error::Reply};

/// What an endpoint tells when it makes progress.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// An operation of this endpoint is over.
    Over {
        /// The caller's, as it was posted with.
        tag: u64,
        /// What it has brought, or why it failed.
        outcome: core::result::Result<Brought<'a>, Failure>,
    },
    /// A peer's message. Messages of one peer come in the order in which they were sent.
    Message(&'a [u8]),
    /// The data of a peer's put, whose bytes are here.
    Data(u64),
    /// An error that is no operation's of this endpoint, such as a peer's with a wrong key.
    Fault(Reply),
}

/// What an operation has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Brought<'a> {
    /// Puts, messages and gets into regions bring nothing.
    Nothing,
    /// The bytes of a get into a buffer of the endpoint.
    Bytes(&'a [u8]),
    /// What an atomic has found; a word of 4 bytes with zeros above it.
    Word(u64),
}

/// Why an operation failed, and which one it was. Whether it was carried out is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call} at peer {}: {reply}", peer.index())]
#[non_exhaustive]
pub struct Failure {
    /// The call of libfabric that posted it.
    pub call: &'static str,
    /// The peer.
    pub peer: Peer,
    /// What the provider says.
    pub reply: Reply,
}
