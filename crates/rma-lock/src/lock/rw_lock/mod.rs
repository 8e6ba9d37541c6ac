//! The readers-writer lock for most programs: one of the crate's locks, chosen on creation.

mod choice;
mod inner;
mod kind;

pub use choice::{Choice, Hint, Policy};
pub use kind::{LockKind, UnknownLock};

use crate::{
    Fairness, Guard, Lock, Result, RmaLock,
    lock::{guard_by_itself, lock_by_itself},
    locks::RecoverableLock,
};
use core::{convert::identity, fmt, future::Future};
use inner::{
    Inner, ReadPath, ReadReleasePath, Reading, TryReadPath, TryWritePath, WritePath, WriteReleasePath, Writing,
};
use rdma_fabric::{Fabric, GroupMemory, Rank, Time, fast_path::fast_path};

/// A readers-writer lock in one rank's memory, created with a [`Policy`].
///
/// One value per rank refers to one lock shared by all; clones of it are the same value. The
/// crate's documentation states the guarantees of all locks; [`Policy`] states those of each
/// policy.
///
/// ```
/// use rdma_fabric::{Fabric, Group, ProgramResult, Rank};
/// use rma_lock::{Policy, RwLock};
///
/// /// Every rank enters once.
/// async fn enter(fabric: Fabric) -> ProgramResult<()> {
///     let lock = RwLock::with_policy(&fabric, Rank::new(0), Policy::Fair).await?;
///     let guard = lock.write().await?;
///     // ... remote gets and puts, in exclusion of all other ranks ...
///     guard.release().await?; // flushes first
///     Group::world(&fabric).await?.barrier().await?; // the lock is freed with its home
///     Ok(())
/// }
/// # checks::documented::run(3, &enter);
/// ```
#[derive(Clone)]
pub struct RwLock {
    choice: Choice,
    inner: Inner,
}

/// Shared access to a [`RwLock`]: no writer is inside.
///
/// Dropping it releases the lock in the background, as [`RwLockReadGuard::release`] does, without
/// reporting errors.
#[must_use = "a guard that is dropped at once protects nothing"]
#[derive(Debug)]
pub struct RwLockReadGuard<'a>(Reading<'a>);

/// Exclusive access to a [`RwLock`]: there is no other holder.
///
/// Dropping it releases the lock in the background, as [`RwLockWriteGuard::release`] does, without
/// reporting errors.
#[must_use = "a guard that is dropped at once protects nothing"]
#[derive(Debug)]
pub struct RwLockWriteGuard<'a>(Writing<'a>);

impl RwLockReadGuard<'_> {
    /// Makes every put of this rank visible, then releases the lock. If the future is dropped
    /// before it is complete, the rest is done in the background.
    ///
    /// # Errors
    /// [`crate::LockError::Fabric`]: the failure of a put at its target, in which case the lock is still
    /// released; or the failure of the release itself.
    #[inline]
    pub fn release(self) -> impl Future<Output = Result<()>> {
        fast_path(ReadReleasePath(self.0), identity)
    }
}

impl RwLockWriteGuard<'_> {
    /// Makes every put of this rank visible, then releases the lock. If the future is dropped
    /// before it is complete, the rest is done in the background.
    ///
    /// # Errors
    /// As [`RwLockReadGuard::release`].
    #[inline]
    pub fn release(self) -> impl Future<Output = Result<()>> {
        fast_path(WriteReleasePath(self.0), identity)
    }
}

