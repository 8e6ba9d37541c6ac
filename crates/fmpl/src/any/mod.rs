//! Receives with any index or from any sender.
//!
//! The sender does the matching, so a receive that takes any index cannot post a header: a sender
//! might use the header for one message while the receiver takes another one that was spooled.
//! Instead the receiver publishes the number of messages that it *wants*. The sender offers up to
//! that number of messages immediately, and the receiver selects among the offers. So only the
//! sender decides between header and offer, only the receiver selects among offers, and a message
//! is never matched twice. The number is a hint: no message is lost, regardless of how the sender
//! uses it.
//!
//! Messages to a receiver that does not specify its sender form a separate domain with its own
//! channels, and are always offered. After an offer the sender changes the receiver's *doorbell*, and
//! the tasks that wait for the doorbell check all channels again.

mod index;
mod source;

pub use index::ReceivingAny;
