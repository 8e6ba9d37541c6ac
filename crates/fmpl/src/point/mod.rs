//! Point to point: sends and receives.

mod deliver;
mod fetch;
mod headers;
mod immediate;
mod isend;
mod matching;
mod memory;
mod parts;
mod pending;
mod receiving;
mod sending;
mod unsent;
mod window;

pub(crate) use deliver::{Body, FlagPlace, Message, deliver};
pub use isend::Sending;
pub use memory::{Sink, Source};
pub use parts::{ReceivingInto, RecvAttempt};
pub(crate) use pending::{Doorbell, Offer, Pending};
pub use receiving::Receiving;
pub(crate) use receiving::{HEADERS, SPIN_LIMIT, posted, spin_limit};
pub(crate) use window::{InParts, Window, Windows};

/// The description of a received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Received {
    /// The sender.
    pub from: usize,
    /// The message's index.
    pub index: usize,
    /// The message's length in bytes.
    pub bytes: usize,
}
