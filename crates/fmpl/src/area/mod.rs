//! Matching areas: the memory through which two members exchange messages.
//!
//! A member has an area for each peer with which it exchanges messages. Only that peer writes to
//! the area, and only the member itself reads it. The area has a *channel* for each index, and a channel
//! has two cache lines:
//!
//! ```text
//!  bytes    what the peer puts there
//!  0..32    header   of the receive that it has posted for a message of this member
//!  32..48   flags    of the last two messages to this member: arrived, or waiting to be fetched
//!  48..56   taken    the number of this member's offered messages that it has taken
//!  56..64   queued   the number of messages in its queue
//!  64..112  offers   the locations of the two messages of the flags, or the messages
//!  112..128 queue    the location where its queue begins
//! ```
//!
//! The head of an area has a [slot](slot) for a receive of any index.
//!
//! Headers and flags are [`Record`]s: each of their words carries the number of the message, so
//! that the words may arrive in any order.
//!
//! A message that waits while both flags are in use is added to the sender's *queue*: a list of
//! [`Node`](node::Node)s in the sender's memory. The address of the first node is put to the peer
//! once, then only the number of queued messages. So an offer never waits for space in the area.

mod channel;
mod contact;
mod inline;
mod layout;
mod node;
mod record;
mod slot;
mod staged;
mod supplied;

pub(crate) use channel::{Channel, Ends, OfferNow, PostedOffer, Queued, Taken};
pub(crate) use contact::meet;
pub(crate) use inline::INLINE;
pub(crate) use layout::{Layout, OFFERS};
pub(crate) use node::{NODE, Node};
pub(crate) use record::{Kind, Record};
pub(crate) use slot::{Slot, SlotFlag};
pub(crate) use supplied::supplied;
