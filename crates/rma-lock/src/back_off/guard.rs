//! Proof of holding a lock of one word.

use super::{
    attempt::{release, release_unawaited},
    single::{BackOffLock, Mode},
};
use crate::{
    Guard, Result,
    posting::{NotOver, Posting, poll_atomic},
    shortcut::{Now, Try, shortcut},
};
use core::{
    fmt,
    future::{self, Future},
    marker::PhantomData,
    mem,
    task::{Context, Waker},
};

/// [`crate::Shared`] or [`crate::Exclusive`] access, by a [`BackOffLock`].
///
/// Dropping it releases the lock in the background, as [`BackOffGuard::release`] does, and tells nobody about errors.
#[must_use = "a guard that is dropped at once protects nothing"]
pub struct BackOffGuard<'a, M: Mode> {
    lock: &'a BackOffLock,
    mode: PhantomData<M>,
}

impl<M: Mode> fmt::Debug for BackOffGuard<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {:?}", M::NAME, self.lock)
    }
}

impl<'a, M: Mode> BackOffGuard<'a, M> {
    #[inline(always)]
    pub(super) fn new(lock: &'a BackOffLock) -> Self {
        BackOffGuard { lock, mode: PhantomData }
    }

    /// The lock that is held.
    pub fn lock(&self) -> &'a BackOffLock {
        self.lock
    }

    /// Make every put of this rank visible, then let go of the lock. If the future is dropped half-way, the rest is done in the
    /// background.
    ///
    /// # Errors
    /// [`crate::LockError::Fabric`]: what a put met at its target, with the lock released all the same; or what the release itself
    /// met, after which further calls on this lock answer [`crate::LockError::Broken`] unless the home is lost.
    #[inline]
    pub fn release(self) -> impl Future<Output = Result<()>> {
        shortcut(Leave(self), |(guard, posted)| Box::pin(guard.release_from(posted)))
    }

    /// Where an atomic is over when it is posted. Otherwise it may have been posted.
    #[inline(always)]
    fn leave_now(&self, cx: &mut Context<'_>) -> Result<(), NotOver> {
        let (base, claim) = (&self.lock.base, M::CLAIM);
        if !base.ordered_everywhere {
            return Err(None);
        }
        match poll_atomic(&base.fabric, &self.lock.word, claim.leave, cx)? {
            old if claim.was_held(old) => Ok(()),
            old => Err(Some(Box::new(Posting::Over(Ok(old))))),
        }
    }

    /// Where the atomic is not over yet, or not posted. Dropped before it is, the guard does it all in the background.
    async fn release_from(self, posted: NotOver) -> Result<()> {
        let base = &self.lock.base;
        let flushed = if posted.is_none() { base.flush_data().await } else { Ok(()) };
        let ways = self.lock.ways::<M>();
        mem::forget(self);
        release(base, ways, posted).await.and(flushed)
    }
}

impl<M: Mode> Drop for BackOffGuard<'_, M> {
    #[inline]
    fn drop(&mut self) {
        if let Err(posted) = self.leave_now(&mut Context::from_waker(Waker::noop())) {
            release_unawaited(&self.lock.base, self.lock.ways::<M>(), posted);
        }
    }
}

impl<M: Mode> Guard for BackOffGuard<'_, M> {
    #[inline]
    fn release(self) -> impl Future<Output = Result<()>> {
        BackOffGuard::release(self)
    }
}

/// The release, where it is over when it is posted.
struct Leave<'a, M: Mode>(BackOffGuard<'a, M>);

impl<'a, M: Mode> Try for Leave<'a, M> {
    type Out = Result<()>;
    type Posted = future::Pending<Result<Self::Out, Self::Stage>>;
    /// The guard is armed though its atomic may have been posted.
    type Stage = (BackOffGuard<'a, M>, NotOver);

    #[inline(always)]
    fn now(self, cx: &mut Context<'_>) -> Now<Self> {
        let Leave(guard) = self;
        match guard.leave_now(cx) {
            Ok(()) => {
                mem::forget(guard);
                Now::Over(Ok(()))
            }
            Err(posted) => Now::Stuck((guard, posted)),
        }
    }
}
