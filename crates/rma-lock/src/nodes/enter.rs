//! Getting inside where the first atomic is all there is to it and over when it is posted, and in general.

use super::{
    Inside, Stair,
    above::Above,
    climb::Patience,
    level::{COUNT_ME, HELD, TOO_MANY},
};
use crate::{
    Result,
    posting::{NotOver, Posting, poll_atomic},
    shortcut::{Now, Try, shortcut},
};
use core::{
    future::{self, Future},
    marker::PhantomData,
    task::Context,
};
use rdma_fabric::Time;
use std::sync::Arc;

/// N1, where it is over when it is posted.
struct Enter<'a, A, Held>(&'a Arc<Stair<A>>, PhantomData<fn() -> Held>);

impl<'a, A: Above, Held: From<Inside<'a, A>>> Try for Enter<'a, A, Held> {
    type Out = Result<Held>;
    type Posted = future::Pending<Result<Self::Out, Self::Stage>>;
    type Stage = NotOver;

    #[inline(always)]
    fn now(self, cx: &mut Context<'_>) -> Now<Self> {
        let stair = self.0;
        let Some(level) = stair.levels.first() else { return Now::Stuck(None) };
        if !stair.queue.ordered_everywhere || !stair.queue.is_whole() {
            return Now::Stuck(None);
        }
        match poll_atomic(&stair.queue.fabric, &level.count, COUNT_ME, cx) {
            Ok(old) if old & (HELD | TOO_MANY) == HELD => Now::Over(Ok(Inside::new(stair).into())),
            Ok(old) => Now::Stuck(Some(Box::new(Posting::Over(Ok(old))))),
            Err(posting) => Now::Stuck(posting),
        }
    }
}

impl<A: Above> Stair<A> {
    /// Get inside, or give up at `deadline`. Dropping the future takes back what it has done.
    #[inline(always)]
    pub(crate) fn enter_before(self: &Arc<Self>, deadline: Time) -> impl Future<Output = Result<Inside<'_, A>>> {
        shortcut(Enter(self, PhantomData), move |first| {
            Box::pin(async move {
                self.acquire(first, Patience::Before(deadline)).await?;
                Ok(Inside::new(self))
            })
        })
    }

    /// Get inside if that needs no wait.
    #[inline(always)]
    pub(crate) fn try_enter(self: &Arc<Self>) -> impl Future<Output = Result<Option<Inside<'_, A>>>> {
        shortcut(Enter(self, PhantomData), move |first| {
            Box::pin(async move { Ok(self.acquire(first, Patience::None).await?.then(|| Inside::new(self))) })
        })
    }
}
