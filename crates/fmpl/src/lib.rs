//! Message passing by matching areas: no queues, no searches, zero copy.
//!
//! A message-passing library spends much of its time on matching: queues of posted receives and of
//! unexpected messages are allocated, searched and kept in order. Here the tag of a message is an
//! *index* into a matching area that belongs to exactly two members, and one operation at a time
//! uses it. So a receive puts its header directly into the sender's area; the sender finds it
//! there, and puts the body directly into the receive buffer, followed by a flag. Neither side
//! allocates, searches or copies, no matter what else is outstanding.
//!
//! ```
//! use fmpl::Fmpl;
//! use rdma_fabric::{Fabric, ProgramResult};
//!
//! async fn ping(fabric: Fabric) -> ProgramResult<()> {
//!     let fmpl = Fmpl::init(&fabric).await?;
//!     let world = fmpl.world();
//!     let buffer = world.buffer::<u64>(4)?;
//!     match world.me() {
//!         0 => world.send(&[1, 2, 3, 4u64], 1, 0).await?,
//!         1 => assert_eq!(world.recv(&buffer, 0, 0).await?.bytes, 32),
//!         _ => {}
//!     }
//!     Ok(fmpl.finalize().await?)
//! }
//! # checks::documented::run(3, &ping);
//! ```
//!
//! # The parts of a message
//! The receiver passes fabric memory (a [`LocalSpan`](rdma_fabric::LocalSpan), for instance from
//! [`Communicator::buffer`]), the sender any slice. Lengths are in bytes; a message may be shorter
//! than its receive, and one that is longer is an error at both ends.
//!
//! A send completes when its slice may be reused. Without a [spool](Options::spool), that is after
//! its receive has been posted; with one, at the latest after the time-out: the message then waits
//! in the sender's memory, from which the receiver fetches it without the sender's help.
//!
//! # Collectives
//! [`Communicator::barrier`], [`broadcast`](Communicator::broadcast),
//! [`reduce`](Communicator::reduce) and [`allreduce`](Communicator::allreduce) are executed by
//! hardware if it is present, free and faster ([`Choice`]); otherwise they use binomial trees of
//! such messages, in separate channels. All members make the same calls in the same order. The trees
//! of all roots give a member up to 2⌈log2 p⌉ neighbours, which count among its
//! [peers](Options::peers).
//!
//! # Source
//! O. Tatebe, U. Nagashima, S. Sekiguchi, H. Kitabayashi, Y. Hayashida: *Design and Implementation
//! of FMPL: A Fast Message-passing Library Based on Remote Memory Operations* (IPSJ Transactions on
//! High Performance Computing).

#![forbid(unsafe_code)]

mod any;
mod area;
mod collective;
mod communicator;
mod cost;
mod error;
mod fmpl;
mod losses;
mod memory;
mod options;
mod peer;
mod peer_channels;
mod point;
mod progress;
mod spool;
mod state;

pub use any::{ReceivingAny, ReceivingAnyDirect};
pub use collective::{Algorithm, Choice, Collective, Op, Rule, Scalar, Table};
pub use communicator::{Buffer, Communicator};
pub use error::{Direction, FmplError, Result};
pub use fmpl::Fmpl;
pub use memory::Memory;
pub use options::{Options, Threads};
pub use point::{Received, Receiving, ReceivingInto, RecvAttempt, Sending, Sink, Source};
pub use spool::Spooled;
