//! One word for readers and writers.

use super::{
    attempt::{Base, Way, acquire, try_acquire},
    claim::Claim,
    guard::BackOffGuard,
    pace::BackOff,
};
use crate::{
    AnonymousShared, Fairness, KeptExclusive, Lock, Result, RmaLock,
    lock::OfThisCrate,
    posting::{NotOver, Posting, poll_atomic},
    shortcut::{Now, Try, shortcut},
};
use core::{
    fmt,
    future::{self, Future},
    marker::PhantomData,
    mem,
    task::Context,
};
use rdma_fabric::{Fabric, GroupMemory, Rank, RemoteWord, Time};
use std::sync::Arc;

/// A line of its own.
const LOCK_BYTES: usize = 64;

/// A readers-writer lock of one word at its home, for which ranks that find it taken come back after a while.
///
/// One value per rank refers to one lock for all; clones of it are the same value. A rank may hold the lock shared several times;
/// holding it exclusively and asking for it again waits for ever.
///
/// Remote operations without contention: 1 atomic to lock, shared or exclusively, and 1 to unlock. An attempt that finds it taken
/// costs a reader 2 atomics, a writer 1.
///
/// Nobody is promised to get in: whoever comes when the lock is free takes it, and readers keep writers out as long as one of them
/// is inside. In exchange a hand-over waits for nobody in particular, so that there may be many more ranks than cores.
///
/// # Errors and deaths
/// If the home is lost, calls end with [`rdma_fabric::FabricError::PeerLost`]. If a *holder* is lost, its word stays as it is, and nobody can
/// know whose it was: others try until their deadline, or as often as [`BackOff::attempts`] says, and without either for ever.
///
/// # Dropped futures
/// An attempt under way that is dropped is awaited in the background, and given back if it succeeded; a release is completed. A
/// sleep owes nothing.
pub struct BackOffLock {
    pub(super) base: Arc<Base>,
    pub(super) word: RemoteWord<u64>,
}

impl Clone for BackOffLock {
    fn clone(&self) -> Self {
        BackOffLock { base: self.base.clone(), word: self.word.clone() }
    }
}

impl fmt::Debug for BackOffLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BackOffLock({:?})", self.base)
    }
}

/// Shared access.
#[derive(Clone, Copy, Debug)]
pub struct Shared;

/// Exclusive access.
#[derive(Clone, Copy, Debug)]
pub struct Exclusive;

/// [`Shared`] or [`Exclusive`].
pub trait Mode: Sealed + fmt::Debug + 'static {
    /// The access, for people.
    const NAME: &'static str;
}

mod sealed {
    use crate::back_off::claim::Claim;

    pub trait Sealed {
        #[doc(hidden)]
        #[allow(private_interfaces, reason = "only this crate can name it")]
        const CLAIM: Claim;
        #[doc(hidden)]
        const WRITES: bool;
    }
}
pub(super) use sealed::Sealed;

#[allow(private_interfaces, reason = "only this crate can name it")]
impl Sealed for Shared {
    const CLAIM: Claim = Claim::READ;
    const WRITES: bool = false;
}

impl Mode for Shared {
    const NAME: &'static str = "shared";
}

#[allow(private_interfaces, reason = "only this crate can name it")]
impl Sealed for Exclusive {
    const CLAIM: Claim = Claim::WRITE;
    const WRITES: bool = true;
}

impl Mode for Exclusive {
    const NAME: &'static str = "exclusive";
}

/// The first attempt, where it is over when it is posted.
struct Enter<'a, Held>(&'a BackOffLock, Claim, PhantomData<fn() -> Held>);

impl<'a, M: Mode, Held: From<BackOffGuard<'a, M>>> Try for Enter<'a, (M, Held)> {
    type Out = Result<Held>;
    type Posted = future::Pending<Result<Self::Out, Self::Stage>>;
    type Stage = NotOver;

    #[inline(always)]
    fn now(self, cx: &mut Context<'_>) -> Now<Self> {
        let Enter(lock, claim, _) = self;
        if !lock.base.ordered_everywhere || !lock.base.is_whole() {
            return Now::Stuck(None);
        }
        match poll_atomic(&lock.base.fabric, &lock.word, claim.enter, cx) {
            Ok(old) if claim.admits(old) => Now::Over(Ok(BackOffGuard::new(lock).into())),
            Ok(old) => Now::Stuck(Some(Box::new(Posting::Over(Ok(old))))),
            Err(posting) => Now::Stuck(posting),
        }
    }
}

impl BackOffLock {
    /// A lock homed at `home` with the default [`BackOff`]. Collective over the job: all ranks call it in the same order relative to
    /// other symmetric allocations.
    ///
    /// # Errors
    /// As [`Fabric::alloc_symmetric`], and [`rdma_fabric::FabricError::NoSuchRank`].
    pub fn symmetric(fabric: &Fabric, home: Rank) -> impl Future<Output = Result<Self>> {
        BackOffLock::symmetric_with(fabric, home, BackOff::default())
    }

