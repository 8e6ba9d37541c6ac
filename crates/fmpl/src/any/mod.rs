//! Messages without an explicit match on the receiver's side (paper, sections 2.4, 2.5, 3.2).
//!
//! # Any index, chosen by the receiver
//! Among the messages of one sender, a receive of any index takes one that no other receive will
//! take. The sender can't decide that: it may see a receive of any index while a receive of the
//! specific index is on its way to it. So the receiver decides. It publishes to the sender how many
//! messages it *wants*, and the sender offers that many in any case, even if there is no room in
//! the spool; the receiver then takes one of the offered messages, and copies it.
//!
//! # Any index, matched by the sender
//! The receiver puts a header into the slot of the sender's area; a send whose own receive is not
//! posted uses it, and puts the body into the buffer of the header. A receive of the index that is
//! on its way at that moment remains posted, for the next message of the index: a message in the
//! slot has numbers of its own, so no channel counts it. (The two receives are concurrent with the
//! send, so the paper's rule, that an explicit index takes its explicit receive, does not decide.)
//!
//! A message that was sent before the header arrived is offered, and may be for this receive. Only
//! one side may act then, although no header can be withdrawn:
//!
//! * A header carries the number of offers that the receiver has seen. The sender uses it only if it
//!   has made no other offers. Otherwise the header is *void*, and since the number only grows, it
//!   remains so.
//! * An offer carries the number of headers that the sender has used before. So an offer that the
//!   receiver had not seen when it posted the header states what has become of the header: it was
//!   used, and its flag is on its way, or it is void.
//! * When its header is void, the receiver takes an offered message that no other receive will
//!   take. If all have receives of their own, it posts another header. So a receive never waits for
//!   another call of the sender.
//!
//! Messages of one index are matched in the order sent: no header is posted while an offered message
//! waits behind one that has a receive of its own.
//!
//! A header is visible to the sender before a later receive of an index is, and after an earlier one
//! is: where both are in use, the receiver flushes. A receive whose future was dropped keeps its
//! header until a message has used it, or until it is void.
//!
//! # Any sender
//! Such receives have channels of their own, where messages are always offered. A sender then
//! changes the receiver's *doorbell*, the one word for which the receiver waits before it checks all
//! areas again. Each message has a unique doorbell value, so a change is never missed.

mod changes;
mod direct;
mod immediate;
mod index;
mod offers;
mod slot;
mod source;

pub use direct::ReceivingAnyDirect;
pub(crate) use immediate::Senders;
pub use index::ReceivingAny;
pub(crate) use offers::TakenOffers;
pub(crate) use slot::{AnySlot, SlotHeader};
