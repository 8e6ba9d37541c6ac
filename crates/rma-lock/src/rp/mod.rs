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
//! At each rank: its queue nodes ([`node`]) and the word in which it publishes what it is doing ([`publish`]).
//!
//! # Steps
//! Comments name the steps R1–R7 (reader lock), U1–U4 (reader unlock), W1–W7 (writer lock), X2–X7 (writer unlock) of
//! Mellor-Crummey and Scott's Figure 7 as numbered in this project's documentation (`docs/rp-lock.md`), X1 being
//! redundant. Three things differ from the print:
//! * A waiter is woken by a compare-and-swap and not by a store. It fails if the waiter gave up (a deadline) or
//!   if the wake belongs to another turn of the node or another epoch of the lock; the waker then acts for who gave
//!   up: [`settle`].
//! * A writer links itself behind its predecessor with a swap. A leaving writer that finds no successor linked
//!   yet, though one is on its way (the printed X4 waits for it), leaves [`NodeId::PASSED`] there and goes; the successor finds it
//!   and registers itself. So no release waits for another rank's CPU.
//! * The leaving writer looks for waiting readers only if the count shows any (X3).

mod layout;
mod node;
mod publish;
mod reader;
mod settle;
mod writer;

pub(crate) use node::NodeId;

use crate::{LockError, Result};
use core::{
    fmt,
    sync::atomic::{AtomicBool, Ordering},
};
use layout::{Home, LOCK_BYTES};
use node::Nodes;
use publish::Published;
use rdma_fabric::{Fabric, PutOrder, Rank, Region, RegionKey, RemoteWord};

/// A writer is registered at `head` and waits for the readers to leave.
const WRITER_INTERESTED: u64 = 1;
/// A writer is inside.
const WRITER_ACTIVE: u64 = 2;
/// One reader.
const READER: u64 = 4;

/// A readers-writer lock with reader preference, homed at one rank.
///
/// One value per rank refers to one lock for all. A rank may hold it shared several times; holding it exclusively
/// and asking for it again deadlocks, as with any lock that is not reentrant.
///
/// Remote operations without contention: shared lock 1 atomic, unlock 1; exclusive lock 3 atomics and a put,
/// unlock 2 atomics.
pub struct RpLock<F: Fabric> {
    fabric: F,
    home: Rank,
    count: RemoteWord<F, u64>,
    readers: RemoteWord<F, u64>,
    tail: RemoteWord<F, u64>,
    head: RemoteWord<F, u64>,
    /// Registered on every rank under one key, which is how nodes are addressed.
    region: F::Region,
    nodes: Nodes<F>,
    published: Published<F>,
    /// Carried by every wake word. Wakes of another epoch are ignored. Constant until recovery exists.
    epoch: u16,
    /// A guard was dropped without release.
    leaked: AtomicBool,
    /// A future was dropped, or failed, between two steps of the protocol.
    interrupted: AtomicBool,
}

impl<F: Fabric> fmt::Debug for RpLock<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RpLock(home {}, {:?})", self.home, self.published)
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
        let at = |word: Home| fabric.remote_word(layout::home(home, region.key(), word));
        Ok(RpLock {
            count: at(Home::Count)?,
            readers: at(Home::Readers)?,
            tail: at(Home::Tail)?,
            head: at(Home::Head)?,
            nodes: Nodes::new(),
            published: Published::new(fabric, &region)?,
            fabric: fabric.clone(),
            home,
            region,
            epoch: 1,
            leaked: AtomicBool::new(false),
            interrupted: AtomicBool::new(false),
        })
    }

    /// The rank whose memory holds the lock words.
    pub fn home(&self) -> Rank {
        self.home
    }

    /// The fabric the lock lives on.
    pub fn fabric(&self) -> &F {
        &self.fabric
    }

    pub(crate) fn report_leak(&self) {
        self.leaked.store(true, Ordering::Relaxed);
        eprintln!("rma-lock: {} dropped a guard without release; the lock stays taken", self.fabric.rank());
    }

    fn key(&self) -> RegionKey {
        self.region.key()
    }

    /// Begin to acquire, unless what this rank did before is unknown or still holds the lock.
    fn enter(&self) -> Result<Protocol<'_>> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(LockError::Interrupted);
        }
        if self.leaked.load(Ordering::Relaxed) {
            return Err(LockError::GuardLeaked);
        }
        Ok(self.begin())
    }

    /// Go into the protocol. It counts as interrupted until [`Protocol::leave`] is called. A release begins whatever
    /// befell other guards: its own hold is known.
    fn begin(&self) -> Protocol<'_> {
        Protocol { interrupted: Some(&self.interrupted) }
    }

    /// Puts before the lock passes on (release): every target, because no fabric orders different targets.
    async fn flush_data(&self) -> Result<()> {
        if self.fabric.caps().put_order < PutOrder::AllTargets {
            self.fabric.flush_all().await?;
        }
        Ok(())
    }
}

/// Marks the lock interrupted if the protocol is left by an error or by dropping its future.
struct Protocol<'a> {
    interrupted: Option<&'a AtomicBool>,
}

impl Protocol<'_> {
    /// The protocol has reached a state where nothing is owed.
    fn leave(mut self) {
        self.interrupted = None;
    }
}

impl Drop for Protocol<'_> {
    fn drop(&mut self) {
        if let Some(flag) = self.interrupted {
            flag.store(true, Ordering::Relaxed);
        }
    }
}
