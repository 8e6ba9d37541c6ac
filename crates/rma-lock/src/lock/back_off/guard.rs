//! Proof of holding a single-word lock.

use super::{
    attempt::{Claim, release, release_unawaited},
    single::BackOffLock,
};
use crate::{
    Guard, Result,
    lock::posting::{Posting, Unfinished, atomic_now},
};
use core::{fmt, future::Future, marker::PhantomData, mem, task::Context};
use rdma_fabric::{
    fast_path::{FastPath, fast_path},
    provider::Boxed,
};

/// Shared access.
#[derive(Clone, Copy, Debug)]
pub struct Shared;

/// Exclusive access.
#[derive(Clone, Copy, Debug)]
pub struct Exclusive;

/// The access of a guard: [`Shared`] or [`Exclusive`].
pub trait Mode: Sealed + fmt::Debug + 'static {
    /// The name of the access, for messages.
    const NAME: &'static str;
}

mod sealed {
    use crate::lock::back_off::attempt::Claim;

    pub trait Sealed {
        #[doc(hidden)]
        #[allow(private_interfaces, reason = "only this crate can name it")]
        const CLAIM: Claim;
        #[doc(hidden)]
        const WRITES: bool;
    }
}
use sealed::Sealed;

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

/// [`Shared`] or [`Exclusive`] access to a [`BackOffLock`].
///
/// Dropping it releases the lock in the background, as [`Guard::release`] does, without reporting
/// errors.
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

    /// Returns the lock that is held.
    pub fn lock(&self) -> &'a BackOffLock {
        self.lock
    }

    /// Releases if the atomic completes when it is posted. On error the atomic may have been
    /// posted.
    #[inline(always)]
    fn leave_fast(&self) -> Result<(), Unfinished> {
        let (base, claim) = (&self.lock.base, M::CLAIM);
        if !base.ordered_everywhere {
            return Err(None);
        }
        match atomic_now(&base.fabric, &self.lock.word, claim.leave)? {
            old if claim.was_held(old) => Ok(()),
            old => Err(Some(Box::new(Posting::Complete(Ok(old))))),
        }
    }

    /// Releases in the general case, where the atomic is still in flight or not posted yet.
    fn release_from(self, posted: Unfinished) -> Boxed<'a, Result<()>> {
        let armed = Armed(self.lock, M::CLAIM);
        mem::forget(self);
        release_slow(armed, posted)
    }
}

/// A hold that is released in the background if it is dropped.
struct Armed<'a>(&'a BackOffLock, Claim);

impl Drop for Armed<'_> {
    fn drop(&mut self) {
        release_unawaited(&self.0.base, self.0.claims(self.1), None);
    }
}

fn release_slow(armed: Armed<'_>, posted: Unfinished) -> Boxed<'_, Result<()>> {
    Box::pin(async move {
        let (lock, claim) = (armed.0, armed.1);
        let flushed = if posted.is_none() { lock.base.flush_data().await } else { Ok(()) };
        mem::forget(armed);
        release(&lock.base, lock.claims(claim), posted).await.and(flushed)
    })
}

impl<M: Mode> Drop for BackOffGuard<'_, M> {
    #[inline]
    fn drop(&mut self) {
        if let Err(posted) = self.leave_fast() {
            release_unawaited(&self.lock.base, self.lock.claims(M::CLAIM), posted);
        }
    }
}

impl<M: Mode> Guard for BackOffGuard<'_, M> {
    #[inline]
    fn release(self) -> impl Future<Output = Result<()>> {
        fast_path(Leave(self), |(guard, posted)| guard.release_from(posted))
    }
}

/// The release, if it completes when it is posted.
struct Leave<'a, M: Mode>(BackOffGuard<'a, M>);

impl<'a, M: Mode> FastPath for Leave<'a, M> {
    type Out = Result<()>;
    /// The guard is still armed, although its atomic may have been posted.
    type Stage = (BackOffGuard<'a, M>, Unfinished);

    #[inline(always)]
    fn fast(self, _: &mut Context<'_>) -> Result<Result<()>, Self::Stage> {
        let Leave(guard) = self;
        match guard.leave_fast() {
            Ok(()) => {
                mem::forget(guard);
                Ok(Ok(()))
            }
            Err(posted) => Err((guard, posted)),
        }
    }
}
