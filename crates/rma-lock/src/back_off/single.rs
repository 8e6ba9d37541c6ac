//! One word for readers and writers.

use super::{
    attempt::{Base, Claim, Claims, WordClaim, acquire, try_acquire},
    guard::{BackOffGuard, Exclusive, Mode, Shared},
    pace::BackOff,
};
use crate::{
    Fairness, Lock, Result, RmaLock,
    boxed::wrapped,
    in_place::{FastPath, NotOver, Posting, atomic_now, in_place},
    lock::{AnonymousShared, KeptExclusive, OfThisCrate, lock_by_itself},
};
use core::{fmt, future::Future, marker::PhantomData, mem, task::Context};
use rdma_fabric::{Fabric, GroupMemory, Rank, RemoteWord, Time, provider::Boxed};
use std::sync::Arc;

/// A cache line of its own.
const LOCK_BYTES: usize = 64;

/// A readers-writer lock of one word at its home; ranks that find it taken sleep and try again.
///
/// One value per rank refers to one lock shared by all; clones of it are the same value. A rank may
/// hold the lock shared several times; asking for it again while holding it exclusively waits for
/// ever.
///
/// Uncontended remote operations: 1 atomic to lock, shared or exclusively, and 1 to unlock. An
/// attempt that finds it taken costs a reader 2 atomics, a writer 1.
///
/// No rank is guaranteed to get in: any rank that comes when the lock is free takes it, and readers
/// keep writers out as long as one of them is inside. In exchange a hand-over waits for no
/// particular rank, so the lock suits oversubscribed jobs, with many more ranks than cores.
///
/// # Errors and deaths
/// If the home is lost, calls end with [`rdma_fabric::FabricError::PeerLost`]. If a *holder* is
/// lost, its word stays as it is, and nobody can know whose hold it was: others try until their
/// deadline, as often as [`BackOff::attempts`] says, or without either for ever.
///
/// # Dropped futures
/// An attempt in flight that is dropped is awaited in the background, and given back if it
/// succeeded; a release is completed. A sleep simply ends.
#[derive(Clone)]
pub struct BackOffLock {
    pub(super) base: Arc<Base>,
    pub(super) word: RemoteWord<u64>,
}

impl fmt::Debug for BackOffLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BackOffLock({:?})", self.base)
    }
}

/// The first attempt, if it completes when posted.
struct Enter<'a, Held>(&'a BackOffLock, Claim, PhantomData<fn() -> Held>);

impl<'a, M: Mode, Held: From<BackOffGuard<'a, M>>> FastPath for Enter<'a, (M, Held)> {
    type Out = Result<Held>;
    type Stage = NotOver;

    #[inline(always)]
    fn now(self, _: &mut Context<'_>) -> Result<Self::Out, Self::Stage> {
        let Enter(lock, claim, _) = self;
        if !lock.base.ordered_everywhere || !lock.base.broken.is_whole() {
            return Err(None);
        }
        match atomic_now(&lock.base.fabric, &lock.word, claim.enter) {
            Ok(old) if claim.admits(old) => Ok(Ok(BackOffGuard::new(lock).into())),
            Ok(old) => Err(Some(Box::new(Posting::Over(Ok(old))))),
            Err(posting) => Err(posting),
        }
    }
}

impl BackOffLock {
    /// Makes a lock homed at `home` with the default [`BackOff`]. Collective over the job: all
    /// ranks call it in the same order relative to other symmetric allocations.
    ///
    /// # Errors
    /// As [`Fabric::alloc_symmetric`], and [`rdma_fabric::FabricError::NoSuchRank`].
    pub fn symmetric(fabric: &Fabric, home: Rank) -> impl Future<Output = Result<Self>> {
        BackOffLock::symmetric_with(fabric, home, BackOff::default())
    }

    /// Makes a lock of the whole job with another [`BackOff`], otherwise as
    /// [`BackOffLock::symmetric`] does.
    ///
    /// # Errors
    /// As [`BackOffLock::symmetric`].
    pub fn symmetric_with(fabric: &Fabric, home: Rank, back_off: BackOff) -> impl Future<Output = Result<Self>> {
        <Self as Lock>::symmetric_with(fabric, home, back_off)
    }

    /// Returns the rank whose memory holds the lock word.
    pub fn home(&self) -> Rank {
        self.base.home
    }

    /// Returns the fabric the lock lives on.
    pub fn fabric(&self) -> &Fabric {
        &self.base.fabric
    }

