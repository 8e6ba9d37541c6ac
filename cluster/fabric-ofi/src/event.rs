//! Events of an endpoint.

use crate::{Peer, error::Reply};

/// An event that an endpoint reports when it makes progress.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// An operation of this endpoint has completed.
    Complete {
        /// The tag with which the caller posted it.
        tag: u64,
        /// Its result, or why it failed.
        outcome: core::result::Result<Brought<'a>, Failure>,
    },
    /// A message of a peer. Messages of one peer arrive in the order in which they were sent.
    Message(&'a [u8]),
    /// The data of a peer's put, whose bytes have arrived.
    Data(u64),
    /// An error that is not related to an operation of this endpoint, such as a peer's access with
    /// a wrong key.
    Fault(Reply),
}

/// The result of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Brought<'a> {
    /// Puts, messages and gets into regions have no result.
    Nothing,
    /// The bytes of a get into a buffer of the endpoint.
    Bytes(&'a [u8]),
    /// The value of the word before the atomic; 4-byte words are zero-extended.
    Word(u64),
}

/// A failed operation and its error. Whether it was executed is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call} at peer {}: {reply}", peer.index())]
#[non_exhaustive]
pub struct Failure {
    /// The libfabric call that posted it.
    pub call: &'static str,
    /// The peer.
    pub peer: Peer,
    /// The provider's error.
    pub reply: Reply,
}
