//! Readers-writer locks that count their readers in one word, over remote atomics: MCS-RW-RP and
//! its relatives.
//!
//! # Words
//! At the home, each changed only by atomics or by its one legitimate writer:
//! * `count`: readers times 4; [`WRITER_ACTIVE`]; [`WRITER_INTERESTED`]; and, where the scheme says
//!   so, the first writer in the queue.
//! * `readers`: top of the stack of waiting readers.
//! * `tail`: last writer in the queue.
//! * `head`, in one scheme: first writer in that queue. Meaningful only while a flag is set;
//!   written before the flag is.
//!
//! At each rank: its queue nodes, and the words in which it publishes what it is doing
//! ([`crate::queue`]).
//!
//! # Schemes
//! There is one protocol and three ways to fill the count word ([`scheme`]):
//! * [`Flat`], [`crate::locks::RpLock`]: reader preference as printed. Waiting readers are counted,
//!   and the head has its own word.
//! * [`Packed`], [`crate::locks::PackedLock`]: like `Flat`, with the head in the count word. A
//!   writer that finds the word 0 enters by one compare-and-swap and hands the lock over by
//!   another, and the last reader learns from its own subtraction whom to wake.
//! * [`WritersFirst`], [`crate::locks::WritersFirstLock`]: a registered writer keeps readers out. A
//!   waiting reader is not counted; a wake makes it try again. [`scheme::READERS_WAIT`] tells the
//!   leaving writer that some wait. A writer whose successor is known just wakes it.
//!
//! # Steps
//! Comments name the steps R1–R7 (reader lock), U1–U4 (reader unlock), W1–W7 (writer lock), X2–X7
//! (writer unlock) of Mellor-Crummey and Scott's Figure 7 as numbered in this project's
//! documentation (`docs/systems/rp-lock.md`), X1 being redundant. The protocol differs from the
//! printed one:
//! * A waiter is woken by a compare-and-swap instead of a store. It fails if the waiter gave up (a
//!   deadline) or if the wake belongs to another turn of the node; the waker then acts for a waiter
//!   that gave up: [`duties`].
//! * A writer links itself behind its predecessor with a swap. A leaving writer whose successor is
//!   on its way but not linked yet (the printed X4 waits for it) leaves [`NodeId::PASSED`] in the
//!   link and goes; the successor finds that and registers itself. So no release waits for another
//!   rank's CPU.
//! * A node in no queue is ready to be waited on: whoever takes it out of a queue makes it ready
//!   again (R2, W1).
//! * Flags known to be clear, or set, are changed by an addition (W4, X2, X6).
//! * The leaving writer looks for waiting readers only if the count word shows any (X3).
//!
//! # Fast and slow
//! Where operations complete when posted, an uncontended acquisition or release is a few lines
//! without a wait (`reader::ReadNow` and `ReleaseRead`; `Core::start` and `leave`). Where they take
//! time, a reader's one atomic is awaited in place ([`awaited::AwaitedAtomic`]). As soon as an
//! acquisition or release has to wait for more, or to be woken, it continues in a boxed future that
//! owns what it needs, so that dropping it can leave it to the fabric ([`crate::detach`]).

mod awaited;
mod duties;
mod guard;
mod hand_over;
mod later;
mod reader;
mod reader_wait;
pub(crate) mod recoverable;
mod scheme;
mod writer;
mod writer_exit;
mod writer_wait;

pub use guard::{ReadGuard, WriteGuard};
pub(crate) use recoverable::Recoverable;
pub use scheme::{Flat, Packed, Scheme, WritersFirst};

use crate::{
    Lock, LockError, Result,
    detach::HasFabric,
    queue::{HOME_BYTES, Lane, Queue, Transition, is_inside},
};
use core::{fmt, future::Future, ops::Deref};
use rdma_fabric::{Amo, Fabric, FabricError, GroupMemory, Handle, Rank, RemoteWord};
use std::sync::{Arc, OnceLock};

/// The lock's words at its home, by their offsets in bytes.
#[derive(Clone, Copy)]
enum Home {
    Count = 0,
    Readers = 8,
    Tail = 16,
    Head = 24,
}
const _: () = assert!(Home::Head as u64 + 8 <= HOME_BYTES);

