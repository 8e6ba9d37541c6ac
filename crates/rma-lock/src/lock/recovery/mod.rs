//! A lock that survives the deaths of its ranks.
//!
//! # Epochs
//! The lock is a series of [packed locks](crate::locks::PackedLock), one for each *epoch*, each
//! with separate words. One epoch is open; ranks acquire in it. When a member dies, survivors close
//! the open epoch and open the next one, whose words the dead rank never used. Late operations on
//! the words of a closed epoch, such as a wake or a link to a queue node, have no effect on any
//! rank.
//!
//! # Closing and opening
//! A rank that notices a death (a wait for the lock ended with `PeerLost`) proposes itself in a
//! word at the home, the [agreement](words::Agreement). One rank wins, and proceeds alone
//! ([`opening`]), by one-sided operations only: no other rank's CPU has to run.
//! 1. It sets *closed* in the old epoch's home word. A rank that arrives later finds that in the
//!    result of its first atomic, and continues in the next epoch. The old words no longer admit
//!    any rank, because every step that admits a rank is a comparison with a word that was not
//!    closed.
//! 2. It reads the published state of each member in the old epoch: whether it is arriving or
//!    inside, or neither. Members that cannot be read are dead or have left.
//! 3. For each survivor that may be inside, it puts a [stand-in](words::Claim) into the next epoch.
//!    The survivor removes its stand-in when it has completed its work in the old epoch. So a
//!    holder keeps its hold, and no other rank enters at the same time.
//! 4. It records the dead, opens the epoch in the agreement, and rings the doorbells of the ranks
//!    that wait for it.
//!
//! If this rank dies before it has finished, a rank that waited for it takes its place; the words
//! of the epoch that it has started are never used.
//!
//! # Torn data
//! The home word identifies the active writer. If that writer is dead, the next epoch is *torn*, as
//! it is when a guard for writing is dropped by a panic: acquisitions are refused with
//! [`crate::LockError::Torn`] until a rank examines the data ([`RecoverableLock::mend`]) and clears
//! the mark.
//!
//! # Assumptions
//! * A rank's loss is reported only when it is proven, and no operation of the lost rank takes
//!   effect afterwards (`docs/contract/fabric.md`, E4). Mere suspicion never revokes a hold
//!   ([`RecoverableLock::suspect`]).
//! * The home is alive. All ranks receive its loss as [`rdma_fabric::FabricError::PeerLost`].

mod acquiring;
mod catching_up;
mod finishing;
mod guard;
mod opening;
mod owned_guard;
mod renewing;
mod scan;
mod torn;
mod words;

pub(crate) use crate::lock::counted::Recoverable;
pub(crate) use finishing::EpochLink;
pub use guard::{RecoverableReadGuard, RecoverableWriteGuard};
pub use owned_guard::{OwnedReadGuard, OwnedWriteGuard};
pub use renewing::Room;
pub use torn::Torn;

use crate::{
    Fairness, Lock, LockError, Result, RmaLock,
    lock::{counted::CountedLock, detach::HasFabric, lock_by_itself},
};
use core::{fmt, future::Future, sync::atomic::AtomicUsize};
use rdma_fabric::{Fabric, GroupMemory, LocalWord, Rank, RemoteWord, Time};
use std::sync::{Arc, OnceLock, atomic::Ordering::Acquire};
use words::{MOST_DEATHS, MOST_EPOCHS};

/// The lock of one epoch.
type EpochLock = CountedLock<Recoverable>;

/// A readers-writer lock with reader preference that continues after members have died.
///
/// One value per rank refers to one lock shared by all; clones of it are the same value. Without
/// deaths it is a [`crate::locks::PackedLock`], and costs the same remote operations plus one get
/// for each exclusive acquisition, to check whether the protected data is torn.
///
/// The loss of a member that does not hold the lock is noticed by waiting ranks, and delays them.
/// If the member held the lock to write, the protected data may be torn: acquisitions then return
/// [`crate::LockError::Torn`] until [`RecoverableLock::mend`].
#[derive(Clone)]
pub struct RecoverableLock {
    core: Arc<Core>,
}

