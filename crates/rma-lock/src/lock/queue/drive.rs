//! The futures of acquisitions and releases that must await an operation.
//!
//! A [`Call`] owns everything that it needs. An operation that was posted takes effect even if its
//! future was dropped, and a node in a queue will be woken. So dropping a call undoes nothing: a
//! call that waits stops waiting, and the rest is [detached](rdma_fabric::Fabric::detach) until no
//! other rank depends on it.

use super::{
    operations::Doing,
    protocol::{FirstStep, Held, Protocol},
    walk::Walk,
};
use crate::{Result, error::Stopped, lock::posting::Posting};
use core::{
    future::{Future, poll_fn},
    mem,
    pin::Pin,
    task::{Context, Poll},
};
use rdma_fabric::{FabricError, Handle, Time};
use std::sync::Arc;

/// A walk that must await an operation.
pub(crate) struct Drive<P: Protocol> {
    pub(super) core: Arc<P>,
    pub(super) walk: Walk<P>,
}

impl<P: Protocol> Drive<P> {
    #[inline(always)]
    pub(crate) fn resume(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Held>>> {
        loop {
            if let Some(out) = self.walk.advance(&self.core) {
                return Poll::Ready(out);
            }
            let polled = match &mut self.walk.doing {
                Doing::Atomic(handle) => Pin::new(handle).poll(cx).map_err(Stopped::from),
                Doing::Word(handle) => Pin::new(handle).poll(cx).map_ok(|[word]| word).map_err(Stopped::from),
                Doing::Later(later) => later.as_mut().poll(cx),
                Doing::Room(room) => match room.as_mut().poll(cx) {
                    Poll::Ready(Ok(())) => {
                        self.walk.doing = Doing::Nothing;
                        continue;
                    }
                    polled => polled.map_ok(|()| 0).map_err(Stopped::from),
                },
                Doing::Nothing | Doing::Complete(_) => continue,
            };
            let Poll::Ready(found) = polled else { return Poll::Pending };
            self.walk.doing = Doing::Complete(found);
        }
    }

    /// Leaves the rest to the fabric.
    #[inline(always)]
    pub(crate) fn detach(mut self: Box<Self>) {
        if !self.walk.stop(&self.core) {
            return;
        }
        let fabric = self.core.queue().fabric.clone();
        fabric.detach(async move { drop(poll_fn(|cx| P::resume(&mut self, cx)).await) });
    }
}

/// An acquisition or release whose first atomic is in flight. If the atomic is all that it needs,
/// the table is not looked up and nothing is allocated.
pub(crate) struct First<P: Protocol> {
    core: Arc<P>,
    step: P::First,
    atomic: Handle<u64>,
    deadline: Time,
}

impl<P: Protocol> First<P> {
    /// Continues with the table of steps.
    #[cold]
    fn walk(self, found: Result<u64, FabricError>) -> Drive<P> {
        let found = found.map_err(|error| Some(Box::new(Posting::Complete(Err(error)))));
        let walk = Walk::from(self.step.steps(), found, self.deadline);
        Drive { core: self.core, walk }
    }

    /// Returns the walk that continues after its future was dropped.
    #[cold]
    fn detached(self) -> Drive<P> {
        let First { core, step, atomic, deadline } = self;
        let walk = Walk::from(step.steps(), Err(Some(Box::new(Posting::InFlight(atomic)))), deadline);
        Drive { core, walk }
    }
}

/// The future of a walk. Dropping it detaches the work that others depend on.
pub(crate) struct Call<P: Protocol>(Stage<P>);

enum Stage<P: Protocol> {
    First(First<P>),
    Walk(Box<Drive<P>>),
    Ended,
}

impl<P: Protocol> Call<P> {
    #[inline(always)]
    pub(super) fn walk(drive: Drive<P>) -> Self {
        Call(Stage::Walk(Box::new(drive)))
    }

    /// The call whose first step has posted `atomic`.
    #[inline]
    pub(crate) fn first(core: &Arc<P>, step: P::First, atomic: Handle<u64>, deadline: Time) -> Self {
        Call(Stage::First(First { core: core.clone(), step, atomic, deadline }))
    }

    /// Polls the first atomic. Returns the result that ends the call, or replaces this stage by a walk.
    #[inline(always)]
    pub(crate) fn advance_first(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Option<Held>>>> {
        let Stage::First(first) = &mut self.0 else { return Poll::Ready(None) };
        let Poll::Ready(found) = Pin::new(&mut first.atomic).poll(cx) else { return Poll::Pending };
        let Stage::First(first) = mem::replace(&mut self.0, Stage::Ended) else { return Poll::Ready(None) };
        if let Ok(found) = found
            && let Some(held) = first.core.ends_at_once(first.step, found)
        {
            return Poll::Ready(Some(Ok(held)));
        }
        let drive = first.walk(found);
        self.0 = Stage::Walk(Box::new(drive));
        Poll::Ready(None)
    }
}

impl<P: Protocol> Future for Call<P> {
    type Output = Result<Option<Held>>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Stage::First(_) = self.0 {
            match P::poll_first(&mut self, cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(out)) => return Poll::Ready(out),
                Poll::Ready(None) => {}
            }
        }
        let Stage::Walk(drive) = &mut self.0 else { panic!("polled after the end") };
        let polled = P::resume(drive, cx);
        if polled.is_ready() {
            self.0 = Stage::Ended;
        }
        polled
    }
}

impl<P: Protocol> Drop for Call<P> {
    #[inline]
    fn drop(&mut self) {
        if !matches!(self.0, Stage::Ended) {
            match mem::replace(&mut self.0, Stage::Ended) {
                Stage::First(first) => P::detach(Box::new(first.detached())),
                Stage::Walk(drive) => P::detach(drive),
                Stage::Ended => {}
            }
        }
    }
}
