//! Proof of shared access through one's node.

use super::{
    Stair,
    above::SharedOf,
    aggregated::Aggregated,
    level::{LAST_INSIDE, UNCOUNT_ME},
};
use crate::{
    AnonymousShared, Guard, Result,
    posting::{NotOver, Posting, poll_atomic},
    shortcut::{Now, Try, shortcut},
};
use core::{
    fmt,
    future::{self, Future},
    mem,
    task::{Context, Waker},
};
use rdma_fabric::Fabric;
use std::sync::Arc;

/// Shared access by an [`Aggregated`] lock.
///
/// Dropping it releases the lock in the background, as [`AggregatedGuard::release`] does, and tells nobody about errors.
#[must_use = "a guard that is dropped at once protects nothing"]
pub struct AggregatedGuard<'a, F: Fabric, L: AnonymousShared<F>> {
    lock: &'a Aggregated<F, L>,
}

impl<F: Fabric, L: AnonymousShared<F>> fmt::Debug for AggregatedGuard<'_, F, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shared, {:?}", self.lock)
    }
}

impl<'a, F: Fabric, L: AnonymousShared<F>> AggregatedGuard<'a, F, L> {
    pub(super) fn new(lock: &'a Aggregated<F, L>) -> Self {
        AggregatedGuard { lock }
    }

    /// The lock that is held.
    pub fn lock(&self) -> &'a Aggregated<F, L> {
        self.lock
    }

    /// Make every put of this rank visible, then leave; the last one of the node lets go of the lock. If the future is dropped half-way, the
    /// rest is done in the background.
    ///
    /// # Errors
    /// [`crate::LockError::Fabric`]: what a put met at its target, with the lock released all the same; or what the release itself
    /// met.
    #[inline]
    pub fn release(self) -> impl Future<Output = Result<()>> {
        shortcut(Leave(self), |(guard, posted)| guard.release_from(posted))
    }

    /// Where an atomic is over when it is posted. Otherwise it may have been posted.
    #[inline(always)]
    fn leave_now(&self, cx: &mut Context<'_>) -> Result<(), NotOver<F>> {
        let stair = self.stair();
        let Some(level) = stair.levels.first() else { return Err(None) };
        if !stair.queue.ordered_everywhere {
            return Err(None);
        }
        match poll_atomic(&stair.queue.fabric, &level.count, UNCOUNT_ME, cx)? {
            old if old > LAST_INSIDE => Ok(()),
            old => Err(Some(Box::new(Posting::Over(Ok(old))))),
        }
    }

    fn stair(&self) -> &'a Arc<Stair<F, SharedOf<L>>> {
        &self.lock.stair
    }

    /// Dropped before the flush is over, the guard does it all in the background.
    async fn release_from(self, posted: NotOver<F>) -> Result<()> {
        let stair = self.stair();
        let flushed = if posted.is_none() { stair.queue.flush_data().await } else { Ok(()) };
        mem::forget(self);
        stair.release(posted).await.and(flushed)
    }
}

impl<F: Fabric, L: AnonymousShared<F>> Drop for AggregatedGuard<'_, F, L> {
    #[inline]
    fn drop(&mut self) {
        if let Err(posted) = self.leave_now(&mut Context::from_waker(Waker::noop())) {
            self.stair().release_unawaited(posted);
        }
    }
}

impl<F: Fabric, L: AnonymousShared<F>> Guard for AggregatedGuard<'_, F, L> {
    #[inline]
    fn release(self) -> impl Future<Output = Result<()>> {
        AggregatedGuard::release(self)
    }
}

/// The release, where it is over when it is posted.
struct Leave<'a, F: Fabric, L: AnonymousShared<F>>(AggregatedGuard<'a, F, L>);

impl<'a, F: Fabric, L: AnonymousShared<F>> Try for Leave<'a, F, L> {
    type Out = Result<()>;
    type Posted = future::Pending<Result<Self::Out, Self::Stage>>;
    /// The guard is armed though its atomic may have been posted.
    type Stage = (AggregatedGuard<'a, F, L>, NotOver<F>);

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
