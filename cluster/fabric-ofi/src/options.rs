//! Options of endpoints and operations.

use crate::Region;
use core::ops::Range;

/// The capacity of an endpoint. [`crate::Endpoint::limits`] is lower if the provider supports less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EndpointOptions {
    /// Maximum number of operations in flight, including messages; at least 1.
    pub depth: usize,
    /// Number of buffers for messages of peers. Messages that find no free buffer wait in the
    /// provider, or at the sender, whose posts then find no room.
    pub receives: usize,
    /// Size of such a buffer in bytes, which must be the same for all endpoints that send to each
    /// other.
    pub message_bytes: usize,
    /// Whether to open a [descriptor](crate::Endpoint::descriptor) if the provider supports it.
    pub wait: bool,
}

impl Default for EndpointOptions {
    /// 256 operations, 64 buffers of 4096 bytes, no descriptor.
    fn default() -> Self {
        Self { depth: 256, receives: 64, message_bytes: 4096, wait: false }
    }
}

/// The limits of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Limits {
    /// Whether a put completes only when its bytes are visible at the peer, as
    /// `FI_DELIVERY_COMPLETE` demands. Otherwise it completes when the peer's NIC has acknowledged
    /// it, and is visible when a later get from the peer has completed.
    pub delivery: bool,

    /// The longest message in bytes.
    pub message: usize,
    /// The longest put or get in bytes.
    pub transfer: usize,
    /// Maximum number of operations in flight.
    pub depth: usize,
    /// Number of buffers for messages.
    pub receives: usize,
    /// Number of bytes of data that a put delivers to its target: 8, 4 over InfiniBand, or 0.
    pub data: usize,
}

/// The source of a put.
#[derive(Clone, Debug)]
pub enum PutFrom<'a> {
    /// Bytes that are copied before the call returns.
    Bytes(&'a [u8]),
    /// Bytes of a region, which stays alive until the put completes.
    Region(&'a Region, Range<usize>),
}

/// The destination of a get.
#[derive(Clone, Debug)]
pub enum GetInto<'a> {
    /// A buffer of the endpoint with this number of bytes; the event borrows it.
    Own(usize),
    /// Bytes of a region.
    Region(&'a Region, Range<usize>),
}