/// A readers-writer lock with reader preference, homed at one rank: the lock of Hatanaka, Hori and
/// Ishikawa.
///
/// Uncontended remote operations: shared lock 1 atomic, unlock 1; exclusive lock 3 atomics and a
/// put, unlock 2 atomics.
pub type RpLock = CountedLock<Flat>;

/// A readers-writer lock with reader preference that registers a writer in a single word.
///
/// Uncontended remote operations: shared lock 1 atomic, unlock 1; exclusive lock 2 atomics, unlock 2.
/// A hand-over from writer to writer costs 1 atomic and a wake; the last reader lets a writer in by
/// 2 atomics and a wake.
pub type PackedLock = CountedLock<Packed>;

/// A readers-writer lock with writer preference: no reader gets in while a writer waits.
///
/// Readers starve under a steady stream of writers. Uncontended remote operations: as
/// [`PackedLock`]. A reader that waits posts 3 atomics (the first of those that wait together posts
/// one more) and 1 more when it is woken. A hand-over from writer to writer costs only the wake.
pub type WritersFirstLock = CountedLock<WritersFirst>;

/// A readers-writer lock whose readers are counted in a word of one rank: [`RpLock`],
/// [`PackedLock`] or [`WritersFirstLock`].
///
/// One value per rank refers to one lock shared by all; clones of it are the same value. A rank may
/// hold the lock shared several times (with [`WritersFirstLock`] the second acquisition may wait
/// for a writer that waits for the first hold). Asking for the lock again while holding it
/// exclusively deadlocks, as with any lock that is not reentrant.
///
/// # Dropped futures
/// Each future of a lock or guard may be dropped at any moment, by `select!` or a deadline. What
/// others still depend on is [detached](Fabric::detach): a dropped acquisition ends not holding the
/// lock, a dropped release ends having released it. Other ranks, and later calls of this rank, need
/// not know of it.
///
/// # Threads
/// A lock may be used by several threads if its fabric may. It is fastest for the thread that uses
/// it first.
#[derive(Clone)]
pub struct CountedLock<S: Scheme> {
    pub(crate) core: Arc<Core<S>>,
}

impl<S: Scheme> fmt::Debug for CountedLock<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {:?}", S::NAME, self.core.queue)
    }
}

/// A rank's side of a lock, kept alive by its values and by the work that their dropped futures
/// still do.
pub(crate) struct Core<S: Scheme> {
    queue: Queue,
    count: RemoteWord<u64>,
    /// Created when this rank first writes, which most ranks of a large job never do.
    writers: OnceLock<Box<Writers>>,
    link: S::EpochLink,
}

/// The home words that only writers use.
pub(crate) struct Writers {
    tail: RemoteWord<u64>,
    /// Used only if the [scheme](Scheme) has it.
    head: RemoteWord<u64>,
}

impl<S: Scheme> Deref for Core<S> {
    type Target = Queue;

    #[inline(always)]
    fn deref(&self) -> &Queue {
        &self.queue
    }
}

impl<S: Scheme> fmt::Debug for Core<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Core({:?})", self.queue)
    }
}

impl<S: Scheme> CountedLock<S> {
    /// Makes a lock homed at `home`. Collective over the job: all ranks call it in the same order
    /// relative to other symmetric allocations.
    ///
    /// # Errors
    /// As [`Fabric::alloc_symmetric`], [`rdma_fabric::FabricError::NoSuchRank`], and
    /// [`crate::LockError::TooManyRanks`].
    pub fn symmetric(fabric: &Fabric, home: Rank) -> impl Future<Output = Result<Self>> {
        <Self as Lock>::symmetric(fabric, home)
    }

    fn with(fabric: &Fabric, memory: GroupMemory, home: Rank, link: S::EpochLink) -> Result<Self> {
        let at = |word: Home| memory.at(home, word as u64);
        let core = Core {
            count: fabric.remote_word(at(Home::Count)?)?,
            writers: OnceLock::new(),
            queue: Queue::over(fabric, memory, home, S::RECOVERABLE)?,
            link,
        };
        Ok(CountedLock { core: Arc::new(core) })
    }

    pub(crate) fn over(fabric: &Fabric, memory: GroupMemory, home: Rank) -> Result<Self> {
        Self::with(fabric, memory, home, S::EpochLink::default())
    }