    /// The same with another [`BackOff`].
    ///
    /// # Errors
    /// As [`BackOffLock::symmetric`].
    pub fn symmetric_with(fabric: &Fabric, home: Rank, back_off: BackOff) -> impl Future<Output = Result<Self>> {
        <Self as Lock>::symmetric_with(fabric, home, back_off)
    }

    /// The rank whose memory holds the lock word.
    pub fn home(&self) -> Rank {
        self.base.home
    }

    /// The fabric the lock lives on.
    pub fn fabric(&self) -> &Fabric {
        &self.base.fabric
    }

    /// Take the lock shared: no writer is inside. What earlier writers put is visible to gets posted afterwards.
    ///
    /// # Errors
    /// [`crate::LockError::Fabric`]; [`crate::LockError::Contended`];
    /// [`crate::LockError::TooManyHolders`]; [`crate::LockError::Broken`] if an earlier call failed
    /// half-way.
    #[inline]
    pub fn read(&self) -> impl Future<Output = Result<BackOffGuard<'_, Shared>>> {
        self.enter_before(Time::MAX)
    }

    /// Take the lock shared, or give up at `deadline`; it is tried at least once.
    ///
    /// # Errors
    /// As [`BackOffLock::read`], and [`crate::LockError::TimedOut`].
    #[inline]
    pub fn read_before(&self, deadline: Time) -> impl Future<Output = Result<BackOffGuard<'_, Shared>>> {
        self.enter_before(deadline)
    }

    /// Take the lock shared if no writer is inside.
    ///
    /// # Errors
    /// As [`BackOffLock::read`], never [`crate::LockError::Contended`].
    #[inline]
    pub fn try_read(&self) -> impl Future<Output = Result<Option<BackOffGuard<'_, Shared>>>> {
        self.try_enter()
    }

    /// Take the lock exclusively: nobody else is inside. What earlier holders put is visible to gets posted afterwards.
    ///
    /// # Errors
    /// As [`BackOffLock::read`].
    #[inline]
    pub fn write(&self) -> impl Future<Output = Result<BackOffGuard<'_, Exclusive>>> {
        self.enter_before(Time::MAX)
    }

    /// Take the lock exclusively, or give up at `deadline`; it is tried at least once.
    ///
    /// # Errors
    /// As [`BackOffLock::write`], and [`crate::LockError::TimedOut`].
    #[inline]
    pub fn write_before(&self, deadline: Time) -> impl Future<Output = Result<BackOffGuard<'_, Exclusive>>> {
        self.enter_before(deadline)
    }

    /// Take the lock exclusively if nobody is inside. A reader that is about to find a writer there, and to take itself back, counts as inside.
    ///
    /// # Errors
    /// As [`BackOffLock::write`], never [`crate::LockError::Contended`].
    #[inline]
    pub fn try_write(&self) -> impl Future<Output = Result<Option<BackOffGuard<'_, Exclusive>>>> {
        self.try_enter()
    }

    #[inline(always)]
    fn enter_before<M: Mode>(&self, deadline: Time) -> impl Future<Output = Result<BackOffGuard<'_, M>>> {
        let fast = Enter::<(M, BackOffGuard<'_, M>)>(self, M::CLAIM, PhantomData);
        shortcut(fast, move |first| {
            Box::pin(async move {
                acquire(&self.base, self.ways::<M>(), first, deadline).await?;
                Ok(BackOffGuard::new(self))
            })
        })
    }

    #[inline(always)]
    fn try_enter<M: Mode>(&self) -> impl Future<Output = Result<Option<BackOffGuard<'_, M>>>> {
        let fast = Enter::<(M, Option<BackOffGuard<'_, M>>)>(self, M::CLAIM, PhantomData);
        shortcut(fast, move |first| {
            Box::pin(async move {
                Ok(try_acquire(&self.base, self.ways::<M>(), first).await?.then(|| BackOffGuard::new(self)))
            })
        })
    }

    pub(super) fn ways<M: Mode>(&self) -> [Way; 1] {
        [Way { word: self.word.clone(), claim: M::CLAIM }]
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
    #[inline]
    fn hand_over(guard: BackOffGuard<'_, Shared>, _: OfThisCrate) {
        mem::forget(guard);
    }

    #[inline]
    fn adopt_shared(&self, _: OfThisCrate) -> BackOffGuard<'_, Shared> {
        BackOffGuard::new(self)
    }
}

impl KeptExclusive for BackOffLock {
    type Kept = ();

    #[inline]
    fn keep(guard: BackOffGuard<'_, Exclusive>, _: OfThisCrate) {
        mem::forget(guard);
    }

    #[inline]
    fn take_up(&self, (): (), _: OfThisCrate) -> BackOffGuard<'_, Exclusive> {
        BackOffGuard::new(self)
    }
}
