//! The common interface of all locks of this crate.

use crate::Result;
use core::{fmt, future::Future};
use rdma_fabric::{Fabric, Group, GroupMemory, Rank, Time};

/// Construction and properties of a lock. [`RmaLock`] and [`crate::AccessLock`] add the operations.
pub trait Lock: Clone + fmt::Debug + 'static {
    /// The options of a lock; the same on all ranks, unless the lock says otherwise.
    type Options: Clone + fmt::Debug + Default;
    /// The lock's name in tables.
    const NAME: &'static str;
    /// The order in which ranks acquire the lock.
    const FAIRNESS: Fairness;
    /// The number of 8-byte words at the home.
    const HOME_WORDS: usize;

    /// Returns the number of bytes that the lock needs at each of `members` ranks.
    fn bytes(options: &Self::Options, members: usize) -> usize;

    /// Makes a lock homed at `home`, in [`Lock::bytes`] bytes of zeroed memory that all its ranks
    /// share and do not use otherwise. All of them call this, with the same home and options.
    ///
    /// # Errors
    /// [`rdma_fabric::FabricError::NotInGroup`], [`rdma_fabric::FabricError::NoSuchRank`] for the
    /// home; [`rdma_fabric::FabricError::OutOfBounds`] if the memory is too short;
    /// [`crate::LockError::TooManyRanks`] for a queue-based lock.
    fn over(fabric: &Fabric, memory: GroupMemory, home: Rank, options: Self::Options) -> Result<Self>;

    /// Makes a lock of the whole job, homed at `home`. Collective over the job: all ranks call it
    /// in the same order relative to other symmetric allocations.
    ///
    /// # Errors
    /// As [`Fabric::alloc_symmetric`], and [`rdma_fabric::FabricError::NoSuchRank`].
    fn symmetric_with(fabric: &Fabric, home: Rank, options: Self::Options) -> impl Future<Output = Result<Self>> {
        async move {
            fabric.node(home)?;
            let memory = GroupMemory::symmetric(fabric, Self::bytes(&options, fabric.ranks())).await?;
            Self::over(fabric, memory, home, options)
        }
    }

    /// Makes a lock of a group's members, homed at one of them. Collective over the group; ranks
    /// outside it are not involved, alive or dead.
    ///
    /// # Errors
    /// As [`Group::memory`], and [`rdma_fabric::FabricError::NotInGroup`] for the home.
    fn in_group(group: &mut Group, home: Rank, options: Self::Options) -> impl Future<Output = Result<Self>> {
        async move {
            group.number(home)?;
            let memory = group.memory(Self::bytes(&options, group.len())).await?;
            Self::over(group.fabric(), memory, home, options)
        }
    }

    /// Makes a lock of the whole job with the default options, as [`Lock::symmetric_with`] does.
    ///
    /// # Errors
    /// As [`Lock::symmetric_with`].
    fn symmetric(fabric: &Fabric, home: Rank) -> impl Future<Output = Result<Self>> {
        Self::symmetric_with(fabric, home, Self::Options::default())
    }

    /// Returns the rank whose memory holds the lock words.
    fn home(&self) -> Rank;

    /// Returns the fabric of the lock.
    fn fabric(&self) -> &Fabric;
}

/// Any readers-writer lock in a rank's memory, for programs and tests that are generic over locks.
///
/// One value per rank refers to one lock shared by all; clones of it are the same value. The
/// guarantees in the crate's documentation hold for all: exclusion, visibility of a holder's puts
/// before the lock is passed on, futures that may be dropped at any moment. Locks differ in the
/// properties that they declare here, and in their cost (`docs/systems/locks.md`).
///
/// ```
/// use rdma_fabric::{Fabric, Group, ProgramResult, Rank};
/// use rma_lock::{Guard, Lock, RmaLock, locks::RpLock};
///
/// /// Works with every lock.
/// async fn enter<L: RmaLock>(lock: &L) -> ProgramResult<()> {
///     let guard = lock.write().await?;
///     // ... remote gets and puts, in exclusion of all other ranks ...
///     Ok(guard.release().await?)
/// }
///
/// async fn program(fabric: Fabric) -> ProgramResult<()> {
///     let lock = RpLock::symmetric(&fabric, Rank::new(0)).await?;
///     enter(&lock).await?;
///     Ok(Group::world(&fabric).await?.barrier().await?) // the lock is freed with its home
/// }
/// # checks::documented::run(3, &program);
/// ```
pub trait RmaLock: Lock {
    /// Proof of shared access.
    type Shared<'a>: Guard;
    /// Proof of exclusive access.
    type Exclusive<'a>: Guard;

    /// Takes the lock shared, or gives up at `deadline`. The puts of earlier holders are visible to
    /// gets posted afterwards. Dropping the future undoes its effects.
    ///
    /// # Errors
    /// [`crate::LockError::TimedOut`]; [`crate::LockError::TooManyHolders`];
    /// [`crate::LockError::Fabric`]; [`crate::LockError::Broken`] if an earlier call failed
    /// half-way; and any other error documented for the lock's type.
    fn read_before(&self, deadline: Time) -> impl Future<Output = Result<Self::Shared<'_>>>;

