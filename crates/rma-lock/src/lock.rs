//! What all locks of this crate can do.

use crate::{ReadGuard, Result, RpLock, WriteGuard, queue::LOCK_BYTES};
use core::{fmt, future::Future};
use rdma_fabric::{Fabric, Group, GroupMemory, Rank, Time};

/// How any lock is made, and what it says of itself. What it does is [`RmaLock`]'s or [`crate::AccessLock`]'s.
pub trait Lock<F: Fabric>: Clone + fmt::Debug + 'static {
    /// What is to be chosen when a lock is made; the same on all ranks, unless the lock says otherwise.
    type Options: Clone + fmt::Debug + Default;
    /// What the lock is called in tables.
    const NAME: &'static str;
    /// Who gets in when several want to.
    const FAIRNESS: Fairness;
    /// Words of 8 bytes at the home.
    const HOME_WORDS: usize;

    /// Bytes that the lock needs at each of `members` ranks.
    fn bytes(options: &Self::Options, members: usize) -> usize;

    /// A lock homed at `home`, in [`Lock::bytes`] of zeroed memory that all its ranks have and use for nothing else. All of them make it, with the same home
    /// and options.
    ///
    /// # Errors
    /// [`rdma_fabric::FabricError::NotInGroup`], [`rdma_fabric::FabricError::NoSuchRank`] of the home; [`rdma_fabric::FabricError::OutOfBounds`]
    /// where memory is too short.
    fn over(fabric: &F, memory: GroupMemory<F>, home: Rank, options: Self::Options) -> Result<Self>;

    /// A lock of the whole job, homed at `home`. Collective over the job: all ranks call it in the same order relative to other
    /// symmetric allocations.
    ///
    /// # Errors
    /// As [`Fabric::alloc_symmetric`], and [`rdma_fabric::FabricError::NoSuchRank`].
    fn symmetric_with(fabric: &F, home: Rank, options: Self::Options) -> impl Future<Output = Result<Self>> {
        async move {
            fabric.node(home)?;
            let memory = GroupMemory::symmetric(fabric, Self::bytes(&options, fabric.ranks())).await?;
            Self::over(fabric, memory, home, options)
        }
    }

    /// A lock of a group's members, homed at one of them. Collective over the group. Others are not concerned, alive or dead.
    ///
    /// # Errors
    /// As [`Group::memory`], and [`rdma_fabric::FabricError::NotInGroup`] of the home.
    fn in_group(group: &mut Group<F>, home: Rank, options: Self::Options) -> impl Future<Output = Result<Self>> {
        async move {
            group.number(home)?;
            let memory = group.memory(Self::bytes(&options, group.len())).await?;
            Self::over(group.fabric(), memory, home, options)
        }
    }

    /// [`Lock::symmetric_with`] the usual options.
    ///
    /// # Errors
    /// As there.
    fn symmetric(fabric: &F, home: Rank) -> impl Future<Output = Result<Self>> {
        Self::symmetric_with(fabric, home, Self::Options::default())
    }

    /// The rank whose memory holds the lock words.
    fn home(&self) -> Rank;

    /// The fabric the lock lives on.
    fn fabric(&self) -> &F;
}

/// Any readers-writer lock in a rank's memory: for programs and tests that leave it open which.
///
/// One value per rank refers to one lock for all; clones of it are the same value. What the promises in the crate's documentation are
/// holds for all: exclusion, puts of a holder visible before the lock passes on, futures that may be dropped at any moment. What
/// differs is what the lock says of itself here, and what it costs (`docs/locks.md`).
///
/// ```
/// use rdma_fabric::{Fabric, ProgramResult, Rank};
/// use rma_lock::{Guard, RmaLock};
///
/// /// Any lock will do.
/// async fn enter<F: Fabric, L: RmaLock<F>>(fabric: &F) -> ProgramResult<()> {
///     let lock = L::symmetric(fabric, Rank::new(0)).await?;
///     let guard = lock.write().await?;
///     // ... remote gets and puts that nobody disturbs ...
///     Ok(guard.release().await?)
/// }
/// ```
pub trait RmaLock<F: Fabric>: Lock<F> {
    /// Proof of shared access.
    type Shared<'a>: Guard;
    /// Proof of exclusive access.
    type Exclusive<'a>: Guard;

