//! What callers say of endpoints and operations.

use crate::Region;
use core::ops::Range;

/// How much an endpoint can do at a time. What the provider can't is less in [`crate::Endpoint::limits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EndpointOptions {
    /// Most operations under way, messages included; at least 1.
    pub depth: usize,
    /// Number of buffers for messages of peers. Messages that find none free wait: in the
    /// provider, or at the sender, whose posts find no room then.
    pub receives: usize,
    /// Bytes of such a buffer, which have to be the same for all endpoints that send to each other.
    pub message_bytes: usize,
    /// Whether there should be a [descriptor](crate::Endpoint::descriptor) if the provider can.
    pub wait: bool,
}

impl Default for EndpointOptions {
    /// 256 operations, 64 buffers of 4096 bytes, no descriptor.
    fn default() -> Self {
        Self { depth: 256, receives: 64, message_bytes: 4096, wait: false }
    }
}

/// What an endpoint can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Limits {
    /// The longest message in bytes.
    pub message: usize,
    /// The longest put or get in bytes.
    pub transfer: usize,
    /// Most operations under way.
    pub depth: usize,
    /// Number of buffers for messages.
    pub receives: usize,
}

/// Where a put's bytes are.
#[derive(Clone, Debug)]
pub enum PutFrom<'a> {
    /// Here: they are copied before the call returns.
    Bytes(&'a [u8]),
    /// In a region, which keeps them until the put is over.
    Region(&'a Region, Range<usize>),
}

/// Where a get's bytes go.
#[derive(Clone, Debug)]
pub enum GetInto<'a> {
    /// Into a buffer of the endpoint for so many bytes, which the event lends.
    Own(usize),
    /// Into a region.
    Region(&'a Region, Range<usize>),
}
