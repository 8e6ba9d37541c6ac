//! The interface that all locks of this crate share.

use crate::Result;
use core::{fmt, future::Future};
use rdma_fabric::{Fabric, Group, GroupMemory, Rank, Time, provider::Boxed};

/// How any lock is made, and what it declares about itself. [`RmaLock`] and [`crate::AccessLock`]
/// add the operations.
pub trait Lock: Clone + fmt::Debug + 'static {
    /// The options that a lock is made with; the same on all ranks, unless the lock says otherwise.
    type Options: Clone + fmt::Debug + Default;
    /// The lock's name in tables.
    const NAME: &'static str;
    /// The order in which ranks that want the lock get it.
    const FAIRNESS: Fairness;
    /// Words of 8 bytes at the home.
    const HOME_WORDS: usize;

    /// Returns the bytes that the lock needs at each of `members` ranks.
    fn bytes(options: &Self::Options, members: usize) -> usize;

    /// Makes a lock homed at `home`, in [`Lock::bytes`] of zeroed memory that all its ranks have
    /// and use for nothing else. All of them make it, with the same home and options.
    ///
    /// # Errors
    /// [`rdma_fabric::FabricError::NotInGroup`], [`rdma_fabric::FabricError::NoSuchRank`] for the
    /// home; [`rdma_fabric::FabricError::OutOfBounds`] where memory is too short;
    /// [`crate::LockError::TooManyRanks`] for a lock with queues.
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

    /// Returns the fabric the lock lives on.
    fn fabric(&self) -> &Fabric;
}

/// Any readers-writer lock in a rank's memory, for programs and tests that work with all of them.
///
/// One value per rank refers to one lock shared by all; clones of it are the same value. The
/// promises in the crate's documentation hold for all: exclusion, puts of a holder visible before
/// the lock passes on, futures that may be dropped at any moment. Locks differ in what they declare
/// here, and in what they cost (`docs/systems/locks.md`).
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

    /// Takes the lock shared, or gives up at `deadline`. What earlier holders put is visible to
    /// gets posted afterwards. Dropping the future undoes what it has done.
    ///
    /// # Errors
    /// [`crate::LockError::TimedOut`]; [`crate::LockError::TooManyHolders`];
    /// [`crate::LockError::Fabric`]; [`crate::LockError::Broken`] if an earlier call failed
    /// half-way; and any other error that the lock's type documents.
    fn read_before(&self, deadline: Time) -> impl Future<Output = Result<Self::Shared<'_>>>;

    /// Takes the lock shared.
    ///
    /// # Errors
    /// As [`RmaLock::read_before`], except for the deadline.
    fn read(&self) -> impl Future<Output = Result<Self::Shared<'_>>> {
        self.read_before(Time::MAX)
    }

    /// Takes the lock shared if that needs no wait.
    ///
    /// # Errors
    /// As [`RmaLock::read`].
    fn try_read(&self) -> impl Future<Output = Result<Option<Self::Shared<'_>>>>;

    /// Takes the lock exclusively, or gives up at `deadline`. What earlier holders put is visible
    /// to gets posted afterwards. Dropping the future undoes what it has done.
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

    /// Takes the lock exclusively if that needs no wait.
    ///
    /// # Errors
    /// As [`RmaLock::read`].
    fn try_write(&self) -> impl Future<Output = Result<Option<Self::Exclusive<'_>>>>;
}

/// Proof of holding a lock. Dropping it releases the lock in the background and reports no errors.
pub trait Guard: fmt::Debug {
    /// Makes every put of this rank visible, then releases the lock. If the future is dropped
    /// half-way, the rest is done in the background.
    ///
    /// # Errors
    /// [`crate::LockError::Fabric`]: what a put met at its target, in which case the lock is still
    /// released; or what the release itself met.
    fn release(self) -> impl Future<Output = Result<()>>;
}

