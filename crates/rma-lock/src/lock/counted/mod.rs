//! Readers-writer locks that count their readers in one word, over remote atomics: MCS-RW-RP and
//! its relatives.
//!
//! # Words
//! At the home, each changed only by atomics or by its one legitimate writer:
//! * `count`: readers times 4; [`WRITER_ACTIVE`]; [`WRITER_INTERESTED`]; and, in some schemes, the
//!   first writer in the queue.
//! * `readers`: top of the stack of waiting readers.
//! * `tail`: last writer in the queue.
//! * `head`, in one scheme: first writer in that queue. Meaningful only while a flag is set;
//!   written before the flag is.
//!
//! At each rank: its queue nodes, and the words in which it publishes its current state
//! ([`crate::lock::queue`]).
//!
//! # Schemes
//! There is one protocol with four layouts of the count word ([`scheme`]):
//! * [`Flat`], [`crate::locks::RpLock`]: reader preference as printed. Waiting readers are counted,
//!   and the head has its own word.
//! * [`Packed`], [`crate::locks::PackedLock`]: like `Flat`, with the head in the count word. A
//!   writer that finds the word 0 enters by one compare-and-swap and hands the lock over by
//!   another, and the last reader's own subtraction returns the writer to wake.
//! * [`Barging`], [`crate::locks::BargingLock`]: like `Packed`, but running writers pass the queue
//!   ([`barge`]).
//! * [`WritersFirst`], [`crate::locks::WritersFirstLock`]: a registered writer keeps readers out. A
//!   waiting reader is not counted; when it is woken it tries again. [`scheme::READERS_WAIT`] shows
//!   the leaving writer that readers wait. A writer with a known successor only wakes it.
//!
//! # Steps
//! The protocol is a table of steps ([`steps`]), named R1–R7 (reader lock), U1–U4 (reader unlock),
//! W1–W7 (writer lock), X2–X7 (writer unlock) after Mellor-Crummey and Scott's Figure 7, as
//! numbered in this project's documentation (`docs/systems/locks.md`), X1 being redundant. It
//! differs from the printed one:
//! * A waiter is woken by a compare-and-swap instead of a store. It fails if the waiter gave up (a
//!   deadline) or if the wake belongs to another turn of the node; the waker then acts on behalf of
//!   a waiter that gave up.
//! * A writer links itself behind its predecessor with a swap. If the successor of a leaving writer
//!   has not linked itself yet (the printed X4 waits for it), the writer stores
//!   [`PASSED`](crate::lock::queue::NodeId::PASSED) in the link and leaves; the successor finds the
//!   mark and registers itself. So no release waits for another rank's CPU.
//! * A node that is not in a queue is ready to be waited on: the rank that takes it out of a queue
//!   makes it ready again (R2, W1).
//! * Flags known to be clear, or set, are changed by an addition (W4, X2, X6).
//! * The leaving writer checks for waiting readers only if the count word shows any (X3).
//! * A writer that hands over to a known successor wakes it before any other step.
//!
//! # Fast paths
//! Uncontended acquisitions and releases have short code paths ([`fast`]), which execute the steps
//! of the table without looking them up. In all other cases the table continues at the step that
//! the fast path has reached ([`crate::lock::queue::Walk`]).

mod barge;
mod calls;
mod fast;
mod guard;
mod part;
pub(crate) mod recoverable;
pub(crate) mod scheme;
pub(crate) mod steps;

pub(crate) use calls::{Read, Write, read_rest, write_rest};
pub(crate) use guard::Leave;
pub use guard::{ReadGuard, WriteGuard};
pub(crate) use recoverable::Recoverable;
pub use scheme::{Barging, Flat, Packed, Rules, Scheme, WritersFirst};

use crate::{
    Result,
    lock::{queue::Queue, recovery::EpochLink},
};
use barge::Seen;
use core::{fmt, marker::PhantomData, sync::atomic::AtomicU64};
use part::{Core, Home};
use rdma_fabric::{Fabric, GroupMemory, Rank};
use std::sync::{Arc, OnceLock};
use steps::{CountedTable, Steps};

/// A readers-writer lock with reader preference, homed at one rank: the lock of Hatanaka, Hori and
/// Ishikawa.
///
/// Uncontended remote operations: shared lock 1 atomic, unlock 1; exclusive lock 3 atomics and a
/// put, unlock 2 atomics.
pub type RpLock = CountedLock<Flat>;

