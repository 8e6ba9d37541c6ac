//! Channels and segmented buffers: messages in order from one rank to another.
//!
//! # Protocol
//! 1. The sending end leaves a request in the receiver's [table](table): who asks, which of its ends
//!    to this rank it is, and where its control block is.
//! 2. The receiver finds its own end of that number, or keeps the request until there is one. It
//!    puts where its slots are into the sender's control block, and then the head.
//! 3. The sender puts what it has into free slots, and then the tail. A message that is longer than
//!    a slot takes several, and need not be all put before the first of them is taken.
//! 4. The receiver takes slots as long as somebody wants their message, and puts the head.
//! 5. The last slot of a channel says that the sender disconnects. The receiver answers it by the
//!    head, as any other, and touches the sender's memory no more.
//!
//! Each side waits for a word of its own memory only: the sender for the head, the receiver for the
//! tail, and for the table's bell until it is connected. Each wait names the peer it depends on.
//!
//! A rank has memory for the ends that it has created, and none for ranks that it has no channel
//! with. A [segmented buffer](segments) is connected in the same way; its slots are the program's.
//!
//! # Source
//! The channels and segmented buffers of ACP 3.0. There, a table entry is taken in the order of its
//! tail, so a rank that dies with an entry in hand stops all others.

mod channels;
mod end;
mod ends;
mod incoming;
mod link;
mod options;
mod outgoing;
mod progress;
mod request;
mod results;
mod segments;
mod table;

pub(crate) use channels::Channels;
pub use ends::{Receiver, Sender};
pub use options::ChannelOptions;
pub use request::{Outcome, Request};
pub use results::Arrival;
pub use segments::{SegmentDestination, SegmentSource};