/// What an acquisition returns: a guard, or for a try perhaps none.
pub(crate) trait Admitted<G> {
    /// Whether it may be none.
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

/// The argument of functions that only this crate may call: no other crate can create it.
#[derive(Clone, Copy, Debug)]
pub struct OfThisCrate(());

/// The argument by which this crate calls the functions reserved to it.
pub(crate) const OURS: OfThisCrate = OfThisCrate(());

/// A lock whose words count readers without telling them apart, so that a shared hold begun by one
/// rank may be ended by another: what [`crate::locks::Aggregated`] needs.
///
/// Ending a hold that nobody has would break every promise of the lock. So only the locks of this
/// crate can be held without a guard, and only by this crate:
/// ```compile_fail,E0061
/// # use rdma_fabric::Fabric; use rma_lock::locks::AnonymousShared;
/// # async fn program<L: AnonymousShared>(lock: &L) {
/// lock.end_hold().await.unwrap();
/// # }
/// ```
pub trait AnonymousShared: RmaLock + Send + Sync {
    /// Takes a shared hold, which lasts until any rank [ends it](AnonymousShared::end_hold).
    /// Dropping the future undoes what it has done; if it fails, nothing is held.
    #[doc(hidden)]
    fn hold(&self, deadline: Time, ours: OfThisCrate) -> Boxed<'_, Result<()>>;

    /// Takes a shared hold if that needs no wait; returns whether it did.
    #[doc(hidden)]
    fn try_hold(&self, ours: OfThisCrate) -> Boxed<'_, Result<bool>>;

    /// Ends a [hold](AnonymousShared::hold) of any rank, once, by a release of this rank. That
    /// flushes only this rank's puts, so other ranks' puts must already be visible. If the future
    /// is dropped, the rest is done in the background.
    #[doc(hidden)]
    fn end_hold(&self, ours: OfThisCrate) -> Boxed<'_, Result<()>>;
}

/// A lock whose exclusive hold can be kept without its guard, by a protocol that holds the lock for
/// longer than it can borrow it: what [`crate::locks::IndicatorLock`] needs.
///
/// As with [`AnonymousShared`], only the locks of this crate do this, and only for this crate:
/// ```compile_fail,E0061
/// # use rdma_fabric::Fabric; use rma_lock::locks::{BackOffLock, KeptExclusive};
/// # async fn program(lock: &BackOffLock) {
/// lock.end_kept(0).await.unwrap();
/// # }
/// ```
pub trait KeptExclusive: RmaLock + Send + Sync {
    /// Takes the lock exclusively, held by no guard; returns what its rank must remember about the
    /// hold. Dropping the future undoes what it has done.
    #[doc(hidden)]
    fn keep(&self, deadline: Time, ours: OfThisCrate) -> Boxed<'_, Result<u64>>;

    /// Takes the lock exclusively, held by no guard, if that needs no wait.
    #[doc(hidden)]
    fn try_keep(&self, ours: OfThisCrate) -> Boxed<'_, Result<Option<u64>>>;

    /// Ends a hold that this rank [kept](KeptExclusive::keep), once. If the future is dropped, the
    /// rest is done in the background.
    #[doc(hidden)]
    fn end_kept(&self, kept: u64, ours: OfThisCrate) -> Boxed<'_, Result<()>>;
}

/// The order in which ranks that want a lock get it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fairness {
    /// Readers never wait for a writer that is itself waiting, and cannot starve; writers get in
    /// one at a time in order of arrival, and starve under a steady stream of readers.
    ReadersFirst,
    /// Readers get in only when no writer waits, and starve under a steady stream of writers;
    /// writers get in one at a time in order of arrival.
    WritersFirst,
    /// Ranks get in in order of arrival; adjacent readers get in together. Nobody starves.
    Fifo,
    /// Readers and writers take turns as long as both want the lock. Readers that find a writer
    /// inside get in when it leaves, before the next one; writers wait for no reader that comes
    /// after them, and get in in the order given by the lock that keeps them apart.
    Alternating,
    /// Any rank that comes when the lock is free gets in, however long others have waited; any rank
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