    /// Take the lock shared, or give up at `deadline`. What earlier holders put is visible to gets posted afterwards. Dropping the future
    /// takes back what it has done.
    ///
    /// # Errors
    /// [`crate::LockError::TimedOut`]; [`crate::LockError::Fabric`]; [`crate::LockError::Broken`] if an earlier call failed half-way; what
    /// else the lock's own method says.
    fn read_before(&self, deadline: Time) -> impl Future<Output = Result<Self::Shared<'_>>>;

    /// Take the lock shared.
    ///
    /// # Errors
    /// As [`RmaLock::read_before`], but for the deadline.
    fn read(&self) -> impl Future<Output = Result<Self::Shared<'_>>> {
        self.read_before(Time::MAX)
    }

    /// Take the lock shared if that needs no wait.
    ///
    /// # Errors
    /// As [`RmaLock::read`].
    fn try_read(&self) -> impl Future<Output = Result<Option<Self::Shared<'_>>>>;

    /// Take the lock exclusively, or give up at `deadline`, as [`RmaLock::read_before`].
    ///
    /// # Errors
    /// As [`RmaLock::read_before`].
    fn write_before(&self, deadline: Time) -> impl Future<Output = Result<Self::Exclusive<'_>>>;

    /// Take the lock exclusively.
    ///
    /// # Errors
    /// As [`RmaLock::read`].
    fn write(&self) -> impl Future<Output = Result<Self::Exclusive<'_>>> {
        self.write_before(Time::MAX)
    }

    /// Take the lock exclusively if that needs no wait.
    ///
    /// # Errors
    /// As [`RmaLock::read`].
    fn try_write(&self) -> impl Future<Output = Result<Option<Self::Exclusive<'_>>>>;
}

/// Proof of holding a lock. Dropping it releases the lock in the background and tells nobody about errors.
pub trait Guard: fmt::Debug {
    /// Make every put of this rank visible, then let go of the lock. If the future is dropped half-way, the rest is done in the
    /// background.
    ///
    /// # Errors
    /// [`crate::LockError::Fabric`]: what a put met at its target, with the lock released all the same; or what the release itself met.
    fn release(self) -> impl Future<Output = Result<()>>;
}

/// Who gets in when several want to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fairness {
    /// Readers wait for no writer that waits, and cannot starve; writers get in one after the other in order of arrival, and starve
    /// under a steady stream of readers.
    ReadersFirst,
    /// Whoever comes when the lock is free gets in, however long others have waited; anybody can starve.
    Barging,
}

impl<F: Fabric> Lock<F> for RpLock<F> {
    type Options = ();

    const NAME: &'static str = "reader preference";
    const FAIRNESS: Fairness = Fairness::ReadersFirst;
    const HOME_WORDS: usize = 4;

    fn bytes((): &(), _: usize) -> usize {
        LOCK_BYTES
    }

    fn over(fabric: &F, memory: GroupMemory<F>, home: Rank, (): ()) -> Result<Self> {
        RpLock::over(fabric, memory, home)
    }

    fn home(&self) -> Rank {
        RpLock::home(self)
    }

    fn fabric(&self) -> &F {
        RpLock::fabric(self)
    }
}

impl<F: Fabric> RmaLock<F> for RpLock<F> {
    type Shared<'a> = ReadGuard<'a, F>;
    type Exclusive<'a> = WriteGuard<'a, F>;

    #[inline]
    fn read_before(&self, deadline: Time) -> impl Future<Output = Result<ReadGuard<'_, F>>> {
        RpLock::read_before(self, deadline)
    }

    #[inline]
    fn try_read(&self) -> impl Future<Output = Result<Option<ReadGuard<'_, F>>>> {
        RpLock::try_read(self)
    }

    #[inline]
    fn write_before(&self, deadline: Time) -> impl Future<Output = Result<WriteGuard<'_, F>>> {
        RpLock::write_before(self, deadline)
    }

    #[inline]
    fn try_write(&self) -> impl Future<Output = Result<Option<WriteGuard<'_, F>>>> {
        RpLock::try_write(self)
    }
}

impl<F: Fabric> Guard for ReadGuard<'_, F> {
    #[inline]
    fn release(self) -> impl Future<Output = Result<()>> {
        ReadGuard::release(self)
    }
}

impl<F: Fabric> Guard for WriteGuard<'_, F> {
    #[inline]
    fn release(self) -> impl Future<Output = Result<()>> {
        WriteGuard::release(self)
    }
}
