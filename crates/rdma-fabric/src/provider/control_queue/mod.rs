//! The interface of a provider with control queues like those of Tofu network interfaces: the traits,
//! and the commands and reports that they exchange. Programs use
//! `fabric_offload::ControlQueue`.
//!
//! A control queue (CQ) is three rings. Software writes descriptors into the *transmit order queue*
//! (TOQ), which an RDMA engine executes in order; the engine reports a command's completion in the
//! *transmit complete queue* (TCQ), and the receiving engine reports arrivals and returned values
//! in the *message receive queue* (MRQ). Memory is addressed by *steering addresses* ([`Stadd`]),
//! each of which is valid on one queue only.
//!
//! # Session mode
//! A queue opened in [`QueueMode::Session`] has a third pointer into its TOQ, the *session offset*
//! (or *scheduling pointer*). The read pointer never passes it: a command waits until the offset is
//! beyond *all* its slots. A put that arrives for the queue advances the offset by its
//! [`Posting::sps`]. No CPU takes part, so a queue filled once is a program that is run by peers'
//! arrivals. In detail:
//!
//! * The unit is the 32-byte slot. A two-slot command with one slot of credit does not start.
//! * Puts of any length, including inline puts, advance it; a put of several packets does so once,
//!   a put of n blocks n times. Gets, atomics and nops don't.
//! * At the receiver the order is: the bytes, the remote notice, the advance. So the commands that
//!   it releases can forward the bytes that have just arrived.
//! * Credit that arrives before its commands are posted is kept. A put to oneself gives credit like
//!   any other.
//! * The offset is a ring index in hardware: it wraps, and credit a whole ring ahead is lost.
//!   [`QueueSpec::checked`] makes that an error, [`QueueError::CreditOverrun`].
//! * Queues of other modes ignore advances; a poster in checking mode receives
//!   [`QueueError::CreditIgnored`]. A put that fails at its target advances nothing.
//! * Initially the offset is equal to the read pointer, or [`QueueSpec::initial_offset`] slots
//!   ahead.
//!
//! # Errors of commands
//! Posting performs the checks that do not involve memory ([`QueueError::Limit`]). A fault in local
//! memory is reported when the command is executed, as the [`Completion::status`]; a fault at the
//! target is reported as the [`MrqNotice::status`] in the *poster's* MRQ. If a command did not
//! request such a notice, the queue keeps its first error for the next call that polls or waits on
//! the queue, which returns it once. Later commands still run.
//!
//! # Source
//! M. Hatanaka et al., MPI persistent neighbourhood collectives over Tofu2 protocol offload, §4.1
//! (pointers and SPS); the public uTofu headers (names, flags, notice records); behaviour of
//! Fujitsu's uTofu simulator (units, wrap, credit).

mod command;
mod error;
mod id;
mod interface;
mod posting;
mod program;
mod spec;

pub use crate::op::Blocks;
pub use command::{Command, Inline, Width};
pub use error::QueueError;
pub use id::{QueueId, Stadd};
pub use interface::{Queue, QueueSide, Queues};
pub use posting::{Completion, MrqKind, MrqNotice, Posting};
pub use program::{ExpectedReports, NumberIn, ProgramCommand};
pub use spec::{Pointers, QueueLimits, QueueMode, QueueSpec};
