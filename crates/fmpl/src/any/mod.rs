//! Receives that leave something open: the index, or the sender.
//!
//! Matching is the sender's, so a receive that takes any index can't post a header: a sender might
//! use it for one message while the receiver takes another one that was spooled. Instead the
//! receiver lets the sender know how many of its messages are *wanted*; so many more the sender offers
//! at once, and the receiver chooses among what it was offered. So the sender alone decides
//! between header and offer, the receiver alone among offers, and a message is never matched twice.
//! The number is a hint: whatever the sender does, no message is lost.
//!
//! Messages to a receiver that does not name its sender are a domain of their own, with lanes of
//! their own, and are always offered. The sender then changes the receiver's *bell*, and whoever
//! waits for it looks at all lanes again.

mod index;
mod source;

pub use index::ReceivingAny;