lock_by_itself!([] RwLock, RwLockReadGuard<'a>, RwLockWriteGuard<'a>);
guard_by_itself!([] RwLockReadGuard<'_>);
guard_by_itself!([] RwLockWriteGuard<'_>);

impl RwLock {
    /// Makes a lock homed at `home` that prefers readers ([`Policy::ReaderPreference`]). Collective
    /// over the job: all ranks call this in the same order relative to other symmetric allocations.
    ///
    /// # Errors
    /// As [`Fabric::alloc_symmetric`]; [`rdma_fabric::FabricError::NoSuchRank`];
    /// [`crate::LockError::TooManyRanks`].
    pub fn symmetric(fabric: &Fabric, home: Rank) -> impl Future<Output = Result<Self>> {
        <Self as Lock>::symmetric(fabric, home)
    }

    /// Makes a lock homed at `home` with a policy, which must be the same at all ranks. Collective
    /// over the job: all ranks call this in the same order relative to other symmetric allocations.
    ///
    /// # Errors
    /// As [`RwLock::symmetric`].
    pub fn with_policy(fabric: &Fabric, home: Rank, policy: Policy) -> impl Future<Output = Result<Self>> {
        <Self as Lock>::symmetric_with(fabric, home, policy.choose(fabric.ranks(), fabric.facts().node_count()))
    }

    /// Takes the lock shared. The puts of earlier writers are visible to gets posted afterwards.
    /// Dropping the future undoes its effects.
    ///
    /// # Errors
    /// [`crate::LockError::TooManyHolders`]; [`crate::LockError::TooManyWaiting`];
    /// [`crate::LockError::Fabric`]; [`crate::LockError::Broken`] if an earlier call failed
    /// half-way; [`crate::LockError::Torn`] and [`crate::LockError::Unrecoverable`] for a
    /// recoverable lock.
    #[inline]
    pub fn read(&self) -> impl Future<Output = Result<RwLockReadGuard<'_>>> {
        self.read_before(Time::MAX)
    }

    /// Takes the lock shared, or gives up at `deadline`. The puts of earlier writers are visible to
    /// gets posted afterwards. Dropping the future undoes its effects.
    ///
    /// # Errors
    /// [`crate::LockError::TimedOut`]; as [`RwLock::read`].
    #[inline]
    pub fn read_before(&self, deadline: Time) -> impl Future<Output = Result<RwLockReadGuard<'_>>> {
        fast_path(ReadPath(self, deadline), identity)
    }

    /// Takes the lock exclusively, or gives up at `deadline`. The puts of earlier holders are
    /// visible to gets posted afterwards. Dropping the future undoes its effects.
    ///
    /// # Errors
    /// [`crate::LockError::TimedOut`]; as [`RwLock::write`].
    #[inline]
    pub fn write_before(&self, deadline: Time) -> impl Future<Output = Result<RwLockWriteGuard<'_>>> {
        fast_path(WritePath(self, deadline), identity)
    }

    /// Takes the lock exclusively. The puts of earlier holders are visible to gets posted
    /// afterwards. Dropping the future undoes its effects.
    ///
    /// # Errors
    /// As [`RwLock::read`].
    #[inline]
    pub fn write(&self) -> impl Future<Output = Result<RwLockWriteGuard<'_>>> {
        self.write_before(Time::MAX)
    }

    /// Takes the lock shared if that does not require waiting. Dropping the future undoes its
    /// effects.
    ///
    /// # Errors
    /// As [`RwLock::read`].
    #[inline]
    pub fn try_read(&self) -> impl Future<Output = Result<Option<RwLockReadGuard<'_>>>> {
        fast_path(TryReadPath(self), identity)
    }

    /// Takes the lock exclusively if that does not require waiting. Dropping the future undoes its
    /// effects.
    ///
    /// # Errors
    /// As [`RwLock::write`].
    #[inline]
    pub fn try_write(&self) -> impl Future<Output = Result<Option<RwLockWriteGuard<'_>>>> {
        fast_path(TryWritePath(self), identity)
    }

    /// Returns the kind of this lock, and the reason for the choice.
    pub fn choice(&self) -> Choice {
        self.choice
    }

    /// Returns the order in which ranks acquire the lock.
    pub fn fairness(&self) -> Fairness {
        self.choice.kind.fairness()
    }

    /// Returns the inner lock if it is recoverable: torn data is repaired through it
    /// ([`RecoverableLock::mend`]).
    pub fn recoverable(&self) -> Option<&RecoverableLock> {
        match &self.inner {
            Inner::Recoverable(lock) => Some(lock),
            _ => None,
        }
    }
}

/// Shows the kind of this lock, and the reason for the choice.
impl fmt::Display for RwLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.choice.fmt(f)
    }
}

impl Lock for RwLock {
    type Options = Choice;

    const NAME: &'static str = "chosen at run time";
    /// The weakest guarantee of all kinds; [`RwLock::fairness`] is more specific.
    const FAIRNESS: Fairness = Fairness::Barging;
    /// The largest number of all kinds.
    const HOME_WORDS: usize = 4;

    fn bytes(choice: &Choice, members: usize) -> usize {
        crate::with_lock!(choice.kind, L, options => <L as Lock>::bytes(&options, members))
    }

    fn over(fabric: &Fabric, memory: GroupMemory, home: Rank, choice: Choice) -> Result<Self> {
        let inner = crate::with_lock!(choice.kind, L, options => Inner::from(<L as Lock>::over(fabric, memory, home, options)?));
        Ok(RwLock { choice, inner })
    }

    fn home(&self) -> Rank {
        RwLock::home(self)
    }

    fn fabric(&self) -> &Fabric {
        RwLock::fabric(self)
    }
}
