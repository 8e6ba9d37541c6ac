//! Proof of being inside by way of one's node.

use super::{
    Stair,
    above::Above,
    level::{LAST_INSIDE, UNCOUNT_ME},
};
use crate::{
    Result,
    posting::{NotOver, Posting, poll_atomic},
    shortcut::{Now, Try, shortcut},
};
use core::{
    future::{self, Future},
    mem,
    task::{Context, Waker},
};
use std::sync::Arc;

/// A rank inside. Dropping it leaves in the background.
pub(crate) struct Inside<'a, A: Above> {
    stair: &'a Arc<Stair<A>>,
}

impl<'a, A: Above> Inside<'a, A> {
    #[inline(always)]
    pub(super) fn new(stair: &'a Arc<Stair<A>>) -> Self {
        Inside { stair }
    }

    /// Make every put of this rank visible, then leave.
    #[inline(always)]
    pub(crate) fn release(self) -> impl Future<Output = Result<()>> {
        shortcut(Leave(self), |(inside, posted)| Box::pin(inside.release_from(posted)))
    }

    /// Where an atomic is over when it is posted. Otherwise it may have been posted.
    #[inline(always)]
    fn leave_now(&self, cx: &mut Context<'_>) -> Result<(), NotOver> {
        let Some(level) = self.stair.levels.first() else { return Err(None) };
        if !self.stair.queue.ordered_everywhere {
            return Err(None);
        }
        match poll_atomic(&self.stair.queue.fabric, &level.count, UNCOUNT_ME, cx)? {
            old if old > LAST_INSIDE => Ok(()),
            old => Err(Some(Box::new(Posting::Over(Ok(old))))),
        }
    }

    /// Dropped before the flush is over, this does it all in the background.
    async fn release_from(self, posted: NotOver) -> Result<()> {
        let stair = self.stair;
        let flushed = if posted.is_none() { stair.queue.flush_data().await } else { Ok(()) };
        mem::forget(self);
        stair.release(posted).await.and(flushed)
    }
}

impl<A: Above> Drop for Inside<'_, A> {
    #[inline]
    fn drop(&mut self) {
        if let Err(posted) = self.leave_now(&mut Context::from_waker(Waker::noop())) {
            self.stair.release_unawaited(posted);
        }
    }
}

/// The release, where it is over when it is posted.
struct Leave<'a, A: Above>(Inside<'a, A>);

impl<'a, A: Above> Try for Leave<'a, A> {
    type Out = Result<()>;
    type Posted = future::Pending<Result<Self::Out, Self::Stage>>;
    /// This would leave again when it is dropped, though its atomic may have been posted.
    type Stage = (Inside<'a, A>, NotOver);

    #[inline(always)]
    fn now(self, cx: &mut Context<'_>) -> Now<Self> {
        let Leave(inside) = self;
        match inside.leave_now(cx) {
            Ok(()) => {
                mem::forget(inside);
                Now::Over(Ok(()))
            }
            Err(posted) => Now::Stuck((inside, posted)),
        }
    }
}
