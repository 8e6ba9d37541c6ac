//! Matching areas: the memory by which two members meet.
//!
//! A member has an area for each peer that it exchanges messages with. Nobody but that peer writes
//! there, and nobody but the member itself reads it. The area has a *lane* for each index, and a lane
//! has two cache lines:
//!
//! ```text
//!  bytes    what the peer puts there
//!  0..32    header   of the receive that it has posted for a message of this member
//!  32..48   flags    of the last two messages to this member: arrived, or waiting to be fetched
//!  48..56   taken    up to which of this member's messages it has taken what it was offered
//!  56..64   queued   the number of messages in its queue
//!  64..112  offers   where the two messages of the flags wait
//!  112..128 queue    where its queue begins
//! ```
//!
//! Headers and flags are [`Record`]s: words that carry the number of their message, each for itself,
//! so that no order among them is needed.
//!
//! A message that waits when both flags are in use goes into the sender's *queue*: a list of
//! [`Node`](node::Node)s in the sender's memory, of which the peer is told the number alone. So an
//! offer never waits for room in the area.

mod contact;
mod lane;
mod layout;
mod node;
mod record;
mod staged;

pub(crate) use contact::meet;
pub(crate) use lane::{Ends, Lane, PostedOffer, Taken};
pub(crate) use layout::{Layout, OFFERS};
pub(crate) use node::{NODE, Node};
pub(crate) use record::{Kind, Record};
