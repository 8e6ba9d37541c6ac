//! Control queues as Tofu-like network interfaces have them: the second contract, on top of [`Fabric`].
//!
//! A control queue (CQ) is three rings. Software writes descriptors into the *transmit order queue* (TOQ), which
//! an RDMA engine executes in order; the engine reports a command's completion in the *transmit complete queue* (TCQ), and
//! the receiving engine reports arrivals and returned values in the *message receive queue* (MRQ). Memory is addressed by
//! *steering addresses* ([`Stadd`]), each of which means something on one queue only.
//!
//! # Session mode
//! A queue opened in [`QueueMode::Session`] has a third pointer into its TOQ, the *session offset* (or *scheduling
//! pointer*). The read pointer never passes it: a command waits until the offset is beyond *all* its slots. A put that
//! arrives for the queue advances the offset by its [`Posting::sps`]. No CPU takes part in it, so a queue filled once is a
//! program that peers' arrivals run. In full:
//!
//! * The unit is the 32-byte slot. A two-slot command with one slot of credit does not start.
//! * Puts advance, inline ones too, whatever their length; a put of several packets does so once, one of n blocks n times.
//!   Gets, atomics and nops don't.
//! * At the receiver the bytes come first, then the remote notice, then the advance: what it releases can forward what just
//!   arrived.
//! * Credit that arrives before its commands are posted is kept. A put to oneself gives credit like any other.
//! * The offset is a ring index in hardware: it wraps, and credit a whole ring ahead is lost. [`QueueSpec::checked`] makes that
//!   an error, [`QueueError::CreditOverrun`].
//! * Other queues ignore advances; where the poster is checked, it learns of it by [`QueueError::CreditIgnored`]. A put that fails at its target advances nothing.
//! * At first the offset stands at the read pointer, or [`QueueSpec::initial_offset`] slots ahead.
//!
//! # Errors of commands
//! Posting checks what can be told without memory ([`QueueError::Limit`]). What is wrong with own memory shows when the
//! command is executed, as the [`Completion::status`]; what is wrong at the target as the [`MrqNotice::status`] in the *poster's*
//! MRQ. A command that asked for no such notice keeps its first error for the next call that polls or waits on the queue,
//! which returns it once. Later commands go on.
//!
//! # Source
//! M. Hatanaka et al., MPI persistent neighbourhood collectives over Tofu2 protocol offload, §4.1 (pointers and SPS); the public
//! uTofu headers (names, flags, notice records); behaviour of Fujitsu's uTofu simulator (units, wrap, credit).

mod absent;
mod command;
mod error;
mod id;
mod notice;
mod spec;

pub use absent::NoQueue;
pub use command::{Armw, Blocks, Command, Inline, Posting, Width};
pub use error::QueueError;
pub use id::{QueueId, Stadd};
pub use notice::{Completion, MrqKind, MrqNotice};
pub use spec::{Pointers, QueueLimits, QueueMode, QueueSpec};

use crate::{Deps, Fabric, FabricError, Refused, Result};
use core::{fmt, future::Future};

/// A fabric with control queues, normal ones and such in session mode.
///
/// Whether there are any is asked at run time: the provided methods are those of a provider without, whose
/// [`SessionFabric::Queue`] is [`NoQueue`]. So a program may use them where they are and do without elsewhere.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not known to have control queues",
    note = "ask for `F: SessionFabric`, or for `F: FullFabric`, which is all that a program is given"
)]
pub trait SessionFabric: Fabric {
    /// An open control queue of this rank.
    type Queue: ControlQueue<Fabric = Self>;

    /// What queues there are.
    fn queue_limits(&self) -> QueueLimits {
        QueueLimits::NONE
    }

    /// Open a control queue. Local: peers learn its id by other means.
    ///
    /// # Errors
    /// [`QueueError::InUse`], [`QueueError::NoneFree`], [`QueueError::Limit`] (depths that are no power of two, or above
    /// the limit, count as such), [`FabricError::OutOfMemory`]; [`FabricError::Unsupported`] where there are no queues.
    fn open_queue(&self, spec: QueueSpec) -> Result<Self::Queue> {
        let _ = spec;
        Err(FabricError::Unsupported { feature: "control queues" })
    }
}

