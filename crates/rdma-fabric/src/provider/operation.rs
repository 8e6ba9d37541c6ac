//! An operation as it is passed to a provider: its source or destination, and the outcome of posting it.

use super::Place;
use crate::FabricError;
use core::num::NonZeroU64;

/// An operation that is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token(pub NonZeroU64);

/// The outcome of posting. Fits into two registers.
#[derive(Debug)]
pub enum Posted {
    /// Complete: the source may be reused, the sink is filled. Contains the word's value before an
    /// atomic, zero-extended.
    Complete(u64),
    /// In flight: to be polled by [`Provider::poll`](super::Provider::poll), or abandoned by
    /// [`Provider::forget`](super::Provider::forget).
    Pending(Token),
    /// Not posted: there is currently no room.
    Full,
    /// Not posted: it is impossible.
    Failed(FabricError),
}

impl Posted {
    /// Creates a refusal with this error.
    #[cold]
    pub fn failed(error: impl Into<FabricError>) -> Self {
        Posted::Failed(error.into())
    }
}

const _: () = assert!(size_of::<Posted>() <= 16);

/// The source of a put.
///
/// Bytes are borrowed for the call only, so a provider in safe code can't keep them to read them
/// later:
///
/// ```compile_fail,E0521
/// # use rdma_fabric::provider::Source;
/// fn post_late(later: &mut Vec<&'static [u8]>, from: Source<'_>) {
///     if let Source::Bytes(bytes) = from {
///         later.push(bytes);
///     }
/// }
/// ```
///
/// A copy of them can be kept:
///
/// ```
/// # use rdma_fabric::provider::Source;
/// fn post_late(later: &mut Vec<Vec<u8>>, from: Source<'_>) {
///     if let Source::Bytes(bytes) = from {
///         later.push(bytes.to_vec());
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// Taken, or copied, when the post returns.
    Bytes(&'a [u8]),
    /// Local registered memory.
    Place(&'a Place),
}

impl Source<'_> {
    /// Returns the number of bytes.
    #[inline]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        match self {
            Source::Bytes(bytes) => bytes.len(),
            Source::Place(place) => place.len(),
        }
    }
}

/// The destination of a get.
#[derive(Debug)]
pub enum Sink<'a> {
    /// Filled when the post returns [`Posted::Complete`], otherwise by
    /// [`Provider::poll`](super::Provider::poll), to which the caller passes it again.
    Bytes(&'a mut [u8]),
    /// Local registered memory, filled when the operation completes.
    /// [`Provider::poll`](super::Provider::poll) may be passed [`Sink::none`] instead.
    Place(&'a Place),
}

impl Sink<'_> {
    /// Returns the number of bytes.
    #[inline]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        match self {
            Sink::Bytes(bytes) => bytes.len(),
            Sink::Place(place) => place.len(),
        }
    }

    /// Returns a sink of no bytes.
    pub fn none() -> Self {
        Sink::Bytes(&mut [])
    }
}
