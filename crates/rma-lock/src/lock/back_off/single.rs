//! A single word for readers and writers.

use super::{
    attempt::{Base, Claim, Claims, WordClaim, acquire, try_acquire},
    guard::{BackOffGuard, Exclusive, Mode, Shared},
    pace::BackOff,
};
use crate::{
    Fairness, Guard, Lock, Result, RmaLock,
    lock::{
        AnonymousShared, KeptExclusive, OfThisCrate,
        boxed::wrapped,
        posting::{Posting, Unfinished, atomic_now},
    },
};
use core::{fmt, future::Future, marker::PhantomData, mem, task::Context};
use rdma_fabric::{
    Fabric, GroupMemory, Rank, RemoteWord, Time,
    fast_path::{FastPath, fast_path},
    provider::Boxed,
};
use std::sync::Arc;

/// A separate cache line.
const LOCK_BYTES: usize = 64;

/// A readers-writer lock of one word at its home; ranks that find it taken sleep and try again.
///
/// One value per rank refers to one lock shared by all; clones of it are the same value. A rank may
/// hold the lock shared several times; taking it again while holding it exclusively deadlocks.
///
/// Uncontended remote operations: 1 atomic to lock, shared or exclusively, and 1 to unlock. An
/// attempt that finds it taken costs a reader 2 atomics, a writer 1.
///
/// No rank is guaranteed to take the lock: any rank that finds it free takes it, and readers keep
/// writers out as long as one of them is inside. In exchange, a hand-over does not wait for any
/// particular rank, so the lock suits oversubscribed jobs with many more ranks than cores.
///
/// # Errors and deaths
/// Besides those of [`RmaLock::read_before`], [`crate::LockError::Contended`], but not for a try.
/// At least one attempt is made, even if the deadline has passed. If the home is lost, calls end
/// with [`rdma_fabric::FabricError::PeerLost`]. If a *holder* is lost, its word stays unchanged,
/// and the owner of the hold is unknown: others try until their deadline, at most
/// [`BackOff::attempts`] times, or forever if there is neither limit.
///
/// # Dropped futures
/// An attempt in flight that is dropped is awaited in the background, and released if it succeeded;
/// a release is completed. A sleep simply ends.
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

/// The first attempt, if it completes when it is posted.
struct Enter<'a, Held>(&'a BackOffLock, Claim, PhantomData<fn() -> Held>);

impl<'a, M: Mode, Held: From<BackOffGuard<'a, M>>> FastPath for Enter<'a, (M, Held)> {
    type Out = Result<Held>;
    type Stage = Unfinished;

    #[inline(always)]
    fn fast(self, _: &mut Context<'_>) -> Result<Result<Held>, Self::Stage> {
        let Enter(lock, claim, _) = self;
        if !lock.base.ordered_everywhere || !lock.base.broken.is_whole() {
            return Err(None);
        }
        match atomic_now(&lock.base.fabric, &lock.word, claim.enter) {
            Ok(old) if claim.admits(old) => Ok(Ok(BackOffGuard::new(lock).into())),
            Ok(old) => Err(Some(Box::new(Posting::Complete(Ok(old))))),
            Err(posting) => Err(posting),
        }
    }
}

impl BackOffLock {
    #[inline(always)]
    fn enter_before<M: Mode>(&self, deadline: Time) -> impl Future<Output = Result<BackOffGuard<'_, M>>> {
        let fast = Enter::<(M, BackOffGuard<'_, M>)>(self, M::CLAIM, PhantomData);
        fast_path(fast, move |first| wrapped(self.enter_slow(M::CLAIM, first, deadline), |()| BackOffGuard::new(self)))
    }

    #[inline(always)]
    fn try_enter<M: Mode>(&self) -> impl Future<Output = Result<Option<BackOffGuard<'_, M>>>> {
        let fast = Enter::<(M, Option<BackOffGuard<'_, M>>)>(self, M::CLAIM, PhantomData);
        fast_path(fast, move |first| {
            wrapped(self.try_enter_slow(M::CLAIM, first), |entered| entered.then(|| BackOffGuard::new(self)))
        })
    }

    fn enter_slow(&self, claim: Claim, first: Unfinished, deadline: Time) -> Boxed<'_, Result<()>> {
        Box::pin(acquire(&self.base, self.claims(claim), first, deadline))
    }

    fn try_enter_slow(&self, claim: Claim, first: Unfinished) -> Boxed<'_, Result<bool>> {
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

impl RmaLock for BackOffLock {
    type Shared<'a> = BackOffGuard<'a, Shared>;
    type Exclusive<'a> = BackOffGuard<'a, Exclusive>;

    #[inline]
    fn read_before(&self, deadline: Time) -> impl Future<Output = Result<Self::Shared<'_>>> {
        self.enter_before(deadline)
    }

    #[inline]
    fn try_read(&self) -> impl Future<Output = Result<Option<Self::Shared<'_>>>> {
        self.try_enter()
    }

    #[inline]
    fn write_before(&self, deadline: Time) -> impl Future<Output = Result<Self::Exclusive<'_>>> {
        self.enter_before(deadline)
    }

    #[inline]
    fn try_write(&self) -> impl Future<Output = Result<Option<Self::Exclusive<'_>>>> {
        self.try_enter()
    }
}

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
