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
//! At each rank: its queue nodes ([`node`]) and the words in which it publishes what it is doing ([`publish`]).
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
mod node;
mod publish;
pub(crate) mod reader;
mod settle;
pub(crate) mod writer;

pub(crate) use writer::Writing;

use crate::{
    LockError, Result,
    error::Trouble,
    owed::Side,
    posting::{NotOver, Posting, atomic_now},
};
use core::fmt;
use layout::{Home, LOCK_BYTES};
use node::{NodeId, Nodes};
use publish::{Lane, Published, Step};
use rdma_fabric::{Amo, Fabric, FabricError, PutOrder, Rank, Refused, Region, RegionKey, RemoteSpan, RemoteWord};
use std::sync::{Arc, OnceLock};

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
        write!(f, "RpLock(home {}, {:?})", self.core.home, self.core.published)
    }
}

/// A rank's side of a lock, kept by its values and by what their dropped futures still owe.
pub(crate) struct Core<F: Fabric> {
    fabric: F,
    me: Rank,
    home: Rank,
    /// Whether puts are ordered before atomics to the same target.
    ordered_here: bool,
    /// Whether they are ordered before all atomics.
    ordered_everywhere: bool,
    count: RemoteWord<F, u64>,
    readers: RemoteWord<F, u64>,
    tail: RemoteWord<F, u64>,
    /// One word: as a span, because it is put and got.
    head: RemoteSpan<F, u64>,
    /// Registered on every rank under one key, which is how nodes are addressed.
    region: F::Region,
    nodes: Nodes<F>,
    published: Published<F>,
    /// Carried by every wake word. Wakes of another epoch are ignored. Constant until recovery exists.
    epoch: u16,
    /// What failed between two steps of the protocol, if anything has.
    broken: OnceLock<LockError>,
}

impl<F: Fabric> fmt::Debug for Core<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Core(home {}, {:?})", self.home, self.published)
    }
}

impl<F: Fabric> RpLock<F> {
    /// A lock homed at `home`. Collective over the job: all ranks call it in the same order relative to other
    /// symmetric allocations.
    ///
    /// # Errors
    /// As [`Fabric::alloc_symmetric`], and [`rdma_fabric::FabricError::NoSuchRank`].
    pub async fn symmetric(fabric: &F, home: Rank) -> Result<Self> {
        fabric.node(home)?;
        let region = fabric.alloc_symmetric(LOCK_BYTES).await?;
        let at = |word: Home| layout::home(home, region.key(), word);
        let order = fabric.caps().put_order;
        let core = Core {
            count: fabric.remote_word(at(Home::Count))?,
            readers: fabric.remote_word(at(Home::Readers))?,
            tail: fabric.remote_word(at(Home::Tail))?,
            head: fabric.remote_span(at(Home::Head), 1)?,
            nodes: Nodes::new(),
            published: Published::new(fabric, &region)?,
            fabric: fabric.clone(),
            me: fabric.rank(),
            home,
            ordered_here: order >= PutOrder::SameTarget,
            ordered_everywhere: order >= PutOrder::AllTargets,
            region,
            epoch: 0,
            broken: OnceLock::new(),
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

impl<F: Fabric> Core<F> {
    fn key(&self) -> RegionKey {
        self.region.key()
    }

    /// Begin to acquire, unless what this rank did before is unknown.
    #[inline(always)]
    fn check(&self) -> Result<()> {
        match self.broken.get() {
            None => Ok(()),
            Some(cause) => Err(LockError::Broken(Box::new(cause.clone()))),
        }
    }

    /// `error` came between two steps.
    #[cold]
    fn broke(&self, error: LockError) -> LockError {
        self.broken.get_or_init(|| error.clone());
        error
    }

    /// The same, of the fabric.
    #[cold]
    #[inline(never)]
    fn broke_by(&self, error: FabricError) -> LockError {
        self.broke(error.into())
    }

    /// What a call answers.
    fn answer<T>(&self, outcome: Result<T, Trouble>) -> Result<T> {
        match outcome {
            Ok(out) => Ok(out),
            Err(Trouble::GaveUp(error)) => Err(error),
            Err(Trouble::Broken(error)) => Err(self.broke(error)),
        }
    }

    /// Puts before the lock passes on (release): every target, because no fabric orders different targets.
    #[inline(always)]
    pub(crate) async fn flush_data(&self) -> Result<()> {
        if !self.ordered_everywhere {
            self.fabric.flush_all().await?;
        }
        Ok(())
    }

    #[inline(always)]
    fn publish(&self, step: Step) -> Result<(), FabricError> {
        self.publish_in(self.published.lane(), step)
    }

    #[inline(always)]
    fn publish_in(&self, lane: Lane, step: Step) -> Result<(), FabricError> {
        self.published.step(&self.fabric, lane, step)
    }

    /// Whether operations are over when they are posted and nothing need be flushed: then an acquisition or release that meets
    /// nobody need not wait. (Where puts are ordered so strictly but results take their time, trying costs little.)
    #[inline(always)]
    fn is_fast(&self) -> bool {
        self.ordered_everywhere
    }

    /// An atomic that is over at once.
    #[inline(always)]
    fn atomic_now(&self, word: &RemoteWord<F, u64>, amo: Amo<u64>) -> Result<u64, NotOver<F>> {
        atomic_now(&self.fabric, word, amo)
    }

    /// The same, announced. If it was not posted the announcement is taken back.
    #[inline(always)]
    fn announced_now(
        &self,
        lane: Lane,
        step: Step,
        word: &RemoteWord<F, u64>,
        amo: Amo<u64>,
    ) -> Result<u64, NotOver<F>> {
        if self.publish_in(lane, step).is_err() {
            return Err(None);
        }
        match self.atomic_now(word, amo) {
            Ok(old) => Ok(old),
            Err(not_over) => {
                if not_over.is_none() {
                    let _ = self.publish_in(lane, step.undone());
                }
                Err(not_over)
            }
        }
    }

    /// Announce a step and post its atomic, waiting for room. Until it is posted, dropping this owes nothing.
    async fn post(&self, step: Step, word: &RemoteWord<F, u64>, amo: Amo<u64>) -> Result<F::Handle<u64>, FabricError> {
        match self.try_post(self.published.lane(), step, word, amo) {
            Ok(handle) => Ok(handle),
            Err(Refused::Failed(error, ())) => Err(error),
            Err(Refused::Full(())) => Box::pin(self.post_later(step, word, amo)).await,
        }
    }

    async fn post_later(
        &self,
        step: Step,
        word: &RemoteWord<F, u64>,
        amo: Amo<u64>,
    ) -> Result<F::Handle<u64>, FabricError> {
        loop {
            self.fabric.room(None).await?;
            match self.try_post(self.published.lane(), step, word, amo) {
                Ok(handle) => return Ok(handle),
                Err(Refused::Failed(error, ())) => return Err(error),
                Err(Refused::Full(())) => {}
            }
        }
    }

    #[inline(always)]
    fn try_post(
        &self,
        lane: Lane,
        step: Step,
        word: &RemoteWord<F, u64>,
        amo: Amo<u64>,
    ) -> Result<F::Handle<u64>, Refused<()>> {
        self.publish_in(lane, step).map_err(|error| Refused::Failed(error, ()))?;
        let posted = self.fabric.try_atomic(word, amo);
        if posted.is_err() {
            let _ = self.publish_in(lane, step.undone());
        }
        posted
    }
}