/// A control queue of this rank. Dropping it closes it: commands that have not started are dropped; whatever addresses it
/// afterwards fails with [`QueueError::NotOpen`].
pub trait ControlQueue: fmt::Debug + 'static {
    /// The fabric it belongs to.
    type Fabric: SessionFabric<Queue = Self>;

    /// Its name.
    fn id(&self) -> QueueId;

    /// How it was opened; engine and number are those it got.
    fn spec(&self) -> QueueSpec;

    // ----- memory ----------------------------------------------------------------------------

    /// Register `region` on this queue under an automatic tag: the address of its first byte. The same region again has the
    /// same address.
    ///
    /// # Errors
    /// [`QueueError::TooManyTags`], [`FabricError::StaleRegion`], [`FabricError::Unsupported`] for memory that queues can't
    /// reach.
    fn register(&self, region: &<Self::Fabric as Fabric>::Region) -> Result<Stadd>;

    /// Register it under the fixed tag `tag`: peers can name it by [`Stadd::fixed`] without being told.
    ///
    /// # Errors
    /// As [`ControlQueue::register`], [`QueueError::TagInUse`].
    fn register_fixed(&self, region: &<Self::Fabric as Fabric>::Region, tag: u8) -> Result<Stadd>;

    /// Refuse writes of peers to what is registered under `at` from now on, or allow them again.
    ///
    /// # Errors
    /// [`QueueError::NoSuchTag`].
    fn set_read_only(&self, at: Stadd, read_only: bool) -> Result<()>;

    /// End the registration of `at`'s tag. Commands that address it afterwards fail with [`QueueError::NoSuchTag`]; those being
    /// executed finish first. The region itself stays.
    ///
    /// # Errors
    /// [`QueueError::NoSuchTag`].
    fn deregister(&self, at: Stadd) -> Result<()>;

    // ----- commands --------------------------------------------------------------------------

    /// Post a command: [`Refused::Full`] if the TOQ has no room for all its slots now. Never blocks. A posting is plain data,
    /// so it isn't given back.
    ///
    /// # Errors
    /// [`Refused`] with [`QueueError::Limit`] for numbers out of range, or the error that stopped the queue.
    fn try_post(&self, posting: Posting) -> Result<(), Refused<()>>;

    /// Post a command, waiting for room, first come first served. A session queue gets room as peers advance it: `deps`.
    ///
    /// # Errors
    /// As [`ControlQueue::try_post`]; [`FabricError::Deadlock`] or [`FabricError::PeersLeft`] where nothing will ever drain the
    /// queue, as when it is full of delayed starts.
    fn post(&self, posting: Posting, deps: Deps<'_>) -> impl Future<Output = Result<()>>;

    /// Post several commands one after the other, as [`ControlQueue::post`] of each. But a provider may let those that find room begin together, when
    /// all of them are there: that is cheaper. Those before one that fails are posted; if the future is dropped, the first few are.
    ///
    /// # Errors
    /// As [`ControlQueue::post`], of the first that fails.
    fn post_all(&self, postings: &[Posting], deps: Deps<'_>) -> impl Future<Output = Result<()>> {
        async move {
            for posting in postings {
                self.post(*posting, deps).await?;
            }
            Ok(())
        }
    }

    /// The next completion, if one is here. Completions come in posting order.
    ///
    /// # Errors
    /// What stopped the queue, or a command's first error that was not reported otherwise.
    fn poll_tcq(&self) -> Result<Option<Completion>>;

    /// Wait for the next completion.
    ///
    /// # Errors
    /// As [`ControlQueue::poll_tcq`] and [`Fabric::wait_until`].
    fn next_completion(&self, deps: Deps<'_>) -> impl Future<Output = Result<Completion>>;

    /// The next notice, if one is here. Whoever gets it sees what it tells of (acquire).
    ///
    /// # Errors
    /// As [`ControlQueue::poll_tcq`], [`QueueError::MrqOverflow`].
    fn poll_mrq(&self) -> Result<Option<MrqNotice>>;

    /// Wait for the next notice.
    ///
    /// # Errors
    /// As [`ControlQueue::poll_mrq`] and [`Fabric::wait_until`].
    fn next_notice(&self, deps: Deps<'_>) -> impl Future<Output = Result<MrqNotice>>;

    /// Where it stands now.
    fn pointers(&self) -> Pointers;

    /// Close it and tell how many of its commands were never started.
    ///
    /// # Errors
    /// A command's first error that was not reported otherwise; the queue is closed all the same.
    fn close(self) -> Result<u64>;
}

impl From<QueueError> for FabricError {
    fn from(error: QueueError) -> Self {
        FabricError::Queue(error)
    }
}