    /// Takes the lock shared: no writer is inside. What earlier writers put is visible to gets
    /// posted afterwards.
    ///
    /// # Errors
    /// [`crate::LockError::Fabric`]; [`crate::LockError::Contended`];
    /// [`crate::LockError::TooManyHolders`]; [`crate::LockError::Broken`] if an earlier call failed
    /// half-way.
    #[inline]
    pub fn read(&self) -> impl Future<Output = Result<BackOffGuard<'_, Shared>>> {
        self.enter_before(Time::MAX)
    }

    /// Takes the lock shared, or gives up at `deadline`; makes at least one attempt.
    ///
    /// # Errors
    /// As [`BackOffLock::read`], and [`crate::LockError::TimedOut`].
    #[inline]
    pub fn read_before(&self, deadline: Time) -> impl Future<Output = Result<BackOffGuard<'_, Shared>>> {
        self.enter_before(deadline)
    }

    /// Takes the lock shared if no writer is inside.
    ///
    /// # Errors
    /// As [`BackOffLock::read`], but never [`crate::LockError::Contended`].
    #[inline]
    pub fn try_read(&self) -> impl Future<Output = Result<Option<BackOffGuard<'_, Shared>>>> {
        self.try_enter()
    }

    /// Takes the lock exclusively: nobody else is inside. What earlier holders put is visible to
    /// gets posted afterwards.
    ///
    /// # Errors
    /// As [`BackOffLock::read`].
    #[inline]
    pub fn write(&self) -> impl Future<Output = Result<BackOffGuard<'_, Exclusive>>> {
        self.enter_before(Time::MAX)
    }

    /// Takes the lock exclusively, or gives up at `deadline`; makes at least one attempt.
    ///
    /// # Errors
    /// As [`BackOffLock::write`], and [`crate::LockError::TimedOut`].
    #[inline]
    pub fn write_before(&self, deadline: Time) -> impl Future<Output = Result<BackOffGuard<'_, Exclusive>>> {
        self.enter_before(deadline)
    }

    /// Takes the lock exclusively if nobody is inside. A reader that is about to find a writer
    /// there and uncount itself counts as inside.
    ///
    /// # Errors
    /// As [`BackOffLock::write`], but never [`crate::LockError::Contended`].
    #[inline]
    pub fn try_write(&self) -> impl Future<Output = Result<Option<BackOffGuard<'_, Exclusive>>>> {
        self.try_enter()
    }

    #[inline(always)]
    fn enter_before<M: Mode>(&self, deadline: Time) -> impl Future<Output = Result<BackOffGuard<'_, M>>> {
        let fast = Enter::<(M, BackOffGuard<'_, M>)>(self, M::CLAIM, PhantomData);
        in_place(fast, move |first| wrapped(self.enter_later(M::CLAIM, first, deadline), |()| BackOffGuard::new(self)))
    }

    #[inline(always)]
    fn try_enter<M: Mode>(&self) -> impl Future<Output = Result<Option<BackOffGuard<'_, M>>>> {
        let fast = Enter::<(M, Option<BackOffGuard<'_, M>>)>(self, M::CLAIM, PhantomData);
        in_place(fast, move |first| {
            wrapped(self.try_enter_later(M::CLAIM, first), |entered| entered.then(|| BackOffGuard::new(self)))
        })
    }

    fn enter_later(&self, claim: Claim, first: NotOver, deadline: Time) -> Boxed<'_, Result<()>> {
        Box::pin(acquire(&self.base, self.claims(claim), first, deadline))
    }

    fn try_enter_later(&self, claim: Claim, first: NotOver) -> Boxed<'_, Result<bool>> {
        Box::pin(try_acquire(&self.base, self.claims(claim), first))
    }

    pub(super) fn claims(&self, claim: Claim) -> Claims {
        Arc::new([WordClaim { word: self.word.clone(), claim }])
    }
}

impl Lock for BackOffLock {
    type Options = BackOff;

    const NAME: &'static str = "back-off";
    const FAIRNESS: Fairness = Fairness::Barging;
    const HOME_WORDS: usize = 1;

    fn bytes(_: &BackOff, _: usize) -> usize {
        LOCK_BYTES
    }

    fn over(fabric: &Fabric, memory: GroupMemory, home: Rank, options: BackOff) -> Result<Self> {
        let memory = memory.part(0, LOCK_BYTES)?;
        let word = fabric.remote_word(memory.at(home, 0)?)?;
        let base = Base::over(fabric, memory, home, options)?;
        Ok(BackOffLock { base: Arc::new(base), word })
    }

    fn home(&self) -> Rank {
        self.base.home
    }

    fn fabric(&self) -> &Fabric {
        &self.base.fabric
    }
}

lock_by_itself!([] BackOffLock, BackOffGuard<'a, Shared>, BackOffGuard<'a, Exclusive>);

impl AnonymousShared for BackOffLock {
    fn hold(&self, deadline: Time, _: OfThisCrate) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            mem::forget(self.read_before(deadline).await?);
            Ok(())
        })
    }

    fn try_hold(&self, _: OfThisCrate) -> Boxed<'_, Result<bool>> {
        Box::pin(async move { Ok(self.try_read().await?.map(mem::forget).is_some()) })
    }

    fn end_hold(&self, _: OfThisCrate) -> Boxed<'_, Result<()>> {
        Box::pin(BackOffGuard::<Shared>::new(self).release())
    }
}

impl KeptExclusive for BackOffLock {
    fn keep(&self, deadline: Time, _: OfThisCrate) -> Boxed<'_, Result<u64>> {
        Box::pin(async move {
            mem::forget(self.write_before(deadline).await?);
            Ok(0)
        })
    }

    fn try_keep(&self, _: OfThisCrate) -> Boxed<'_, Result<Option<u64>>> {
        Box::pin(async move {
            Ok(self.try_write().await?.map(|guard| {
                mem::forget(guard);
                0
            }))
        })
    }

    fn end_kept(&self, _: u64, _: OfThisCrate) -> Boxed<'_, Result<()>> {
        Box::pin(BackOffGuard::<Exclusive>::new(self).release())
    }
}
