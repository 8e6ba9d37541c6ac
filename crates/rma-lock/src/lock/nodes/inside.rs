//! Enters and leaves through the rank's node: without a box if the first atomic suffices and
//! completes when it is posted.

use super::{
    Patience, Stair,
    level::{COUNT_ME, HELD, LAST_INSIDE, OVER_LIMIT, UNCOUNT_ME},
};
use crate::{
    Result,
    lock::{
        boxed::wrapped,
        posting::{Posting, Unfinished, atomic_now},
    },
};
use core::{future::Future, marker::PhantomData, mem, task::Context};
use rdma_fabric::{
    Time,
    fast_path::{FastPath, fast_path},
    provider::Boxed,
};
use std::sync::Arc;

/// A hold of this rank. Dropping it leaves in the background.
pub(crate) struct Inside<'a> {
    stair: &'a Arc<Stair>,
}

/// N1, where `Held` is an [`Inside`] or an optional one.
struct Enter<'a, Held>(&'a Arc<Stair>, PhantomData<fn() -> Held>);

impl<'a, Held: From<Inside<'a>>> FastPath for Enter<'a, Held> {
    type Out = Result<Held>;
    type Stage = Unfinished;

    #[inline(always)]
    fn fast(self, _: &mut Context<'_>) -> Result<Result<Held>, Self::Stage> {
        let stair = self.0;
        let Some(level) = stair.levels.first() else { return Err(None) };
        if !stair.queue.ordered_everywhere || !stair.queue.broken.is_whole() {
            return Err(None);
        }
        match atomic_now(&stair.queue.fabric, &level.count, COUNT_ME) {
            Ok(old) if old & (HELD | OVER_LIMIT) == HELD => Ok(Ok(Inside { stair }.into())),
            Ok(old) => Err(Some(Box::new(Posting::Complete(Ok(old))))),
            Err(posting) => Err(posting),
        }
    }
}

impl Stair {
    /// Enters, or gives up at `deadline`. Dropping the future undoes its effects.
    #[inline(always)]
    pub(crate) fn enter_before(self: &Arc<Self>, deadline: Time) -> impl Future<Output = Result<Inside<'_>>> + Unpin {
        fast_path(Enter(self, PhantomData), move |first| {
            wrapped(self.acquire(first, Patience::Before(deadline)), |_| Inside { stair: self })
        })
    }

    /// Enters if that does not require waiting.
    #[inline(always)]
    pub(crate) fn try_enter(self: &Arc<Self>) -> impl Future<Output = Result<Option<Inside<'_>>>> + Unpin {
        fast_path(Enter(self, PhantomData), move |first| {
            wrapped(self.acquire(first, Patience::None), |inside| inside.then(|| Inside { stair: self }))
        })
    }
}

impl<'a> Inside<'a> {
    /// Makes every put of this rank visible, then leaves.
    #[inline(always)]
    pub(crate) fn release(self) -> impl Future<Output = Result<()>> {
        fast_path(Leave(self), |(inside, posted)| inside.release_from(posted))
    }

    /// Leaves if the atomic completes when it is posted. On error the atomic may have been posted.
    #[inline(always)]
    fn leave_fast(&self) -> Result<(), Unfinished> {
        let Some(level) = self.stair.levels.first() else { return Err(None) };
        if !self.stair.queue.ordered_everywhere {
            return Err(None);
        }
        match atomic_now(&self.stair.queue.fabric, &level.count, UNCOUNT_ME)? {
            old if old > LAST_INSIDE => Ok(()),
            old => Err(Some(Box::new(Posting::Complete(Ok(old))))),
        }
    }

    /// Leaves in the general case. If this is dropped before the flush completes, all of it is done
    /// in the background.
    fn release_from(self, posted: Unfinished) -> Boxed<'a, Result<()>> {
        Box::pin(async move {
            let stair = self.stair;
            let flushed = if posted.is_none() { stair.queue.flush_data().await } else { Ok(()) };
            mem::forget(self);
            stair.release(posted).await.and(flushed)
        })
    }
}

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Err(posted) = self.leave_fast() {
            self.stair.release_unawaited(posted);
        }
    }
}

/// The release, if it completes when it is posted.
struct Leave<'a>(Inside<'a>);

impl<'a> FastPath for Leave<'a> {
    type Out = Result<()>;
    /// Dropping the [`Inside`] would leave again, although its atomic may have been posted.
    type Stage = (Inside<'a>, Unfinished);

    #[inline(always)]
    fn fast(self, _: &mut Context<'_>) -> Result<Result<()>, Self::Stage> {
        let Leave(inside) = self;
        match inside.leave_fast() {
            Ok(()) => {
                mem::forget(inside);
                Ok(Ok(()))
            }
            Err(posted) => Err((inside, posted)),
        }
    }
}