/// A readers-writer lock with reader preference that registers a writer in a single word.
///
/// Uncontended remote operations: shared lock 1 atomic, unlock 1; exclusive lock 2 atomics,
/// unlock 2. A hand-over from writer to writer costs 1 atomic and a wake; the last reader admits a
/// writer by 2 atomics and a wake.
pub type PackedLock = CountedLock<Packed>;

/// A readers-writer lock with reader preference that allows writers to barge: a running writer
/// takes a free lock although others wait, so the lock need not wait for a rank that does not run.
///
/// Writers do not starve: a rank passes waiting ranks at most 16,384 times, and then queues behind
/// them; a rank that was woken and found itself passed is not passed again. Readers still go first.
/// Uncontended remote operations: shared lock 1 atomic, unlock 1; exclusive lock 1 atomic, unlock
/// 1.
pub type BargingLock = CountedLock<Barging>;

/// A readers-writer lock with writer preference: readers do not enter while a writer waits.
///
/// Readers starve under a steady stream of writers. Uncontended remote operations: as
/// [`PackedLock`]. A waiting reader posts 3 atomics (the first of several that wait together posts
/// one more) and 1 more when it is woken. A hand-over from writer to writer costs only the wake.
pub type WritersFirstLock = CountedLock<WritersFirst>;

/// A readers-writer lock whose readers are counted in a word of one rank: [`RpLock`],
/// [`PackedLock`], [`BargingLock`] or [`WritersFirstLock`].
///
/// One value per rank refers to one lock shared by all; clones of it are the same value. A rank may
/// hold the lock shared several times (with [`WritersFirstLock`] the second acquisition may wait
/// for a writer that waits for the first hold). Taking the lock again while holding it exclusively
/// deadlocks, as with any lock that is not reentrant.
///
/// # Errors
/// Besides those of [`crate::RmaLock::read_before`], [`crate::LockError::TooManyWaiting`] for an
/// acquisition beyond this rank's queue nodes; on creation of the lock,
/// [`crate::LockError::TooManyRanks`]. The loss of any rank ends a wait with
/// [`rdma_fabric::FabricError::PeerLost`]; no cleanup is then needed.
///
/// # Giving up
/// A wait that ends by its deadline, or because its future is dropped, costs 1 atomic on this
/// rank's own memory; the rank that would have woken it finds its mark, subtracts a reader from the
/// count, and skips a writer.
///
/// # Dropped futures
/// Each future of a lock or guard may be dropped at any moment, by `select!` or a deadline. Work
/// that others still depend on is [detached](Fabric::detach): a dropped acquisition ends without
/// holding the lock, a dropped release ends having released it. Other ranks, and later calls of
/// this rank, are not affected.
///
/// # Threads
/// A lock may be used by several threads if its fabric may. It is fastest for the thread that uses
/// it first.
#[derive(Clone)]
pub struct CountedLock<S: Scheme> {
    core: Arc<Core>,
    scheme: PhantomData<S>,
}

impl<S: Scheme> fmt::Debug for CountedLock<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {:?}", S::RULES.name, self.core.queue)?;
        if S::RULES.barges { self.core.seen.fmt(f) } else { Ok(()) }
    }
}

impl<S: Scheme> CountedLock<S> {
    fn with(fabric: &Fabric, memory: GroupMemory, home: Rank, link: EpochLink) -> Result<Self> {
        let count = fabric.remote_word(memory.at(home, Home::Count as u64)?)?;
        let queue = Queue::over(fabric, memory, home, S::RULES.recoverable)?;
        let is_in_place = fabric.direct().get_word(&count).is_some();
        let table = CountedTable {
            rules: const { &S::RULES },
            ranks: fabric.ranks(),
            ordered_here: queue.ordered_here,
            passing: fabric.caps().immediate,
            looks: if is_in_place { barge::SPIN_LIMIT } else { 0 },
        };
        let core = Core {
            queue,
            table,
            count,
            is_in_place,
            writers: OnceLock::new(),
            held: AtomicU64::new(0),
            seen: Seen::default(),
            link,
        };
        Ok(CountedLock { core: Arc::new(core), scheme: PhantomData })
    }
}
