//! A lock that its ranks' deaths do not take along.
//!
//! # Epochs
//! The lock is a series of [packed locks](crate::PackedLock), one for each *epoch*, each in words of its own. One epoch is open; ranks acquire in it.
//! When a member dies, survivors close the open epoch and open the next: in its words the dead never were. What a late operation still does to words
//! of a closed epoch, a wake or a link to a queue node, concerns nobody any more.
//!
//! # Closing and opening
//! Who notices a death (a wait for the lock ended with `PeerLost`) proposes itself in a word at the home, the [`agreement`]. One wins, and does it alone ([`opening`]), by one-sided
//! operations only: no other rank's CPU has to run.
//! 1. It sets *closed* in the old epoch's home word. Whoever comes later finds that in the result of its first atomic, and goes on in the next epoch. Nobody is let in
//!    by the old words any more, for all that lets somebody in is a comparison with a word that was not closed.
//! 2. It reads what each member publishes of itself in the old epoch: on the way in or inside, or not. Members that can't be read are dead or have left.
//! 3. For each survivor that may be inside it puts a [stand-in](claim) into the next epoch. The survivor takes it out when it is through with the old epoch. So a
//!    holder keeps what it holds, and nobody comes in beside it.
//! 4. It writes down who is dead, opens the epoch in the agreement, and rings the doorbells of those who wait for it.
//!
//! Who dies doing this is replaced by whoever waited for it; the words of the epoch that it began are never used.
//!
//! # Torn data
//! The home word names the active writer. If that one is dead, the next epoch is *torn*, as it is when a guard for writing is dropped by a panic: acquisitions are refused with
//! [`crate::LockError::Torn`] until somebody looks ([`RecoverableLock::mend`]) and clears it.
//!
//! # What it stands on
//! * A rank's loss is told only when it is proven, and no operation of the lost takes effect afterwards (`docs/fabric-contract.md`, E4).
//!   Mere suspicion does not take a lock from anybody ([`RecoverableLock::suspect`]).
//! * The home lives. Its loss is [`rdma_fabric::FabricError::PeerLost`] for everybody.

mod agreement;
mod catching_up;
mod claim;
mod finishing;
mod guard;
mod layout;
mod opening;
mod options;
mod scan;

pub use guard::{RecoverableReadGuard, RecoverableWriteGuard};
pub use options::Recovery;

use crate::{
    Fairness, Lock, LockError, Result, RmaLock,
    owed::Side,
    rp::{RpLock, Surviving},
};
use agreement::{Agreement, State};
use core::{fmt, sync::atomic::AtomicUsize};
use rdma_fabric::{Fabric, GroupMemory, LocalWord, Rank, RemoteWord, Time};
use std::sync::{Arc, OnceLock, atomic::Ordering::Acquire};

/// The lock of one epoch.
type EpochLock<F> = RpLock<F, Surviving>;

/// A readers-writer lock with reader preference that goes on after members have died.
///
/// One value per rank refers to one lock for all; clones of it are the same value. Without deaths it is a [`crate::PackedLock`], and costs the same remote operations.
///
/// The loss of a member that does not hold the lock is noticed by those who wait, and costs them a while. If it held the lock to write, what the
/// lock protects may be torn: then acquisitions answer [`LockError::Torn`] until [`RecoverableLock::mend`].
pub struct RecoverableLock<F: Fabric> {
    core: Arc<Core<F>>,
}

/// A rank's side.
struct Core<F: Fabric> {
    fabric: F,
    me: Rank,
    home: Rank,
    memory: GroupMemory<F>,
    options: Recovery,
    agreement: RemoteWord<F, u64>,
    torn_by: RemoteWord<F, u64>,
    doorbell: LocalWord<F, u64>,
    /// The epochs that this rank has come to; the first at once.
    epochs: Box<[OnceLock<EpochLock<F>>]>,
    /// The last of them. Grows.
    current: AtomicUsize,
}

impl<F: Fabric> Clone for RecoverableLock<F> {
    fn clone(&self) -> Self {
        RecoverableLock { core: self.core.clone() }
    }
}

impl<F: Fabric> fmt::Debug for RecoverableLock<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (epoch, lock) = self.core.open();
        write!(f, "RecoverableLock(epoch {epoch}, {lock:?})")
    }
}

impl<F: Fabric> Side for Core<F> {
    type Fabric = F;

    fn fabric(&self) -> &F {
        &self.fabric
    }
}

impl<F: Fabric> Core<F> {
    /// The last epoch this rank knows of, and its lock.
    #[inline(always)]
    fn open(&self) -> (usize, &EpochLock<F>) {
        // Acquire: pairs with the release of who came to it.
        let epoch = self.current.load(Acquire);
        (epoch, self.epochs[epoch].get().expect("epochs are made before they are current"))
    }
}