    /// Takes the lock shared.
    ///
    /// # Errors
    /// As [`RmaLock::read_before`], except for the deadline.
    fn read(&self) -> impl Future<Output = Result<Self::Shared<'_>>> {
        self.read_before(Time::MAX)
    }

    /// Takes the lock shared if that does not require waiting.
    ///
    /// # Errors
    /// As [`RmaLock::read`].
    fn try_read(&self) -> impl Future<Output = Result<Option<Self::Shared<'_>>>>;

    /// Takes the lock exclusively, or gives up at `deadline`. The puts of earlier holders are
    /// visible to gets posted afterwards. Dropping the future undoes its effects.
    ///
    /// # Errors
    /// As [`RmaLock::read_before`].
    fn write_before(&self, deadline: Time) -> impl Future<Output = Result<Self::Exclusive<'_>>>;

    /// Takes the lock exclusively.
    ///
    /// # Errors
    /// As [`RmaLock::read`].
    fn write(&self) -> impl Future<Output = Result<Self::Exclusive<'_>>> {
        self.write_before(Time::MAX)
    }

    /// Takes the lock exclusively if that does not require waiting.
    ///
    /// # Errors
    /// As [`RmaLock::read`].
    fn try_write(&self) -> impl Future<Output = Result<Option<Self::Exclusive<'_>>>>;
}

/// Proof of holding a lock. Dropping it releases the lock in the background, without reporting
/// errors.
pub trait Guard: fmt::Debug {
    /// Makes every put of this rank visible, then releases the lock. If the future is dropped
    /// before it is complete, the rest is done in the background.
    ///
    /// # Errors
    /// [`crate::LockError::Fabric`]: the failure of a put at its target, in which case the lock is still
    /// released; or the failure of the release itself.
    fn release(self) -> impl Future<Output = Result<()>>;
}

/// The result of an acquisition: a guard or, for a try, an optional guard.
pub(crate) trait Admitted<G> {
    /// Whether the result is optional.
    const TRIES: bool;

    fn new(guard: Option<G>) -> Self;
}

impl<G: Guard> Admitted<G> for G {
    const TRIES: bool = false;

    #[inline(always)]
    fn new(guard: Option<G>) -> Self {
        guard.expect("what does not try ends inside, or with an error")
    }
}

impl<G: Guard> Admitted<G> for Option<G> {
    const TRIES: bool = true;

    #[inline(always)]
    fn new(guard: Option<G>) -> Self {
        guard
    }
}

/// The order in which ranks acquire a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fairness {
    /// Readers never wait for a writer that is itself waiting, and cannot starve; writers enter one
    /// at a time in order of arrival, and starve under a steady stream of readers.
    ReadersFirst,
    /// Readers enter only when no writer waits, and starve under a steady stream of writers;
    /// writers enter one at a time in order of arrival.
    WritersFirst,
    /// Ranks enter in order of arrival; adjacent readers enter together. No rank starves.
    Fifo,
    /// Readers and writers take turns as long as both request the lock. Readers that find a writer
    /// inside enter when it leaves, before the next one; writers do not wait for readers that
    /// arrive after them, and enter in the order of the lock that excludes them from each other.
    Alternating,
    /// Any rank that finds the lock free enters, no matter how long others have waited; Any rank
    /// can starve.
    Barging,
}

/// Implements [`RmaLock`] by a lock's own methods of the same names.
macro_rules! lock_by_itself {
    ([$($of:tt)*] $lock:ty, $shared:ty, $exclusive:ty) => {
        impl<$($of)*> RmaLock for $lock {
            type Shared<'a> = $shared;
            type Exclusive<'a> = $exclusive;

            #[inline]
            fn read_before(&self, deadline: Time) -> impl Future<Output = Result<Self::Shared<'_>>> {
                <$lock>::read_before(self, deadline)
            }

            #[inline]
            fn try_read(&self) -> impl Future<Output = Result<Option<Self::Shared<'_>>>> {
                <$lock>::try_read(self)
            }

            #[inline]
            fn write_before(&self, deadline: Time) -> impl Future<Output = Result<Self::Exclusive<'_>>> {
                <$lock>::write_before(self, deadline)
            }

            #[inline]
            fn try_write(&self) -> impl Future<Output = Result<Option<Self::Exclusive<'_>>>> {
                <$lock>::try_write(self)
            }
        }
    };
}
pub(crate) use lock_by_itself;

/// Implements [`Guard`] by a guard's own `release`.
macro_rules! guard_by_itself {
    ([$($of:tt)*] $guard:ty) => {
        impl<$($of)*> Guard for $guard {
            #[inline]
            fn release(self) -> impl Future<Output = Result<()>> {
                <$guard>::release(self)
            }
        }
    };
}
pub(crate) use guard_by_itself;
