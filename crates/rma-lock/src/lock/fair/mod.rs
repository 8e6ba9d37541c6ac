//! The fair queue lock: readers and writers enter in order of arrival, adjacent readers together.
//!
//! # Words
//! At the home, changed by atomics only:
//! * `state`: in the low half, the number of readers that are inside or have been admitted; in the
//!   high half, the writer that waits for them to leave, if it is the first in the queue.
//! * `tail`: the last node of the queue of readers and writers; readers stay in it while they are
//!   inside.
//!
//! At each rank are its queue nodes ([`crate::lock::queue`]), whose next words hold more information here
//! ([`link`]): the next node and its class; or that the node's reader is inside; or that its owner
//! has left.
//!
//! # Steps
//! Comments name these steps; `docs/systems/locks.md` lists them with their operations. They
//! follow Mellor-Crummey and Scott's fair lock (PPoPP 1991, Figure 4), as corrected later; the same
//! document lists the differences.
//! * F1: append to the end of the queue. F2: link behind the predecessor; the result shows whether
//!   that is a reader inside, or has left.
//! * F3: a reader that need not wait counts itself. F4: a writer that is first checks whether
//!   readers are inside; F5: if so, it registers itself in the state and checks again. F6: wait.
//!   F7: a reader that is inside records this in its own node; it counts and wakes a reader that
//!   linked itself before that.
//! * G1: leave the queue, as the last or with a mark for a successor that has not linked itself
//!   yet. G2: a writer counts the reader that it admits. G3: a reader uncounts itself and, in the
//!   same atomic, registers the next writer in the state. G4: the last reader, having seen that,
//!   removes the registration. G5: wake.
//!
//! The protocol is a table of these steps ([`steps`]), which every acquisition and release executes;
//! in place as long as operations complete when they are posted ([`crate::lock::queue::Walk`]).
//!
//! # Giving up
//! As in all these locks, the rank that would wake an abandoned node acts on its behalf: a writer
//! leaves the queue; a reader, which is already counted, leaves the queue and hands its count to
//! the reader behind it, or uncounts itself.

mod guard;
pub(crate) mod steps;

pub use guard::FairGuard;

use crate::{
    Fairness, Lock, Result, RmaLock,
    lock::{
        Admitted,
        boxed::wrapped,
        detach::HasFabric,
        queue::{Call, Drive, HOME_BYTES, Held, LOCK_BYTES, NoFirstStep, NodeId, Protocol, Queue, Walk},
    },
    locks::{Exclusive, Mode, Shared},
};
use core::{
    fmt,
    future::Future,
    marker::PhantomData,
    ops::Deref,
    task::{Context, Poll},
};
use rdma_fabric::{
    Fabric, GroupMemory, Rank, RemoteWord, Time,
    fast_path::{FastPath, fast_path},
};
use std::sync::Arc;
use steps::{FairTable, Steps, WRITER};

const STATE: u64 = 0;
const TAIL: u64 = 8;
const _: () = assert!(TAIL + 8 <= HOME_BYTES);

/// Every counted reader occupies a node, and a rank has few of them, so forgotten guards cannot
/// overflow the count: a rank without a free node is refused before that.
const _: () = assert!(NodeId::MOST <= 1 << (WRITER - 2));

/// The kind of acquisition that occupies a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// To read.
    Reader,
    /// To write.
    Writer,
}

impl Class {
    #[inline(always)]
    fn of<M: Mode>() -> Class {
        if M::WRITES { Class::Writer } else { Class::Reader }
    }
}

/// A readers-writer lock that admits ranks in order of their arrival, homed at one rank.
///
/// One value per rank refers to one lock shared by all; clones of it are the same value. A holder
/// that takes the lock again may deadlock with itself, even as a reader, if it queues behind a
/// writer that waits for it to leave.
///
/// Uncontended remote operations: shared lock 2 atomics, unlock 2; exclusive lock an atomic and a
/// get, unlock 1 atomic. A rank waits and holds with at most four queue nodes at a time: one more
/// is [`crate::LockError::TooManyWaiting`].
///
/// # Dropped futures
/// Each future of a lock or guard may be dropped at any moment, by `select!` or a deadline. Work
/// that others still depend on is [detached](Fabric::detach): a dropped acquisition ends without
/// holding the lock, a dropped release ends having released it. An abandoned acquisition keeps its
/// place in the queue, and thereby delays later ones, until its turn.
///
/// # Threads
/// A lock may be used by several threads if its fabric may.
#[derive(Clone)]
pub struct FairLock {
    core: Arc<Core>,
}

impl fmt::Debug for FairLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FairLock({:?})", self.core.queue)
    }
}

