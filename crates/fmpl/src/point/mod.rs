//! Point to point: sends and receives.

mod deliver;
mod pending;
mod receiving;
mod sending;

pub(crate) use deliver::{Body, Message, deliver};
pub(crate) use pending::{Bell, Pending};
pub use receiving::Receiving;
pub(crate) use receiving::{HEADERS, posted};
pub use sending::Sending;
pub(crate) use sending::as_bytes;

/// What was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Received {
    /// The sender.
    pub from: usize,
    /// The message's index.
    pub index: usize,
    /// The message's length in bytes.
    pub bytes: usize,
}
