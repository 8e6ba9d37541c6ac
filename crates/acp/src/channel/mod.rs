//! Channels and segmented buffers: messages in order from one rank to another.
//!
//! # Protocol
//! 1. The sending end puts a request into the receiver's [table](table): its rank, its number among
//!    the ends from that rank to this one, and the address of its control block.
//! 2. The receiver looks up its own end with that number, or keeps the request until that end is
//!    created. It puts the location of its slots into the sender's control block, and then the
//!    head.
//! 3. The sender puts messages into free slots, and then the tail. A message longer than a slot
//!    takes several slots; the first may be taken before the last is put.
//! 4. The receiver takes slots as long as receives are posted for their messages, and puts the
//!    head.
//! 5. The last slot of a channel is the sender's disconnection. The receiver acknowledges it
//!    through the head, like any other slot, and no longer accesses the sender's memory.
//!
//! Each side waits only for words of its own memory: the sender for the head, the receiver for the
//! tail, and for the table's doorbell until it is connected. Each wait names the peer it depends
//! on.
//!
//! A rank has memory for the ends that it has created, and none for ranks without a channel to it.
//! A [segmented buffer](segments) is connected in the same way; its slots belong to the program.
//!
//! # Source
//! The channels and segmented buffers of ACP 3.0. In ACP 3.0, table entries are taken in the order
//! of the table's tail, so a rank that dies while it holds an entry blocks all others.

mod channels;
mod endpoint;
mod endpoints;
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
pub use endpoints::{Receiver, Sender};
pub use options::ChannelOptions;
pub use request::{Outcome, Request};
pub use results::Arrival;
pub use segments::{SegmentDestination, SegmentSource};
