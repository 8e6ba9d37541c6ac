//! MCS-RW-RP: the reader-preference queue lock over remote atomics.
//!
//! # Words
//! At the home, each only ever changed by atomics or by its one legitimate writer:
//! * `count`: readers, inside or announced, times 4; [`WRITER_ACTIVE`]; [`WRITER_INTERESTED`]. Both flags are never
//!   set together.
//! * `readers`: top of the stack of waiting readers.
//! * `tail`: last of the queue of writers.
//! * `head`: first of that queue. Meaningful only while a flag is set; written before the flag is.
//!
//! At each rank: its queue nodes and the words in which it publishes what it is doing ([`crate::queue`]).
//!
//! # Steps
//! Comments name the steps R1–R7 (reader lock), U1–U4 (reader unlock), W1–W7 (writer lock), X2–X7 (writer unlock) of
//! Mellor-Crummey and Scott's Figure 7 as numbered in this project's documentation (`docs/rp-lock.md`), X1 being
//! redundant. These things differ from the print:
//! * A waiter is woken by a compare-and-swap and not by a store. It fails if the waiter gave up (a deadline) or
//!   if the wake belongs to another turn of the node or another epoch of the lock; the waker then acts for who gave
//!   up: [`settle`].
//! * A writer links itself behind its predecessor with a swap. A leaving writer that finds no successor linked
//!   yet, though one is on its way (the printed X4 waits for it), leaves [`NodeId::PASSED`] there and goes; the successor finds it
//!   and registers itself. So no release waits for another rank's CPU.
//! * A node is ready to be waited on as long as it is in no queue: who takes it out of one makes it so (R2, W1).
//! * Flags known to be clear, or set, are changed by an addition (W4, X2, X6).
//! * The leaving writer looks for waiting readers only if the count shows any (X3).
//!
//! # Fast and slow
//! Where operations are over when they are posted, an acquisition or release that meets nobody is a few lines without a wait
//! (`reader::Enter` and `Leave`; `Core::start` and `leave`). Where they take time, a reader's one atomic is awaited in place
//! ([`in_flight::InFlight`]). As soon as one has to wait for more, or to be woken, it goes on in a boxed future that owns what it needs,
//! so that dropping it can leave it to the fabric ([`crate::owed`]).

mod in_flight;
mod layout;
pub(crate) mod reader;
mod settle;
pub(crate) mod writer;

pub(crate) use writer::Writing;

use crate::{Lock, Result, owed::Side, queue::Queue};
use core::{fmt, future::Future, ops::Deref};
use layout::Home;
use rdma_fabric::{Fabric, GroupMemory, Rank, RemoteSpan, RemoteWord};
use std::sync::Arc;

/// A writer is registered at `head` and waits for the readers to leave.
const WRITER_INTERESTED: u64 = 1;
/// A writer is inside.
const WRITER_ACTIVE: u64 = 2;
/// One reader.
const READER: u64 = 4;

/// A readers-writer lock with reader preference, homed at one rank.
///
/// One value per rank refers to one lock for all; clones of it are the same value. A rank may hold the lock shared several times;
/// holding it exclusively and asking for it again deadlocks, as with any lock that is not reentrant.
///
/// Remote operations without contention: shared lock 1 atomic, unlock 1; exclusive lock 3 atomics and a put,
/// unlock 2 atomics.
///
/// # Dropped futures
/// Each future of a lock or guard may be dropped at any moment, by `select!` or a deadline. What it still owes is
/// [detached](Fabric::detach): a dropped acquisition ends not holding the lock, a dropped release ends having released it. The
/// others, and later calls of this rank, need not know.
///
/// # Threads
/// A lock may be used by several threads, if its fabric may. It is fastest for the thread that uses it first.
pub struct RpLock<F: Fabric> {
    pub(crate) core: Arc<Core<F>>,
}

impl<F: Fabric> Clone for RpLock<F> {
    fn clone(&self) -> Self {
        RpLock { core: self.core.clone() }
    }
}

impl<F: Fabric> fmt::Debug for RpLock<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RpLock({:?})", self.core.queue)
    }
}

/// A rank's side of a lock, kept by its values and by what their dropped futures still owe.
pub(crate) struct Core<F: Fabric> {
    queue: Queue<F>,
    count: RemoteWord<F, u64>,
    readers: RemoteWord<F, u64>,
    tail: RemoteWord<F, u64>,
    /// One word: as a span, because it is put and got.
    head: RemoteSpan<F, u64>,
}

impl<F: Fabric> Deref for Core<F> {
    type Target = Queue<F>;

    #[inline(always)]
    fn deref(&self) -> &Queue<F> {
        &self.queue
    }
}

impl<F: Fabric> fmt::Debug for Core<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Core({:?})", self.queue)
    }
}

impl<F: Fabric> RpLock<F> {
    /// A lock homed at `home`. Collective over the job: all ranks call it in the same order relative to other
    /// symmetric allocations.
    ///
    /// # Errors
    /// As [`Fabric::alloc_symmetric`], and [`rdma_fabric::FabricError::NoSuchRank`].
    pub fn symmetric(fabric: &F, home: Rank) -> impl Future<Output = Result<Self>> {
        <Self as Lock<F>>::symmetric(fabric, home)
    }

    pub(crate) fn over(fabric: &F, memory: GroupMemory<F>, home: Rank) -> Result<Self> {
        let at = |word: Home| memory.at(home, word as u64);
        let core = Core {
            count: fabric.remote_word(at(Home::Count)?)?,
            readers: fabric.remote_word(at(Home::Readers)?)?,
            tail: fabric.remote_word(at(Home::Tail)?)?,
            head: fabric.remote_span(at(Home::Head)?, 1)?,
            queue: Queue::over(fabric, memory, home)?,
        };
        Ok(RpLock { core: Arc::new(core) })
    }

    /// The rank whose memory holds the lock words.
    pub fn home(&self) -> Rank {
        self.core.home
    }

    /// The fabric the lock lives on.
    pub fn fabric(&self) -> &F {
        &self.core.fabric
    }
}

impl<F: Fabric> Side for Core<F> {
    type Fabric = F;

    fn fabric(&self) -> &F {
        &self.fabric
    }
}
