//! The futures of acquisitions and releases that must await an operation.
//!
//! A [`Call`] owns everything that it needs. An operation that was posted takes effect even if its
//! future was dropped, and a node in a queue will be woken. So dropping a call undoes nothing: a
//! call that waits stops waiting, and the rest is [detached](rdma_fabric::Fabric::detach) until no
//! other rank depends on it.

use super::{
    operations::Doing,
    protocol::{Held, Protocol},
    walk::Walk,
};
use crate::{Result, error::Stopped};
use core::{
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll},
};
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

/// The future of a walk. Dropping it detaches the work that others depend on.
pub(crate) struct Call<P: Protocol>(pub(super) Option<Box<Drive<P>>>);

impl<P: Protocol> Future for Call<P> {
    type Output = Result<Option<Held>>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = P::resume(self.0.as_mut().expect("polled after the end"), cx);
        if polled.is_ready() {
            self.0 = None;
        }
        polled
    }
}

impl<P: Protocol> Drop for Call<P> {
    #[inline]
    fn drop(&mut self) {
        if let Some(drive) = self.0.take() {
            P::detach(drive);
        }
    }
}