    /// Returns the rank whose memory holds the lock words.
    pub fn home(&self) -> Rank {
        self.core.home
    }

    /// Returns the fabric the lock lives on.
    pub fn fabric(&self) -> &Fabric {
        &self.core.fabric
    }
}

impl<S: Scheme> HasFabric for Core<S> {
    fn fabric(&self) -> &Fabric {
        &self.fabric
    }
}

/// The queue's functions of the same names, followed by what a recoverable lock does after each
/// step of this rank.
impl<S: Scheme> Core<S> {
    #[inline(always)]
    fn publish(&self, step: Transition) -> Result<(), FabricError> {
        self.publish_in(self.published.lane(), step)
    }

    #[inline(always)]
    fn publish_in(&self, lane: Lane, step: Transition) -> Result<(), FabricError> {
        self.queue.publish_in(lane, step)?;
        self.went_on();
        Ok(())
    }

    #[inline(always)]
    fn went_on(&self) {
        S::went_on(&self.link, &self.fabric, || !is_inside(self.published.sum()));
    }

    /// Returns the word with the top of the stack of waiting readers. It is resolved each time: a
    /// rank that looks there has to wait anyway.
    fn readers(&self) -> Result<RemoteWord<u64>, FabricError> {
        self.fabric.remote_word(self.at_home(Home::Readers as u64)?)
    }

    #[inline(always)]
    fn writers(&self) -> Result<&Writers, FabricError> {
        match self.writers.get() {
            Some(writers) => Ok(writers),
            None => self.make_writers(),
        }
    }

    #[cold]
    #[inline(never)]
    fn make_writers(&self) -> Result<&Writers, FabricError> {
        let writers = Writers {
            tail: self.fabric.remote_word(self.at_home(Home::Tail as u64)?)?,
            head: self.fabric.remote_word(self.at_home(Home::Head as u64)?)?,
        };
        Ok(self.writers.get_or_init(|| Box::new(writers)))
    }

    /// Announces a step and posts its atomic, waiting for room. Until the atomic is posted, nothing
    /// depends on this future.
    async fn post(&self, step: Transition, word: &RemoteWord<u64>, amo: Amo<u64>) -> Result<Handle<u64>, FabricError> {
        let posted = self.queue.post(step, word, amo).await;
        self.went_on();
        posted
    }

    /// Announces a step, and does or posts its atomic; what is posted is a copy of `amo`, as in
    /// [`crate::in_place::atomic_now`].
    #[inline(always)]
    fn begin(&self, lane: Lane, step: Transition, word: &RemoteWord<u64>, amo: Amo<u64>) -> Started {
        if self.queue.publish_in(lane, step).is_err() {
            return Started::Refused;
        }
        let begun = match self.fabric.atomic_now(word, amo) {
            Some(old) => Started::Done(old),
            None => match self.begin_slowly(lane, step, word, amo.to_bits()) {
                Some(posted) => Started::Posted(posted),
                None => Started::Refused,
            },
        };
        self.went_on();
        begun
    }

    /// Posts the atomic of an announced step; if it can't be posted, takes the announcement back.
    #[inline(never)]
    fn begin_slowly(&self, lane: Lane, step: Transition, word: &RemoteWord<u64>, amo: Amo<u64>) -> Option<Handle<u64>> {
        let posted = self.fabric.try_atomic(word, amo);
        if posted.is_err() {
            let _ = self.queue.publish_in(lane, step.undone());
        }
        posted.ok()
    }

    /// Returns whether `error` is the loss of a member that this lock tolerates.
    fn tolerates(&self, error: &LockError) -> bool {
        self.is_gone(error) && matches!(error, LockError::Fabric(FabricError::PeerLost { .. }))
    }

    /// Returns whether `error` is the loss of a member, or means that a member has dropped its
    /// part: that member is about to be lost, or has left the lock, as members may when the epoch
    /// is closed.
    fn is_gone(&self, error: &LockError) -> bool {
        let LockError::Fabric(error) = error else { return false };
        S::RECOVERABLE && error.gone().is_some_and(|rank| rank != self.home)
    }
}

/// The outcome of starting a step's atomic.
enum Started {
    Done(u64),
    Posted(Handle<u64>),
    /// The atomic was not posted.
    Refused,
}
