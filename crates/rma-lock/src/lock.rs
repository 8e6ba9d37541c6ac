//! What all locks of this crate can do.

use crate::{CountedLock, ReadGuard, Result, Scheme, WriteGuard, counted::Writing, queue::LOCK_BYTES};
use core::{fmt, future::Future, mem};
use rdma_fabric::{Fabric, Group, GroupMemory, Rank, Time};

/// How any lock is made, and what it says of itself. What it does is [`RmaLock`]'s or [`crate::AccessLock`]'s.
pub trait Lock: Clone + fmt::Debug + 'static {
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
    /// where memory is too short; [`crate::LockError::TooManyRanks`] of a lock with queues.
    fn over(fabric: &Fabric, memory: GroupMemory, home: Rank, options: Self::Options) -> Result<Self>;

    /// A lock of the whole job, homed at `home`. Collective over the job: all ranks call it in the same order relative to other
    /// symmetric allocations.
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

    /// A lock of a group's members, homed at one of them. Collective over the group. Others are not concerned, alive or dead.
    ///
    /// # Errors
    /// As [`Group::memory`], and [`rdma_fabric::FabricError::NotInGroup`] of the home.
    fn in_group(group: &mut Group, home: Rank, options: Self::Options) -> impl Future<Output = Result<Self>> {
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
    fn symmetric(fabric: &Fabric, home: Rank) -> impl Future<Output = Result<Self>> {
        Self::symmetric_with(fabric, home, Self::Options::default())
    }

    /// The rank whose memory holds the lock words.
    fn home(&self) -> Rank;

    /// The fabric the lock lives on.
    fn fabric(&self) -> &Fabric;
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
/// async fn enter<L: RmaLock>(fabric: &Fabric) -> ProgramResult<()> {
///     let lock = L::symmetric(fabric, Rank::new(0)).await?;
///     let guard = lock.write().await?;
///     // ... remote gets and puts that nobody disturbs ...
///     Ok(guard.release().await?)
/// }
/// ```
pub trait RmaLock: Lock {
    /// Proof of shared access.
    type Shared<'a>: Guard;
    /// Proof of exclusive access.
    type Exclusive<'a>: Guard;

    /// Take the lock shared, or give up at `deadline`. What earlier holders put is visible to gets posted afterwards. Dropping the future
    /// takes back what it has done.
    ///
    /// # Errors
    /// [`crate::LockError::TimedOut`]; [`crate::LockError::TooManyHolders`];
    /// [`crate::LockError::Fabric`]; [`crate::LockError::Broken`] if an earlier call failed
    /// half-way; what else the lock's own method says.
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

/// Given by those who call, and implement, what must be left to this crate: nobody else can name or
/// make it.
#[derive(Clone, Copy, Debug)]
pub struct OfThisCrate(());

/// This crate's.
pub(crate) const OURS: OfThisCrate = OfThisCrate(());

/// A lock whose words count readers without telling them apart, so that a shared hold which one
/// rank began may be ended by another: what [`crate::Aggregated`] needs.
///
/// A guard made of nothing would break every promise of the lock, so only the locks of this crate
/// hand holds over, and only this crate can tell them to:
/// ```compile_fail,E0061
/// # use rdma_fabric::Fabric; use rma_lock::{AnonymousShared, Guard, RmaLock};
/// # async fn program<L: AnonymousShared>(lock: &L) {
/// lock.adopt_shared().release().await.unwrap();
/// # }
/// ```
pub trait AnonymousShared: RmaLock {
    /// Give a shared hold away: it is held until somebody who has [taken it
    /// over](AnonymousShared::adopt_shared) releases it. What a rank publishes of its readers tells
    /// of a hold only while somebody has its guard.
    ///
    /// Nothing is flushed. Puts made under the hold must be visible before the one who releases it is told so: flush before telling, for a release
    /// flushes only its own rank's puts.
    #[doc(hidden)]
    fn hand_over(guard: Self::Shared<'_>, ours: OfThisCrate);

    /// Take over a shared hold that was [handed over](AnonymousShared::hand_over), by any rank, and by nobody taken over before. No operation.
    ///
    /// Taking over what nobody handed over breaks the lock: others' exclusion is lost, or they wait for ever.
    #[doc(hidden)]
    fn adopt_shared(&self, ours: OfThisCrate) -> Self::Shared<'_>;
}

/// A lock whose exclusive hold can be kept without its guard, by a protocol that holds the lock for
/// longer than a borrow of it lasts: what [`crate::IndicatorLock`] needs.
///
/// As with [`AnonymousShared`], only the locks of this crate do it, when this crate tells them to:
/// ```compile_fail,E0061
/// # use rdma_fabric::Fabric; use rma_lock::{BackOffLock, Guard, KeptExclusive};
/// # async fn program(lock: &BackOffLock) {
/// lock.take_up(()).release().await.unwrap();
/// # }
/// ```
pub trait KeptExclusive: RmaLock {
    /// What its rank must remember of a hold.
    #[doc(hidden)]
    type Kept: fmt::Debug + Send + 'static;

    /// Keep the lock held, by no guard.
    #[doc(hidden)]
    fn keep(guard: Self::Exclusive<'_>, ours: OfThisCrate) -> Self::Kept;

    /// The guard of a hold that this rank [kept](KeptExclusive::keep), once.
    #[doc(hidden)]
    fn take_up(&self, kept: Self::Kept, ours: OfThisCrate) -> Self::Exclusive<'_>;
}

/// Who gets in when several want to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fairness {
    /// Readers wait for no writer that waits, and cannot starve; writers get in one after the other in order of arrival, and starve
    /// under a steady stream of readers.
    ReadersFirst,
    /// Readers get in only when no writer waits, and starve under a steady stream of writers; writers get in one after the other in order of
    /// arrival.
    WritersFirst,
    /// In order of arrival, readers beside each other together. Nobody starves.
    Fifo,
    /// Readers and writers take turns as long as both want: readers that find a writer inside get in when it leaves, before the next one;
    /// writers wait for no reader that comes after them, and get in in the order of the lock that keeps them apart.
    Alternating,
    /// Whoever comes when the lock is free gets in, however long others have waited; anybody can starve.
    Barging,
}

impl<S: Scheme> Lock for CountedLock<S> {
    type Options = ();

    const NAME: &'static str = S::NAME;
    const FAIRNESS: Fairness = S::FAIRNESS;
    const HOME_WORDS: usize = S::HOME_WORDS;

    fn bytes((): &(), _: usize) -> usize {
        LOCK_BYTES
    }

    fn over(fabric: &Fabric, memory: GroupMemory, home: Rank, (): ()) -> Result<Self> {
        CountedLock::over(fabric, memory, home)
    }

    fn home(&self) -> Rank {
        CountedLock::home(self)
    }

    fn fabric(&self) -> &Fabric {
        CountedLock::fabric(self)
    }
}

impl<S: Scheme> RmaLock for CountedLock<S> {
    type Shared<'a> = ReadGuard<'a, S>;
    type Exclusive<'a> = WriteGuard<'a, S>;

    #[inline]
    fn read_before(&self, deadline: Time) -> impl Future<Output = Result<ReadGuard<'_, S>>> {
        CountedLock::read_before(self, deadline)
    }

    #[inline]
    fn try_read(&self) -> impl Future<Output = Result<Option<ReadGuard<'_, S>>>> {
        CountedLock::try_read(self)
    }

    #[inline]
    fn write_before(&self, deadline: Time) -> impl Future<Output = Result<WriteGuard<'_, S>>> {
        CountedLock::write_before(self, deadline)
    }

    #[inline]
    fn try_write(&self) -> impl Future<Output = Result<Option<WriteGuard<'_, S>>>> {
        CountedLock::try_write(self)
    }
}

impl<S: Scheme> AnonymousShared for CountedLock<S> {
    #[inline]
    fn hand_over(guard: ReadGuard<'_, S>, _: OfThisCrate) {
        guard.lock().core.pass_reader_on();
        mem::forget(guard);
    }

    #[inline]
    fn adopt_shared(&self, _: OfThisCrate) -> ReadGuard<'_, S> {
        self.core.take_reader_over();
        ReadGuard::new(self)
    }
}

impl<S: Scheme> KeptExclusive for CountedLock<S> {
    type Kept = Writing;

    #[inline]
    fn keep(guard: WriteGuard<'_, S>, _: OfThisCrate) -> Writing {
        guard.disarm()
    }

    #[inline]
    fn take_up(&self, kept: Writing, _: OfThisCrate) -> WriteGuard<'_, S> {
        WriteGuard::new(self, kept)
    }
}

impl<S: Scheme> Guard for ReadGuard<'_, S> {
    #[inline]
    fn release(self) -> impl Future<Output = Result<()>> {
        ReadGuard::release(self)
    }
}

impl<S: Scheme> Guard for WriteGuard<'_, S> {
    #[inline]
    fn release(self) -> impl Future<Output = Result<()>> {
        WriteGuard::release(self)
    }
}