/// The number of deaths that a [`RecoverableLock`] survives. They cost memory at every rank: 192
/// bytes per epoch, 8 per death.
///
/// A lock beyond the limits below is refused: [`LockError::RecoveryLimits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// The number of epochs the lock may have, including the first, 1 to 256. Each recovery starts
    /// one; ranks that die together, or before others have noticed, share one.
    pub epochs: usize,
    /// The number of ranks that may die, 0 to 4095.
    pub deaths: usize,
}

impl Recovery {
    /// Returns the limits for this number of deaths, one after the other: 0 to 255.
    pub const fn of_deaths(deaths: usize) -> Self {
        Recovery { epochs: deaths.saturating_add(1), deaths }
    }

    /// Returns these limits if they are possible.
    ///
    /// # Errors
    /// [`LockError::RecoveryLimits`].
    fn checked(self) -> Result<Self> {
        if self == self.within_limits() {
            return Ok(self);
        }
        let asked = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Err(LockError::RecoveryLimits { epochs: asked(self.epochs), deaths: asked(self.deaths) })
    }

    /// Returns the nearest possible limits: memory is allocated for these before impossible limits
    /// are refused.
    fn within_limits(self) -> Self {
        Recovery { epochs: self.epochs.clamp(1, MOST_EPOCHS), deaths: self.deaths.min(MOST_DEATHS) }
    }
}

/// 31 deaths: 6.3 KiB at each rank.
impl Default for Recovery {
    fn default() -> Self {
        Recovery::of_deaths(31)
    }
}

/// The part of the lock at one rank.
pub(crate) struct Core {
    fabric: Fabric,
    me: Rank,
    home: Rank,
    memory: GroupMemory,
    options: Recovery,
    agreement: RemoteWord<u64>,
    torn_by: RemoteWord<u64>,
    doorbell: LocalWord<u64>,
    /// The locks of the epochs that this rank has reached; it starts in the first.
    epochs: Box<[OnceLock<EpochLock>]>,
    /// The last of those epochs. Never decreases.
    current: AtomicUsize,
}

impl fmt::Debug for RecoverableLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecoverableLock({:?})", self.core)
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (epoch, lock) = self.open();
        write!(f, "epoch {epoch}, {lock:?}")
    }
}

impl HasFabric for Core {
    fn fabric(&self) -> &Fabric {
        &self.fabric
    }
}

impl Core {
    /// Returns the last epoch that this rank knows, and its lock.
    #[inline(always)]
    fn open(&self) -> (usize, &EpochLock) {
        // Acquire: pairs with the release of the task that reached this epoch.
        let epoch = self.current.load(Acquire);
        (epoch, self.epochs[epoch].get().expect("epochs are made before they are current"))
    }

    pub(crate) fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    pub(crate) fn home(&self) -> Rank {
        self.home
    }

    /// Returns the members that are not among `dead`.
    fn living(&self, dead: &[Rank]) -> Vec<Rank> {
        self.memory.ranks().filter(|rank| !dead.contains(rank)).collect()
    }
}

impl Lock for RecoverableLock {
    type Options = Recovery;

    const NAME: &'static str = "recoverable";
    const FAIRNESS: Fairness = Fairness::ReadersFirst;
    const HOME_WORDS: usize = 3;

    fn bytes(options: &Recovery, _: usize) -> usize {
        words::bytes(&options.within_limits())
    }

    fn over(fabric: &Fabric, memory: GroupMemory, home: Rank, options: Recovery) -> Result<Self> {
        let options = options.checked()?;
        let memory = memory.part(0, words::bytes(&options))?;
        let core = Arc::new(Core {
            agreement: fabric.remote_word(memory.at(home, words::AGREEMENT)?)?,
            torn_by: fabric.remote_word(memory.at(home, words::TORN_BY)?)?,
            doorbell: fabric.local_word(memory.at(fabric.rank(), words::DOORBELL)?)?,
            epochs: (0..options.epochs).map(|_| OnceLock::new()).collect(),
            current: AtomicUsize::new(0),
            fabric: fabric.clone(),
            me: fabric.rank(),
            home,
            memory,
            options,
        });
        let first = core.lock_of(0, &[])?;
        let _ = core.epochs[0].set(first);
        Ok(RecoverableLock { core })
    }

    fn home(&self) -> Rank {
        self.core.home
    }

    fn fabric(&self) -> &Fabric {
        &self.core.fabric
    }
}

lock_by_itself!([] RecoverableLock, RecoverableReadGuard<'a>, RecoverableWriteGuard<'a>);