/// A rank's part of a lock, kept alive by its values and by the remaining work of their dropped
/// futures.
pub(crate) struct Core {
    queue: Queue,
    table: FairTable,
    state: RemoteWord<u64>,
    tail: RemoteWord<u64>,
}

impl Core {
    /// Continues from `steps` as far as possible without waiting.
    fn walk(self: &Arc<Self>, steps: Steps, deadline: Time) -> Result<Result<Option<Held>>, Call<Core>> {
        Walk::new(steps, deadline).run(self)
    }
}

impl Deref for Core {
    type Target = Queue;

    #[inline(always)]
    fn deref(&self) -> &Queue {
        &self.queue
    }
}

impl HasFabric for Core {
    fn fabric(&self) -> &Fabric {
        &self.fabric
    }
}

impl Protocol for Core {
    type Table = FairTable;
    type First = NoFirstStep;

    fn table(&self) -> &FairTable {
        &self.table
    }

    fn queue(&self) -> &Queue {
        &self.queue
    }

    #[inline(always)]
    fn home_now(&self, number: u8) -> Option<&RemoteWord<u64>> {
        Some(if number == 0 { &self.state } else { &self.tail })
    }

    fn ends_at_once(&self, first: NoFirstStep, _: u64) -> Option<Option<Held>> {
        match first {}
    }

    fn poll_first(call: &mut Call<Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Option<Held>>>> {
        call.advance_first(cx)
    }

    fn resume(drive: &mut Drive<Self>, cx: &mut Context<'_>) -> Poll<Result<Option<Held>>> {
        drive.resume(cx)
    }

    fn detach(drive: Box<Drive<Self>>) {
        drive.detach();
    }
}

/// A fast path, where `Guard` is a guard or an optional guard.
struct Enter<'a, M, Guard>(&'a FairLock, Time, PhantomData<fn() -> (M, Guard)>);

impl<'a, M: Mode, Guard: Admitted<FairGuard<'a, M>>> FastPath for Enter<'a, M, Guard> {
    type Out = Result<Guard>;
    type Stage = Call<Core>;

    #[inline(always)]
    fn fast(self, _: &mut Context<'_>) -> Result<Result<Guard>, Call<Core>> {
        let Enter(lock, deadline, _) = self;
        let walk = lock.core.walk(Steps::acquire(Class::of::<M>(), Guard::TRIES), deadline);
        walk.map(|out| out.map(|held| Guard::new(held.map(|held| FairGuard::new(lock, held.into())))))
    }
}

impl FairLock {
    #[inline(always)]
    fn enter<'a, M, Guard>(&'a self, deadline: Time) -> impl Future<Output = Result<Guard>>
    where
        M: Mode,
        Guard: Admitted<FairGuard<'a, M>>,
    {
        fast_path(Enter::<M, Guard>(self, deadline, PhantomData), |call| {
            wrapped(call, |held: Option<Held>| Guard::new(held.map(|held| FairGuard::new(self, held.into()))))
        })
    }
}

impl Lock for FairLock {
    type Options = ();

    const NAME: &'static str = "fair";
    const FAIRNESS: Fairness = Fairness::Fifo;
    const HOME_WORDS: usize = 2;

    fn bytes((): &(), _: usize) -> usize {
        LOCK_BYTES
    }

    fn over(fabric: &Fabric, memory: GroupMemory, home: Rank, (): ()) -> Result<Self> {
        let core = Core {
            table: FairTable { ranks: fabric.ranks() },
            state: fabric.remote_word(memory.at(home, STATE)?)?,
            tail: fabric.remote_word(memory.at(home, TAIL)?)?,
            queue: Queue::over(fabric, memory, home, false)?,
        };
        Ok(FairLock { core: Arc::new(core) })
    }

    fn home(&self) -> Rank {
        self.core.home
    }

    fn fabric(&self) -> &Fabric {
        &self.core.fabric
    }
}

impl RmaLock for FairLock {
    type Shared<'a> = FairGuard<'a, Shared>;
    type Exclusive<'a> = FairGuard<'a, Exclusive>;

    #[inline]
    fn read_before(&self, deadline: Time) -> impl Future<Output = Result<Self::Shared<'_>>> {
        self.enter(deadline)
    }

    /// Also returns `None` if another rank joins or leaves the queue at the same moment.
    #[inline]
    fn try_read(&self) -> impl Future<Output = Result<Option<Self::Shared<'_>>>> {
        self.enter(Time::MAX)
    }

    #[inline]
    fn write_before(&self, deadline: Time) -> impl Future<Output = Result<Self::Exclusive<'_>>> {
        self.enter(deadline)
    }

    #[inline]
    fn try_write(&self) -> impl Future<Output = Result<Option<Self::Exclusive<'_>>>> {
        self.enter(Time::MAX)
    }
}
