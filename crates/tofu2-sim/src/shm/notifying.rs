//! A put with a notice, which may have to wait for room.

use super::{
    endpoint::{Endpoint, check_lengths},
    stall::For,
    waiting::Wait,
};
use core::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};
use rdma_fabric::{FabricError, Pod, PutSource, Refused, RemoteSpan};

/// Posts when first polled; if there is no room, it looks again now and then.
///
/// Not an `async` block, for the reasons that [`Immediate`](super::immediate::Immediate) gives.
#[must_use = "futures do nothing unless they are polled"]
pub(super) struct Notifying<'a, 't, T: Pod, S> {
    to: &'t RemoteSpan<Endpoint, T>,
    /// Until it has been put.
    from: Option<S>,
    data: u64,
    wait: Wait<'a>,
}

impl<'a, 't, T: Pod, S> Notifying<'a, 't, T, S> {
    #[inline(always)]
    pub(super) fn new(endpoint: &'a Endpoint, to: &'t RemoteSpan<Endpoint, T>, from: S, data: u64) -> Self {
        Notifying { to, from: Some(from), data, wait: Wait::new(endpoint) }
    }
}

// Nothing in it is pinned.
impl<T: Pod, S> Unpin for Notifying<'_, '_, T, S> {}

impl<T: Pod, S: PutSource<Endpoint, T>> Future for Notifying<'_, '_, T, S> {
    type Output = Result<S, FabricError>;

    /// # Panics
    /// If it was ready before.
    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let from = self.from.take().expect("a future is not polled after its end");
        if from.elements() == self.to.len()
            && self.wait.endpoint().notify_shortly(self.to.loc(), from.view(), self.data)
        {
            return Poll::Ready(Ok(from));
        }
        // Taken apart, so that what is short stays in registers.
        match self.poll_slowly(from, cx) {
            Poll::Ready(Ok(from)) => Poll::Ready(Ok(from)),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<T: Pod, S: PutSource<Endpoint, T>> Notifying<'_, '_, T, S> {
    #[inline(never)]
    fn poll_slowly(&mut self, mut from: S, cx: &Context<'_>) -> Poll<Result<S, FabricError>> {
        check_lengths(from.elements(), self.to.len())?;
        let endpoint = self.wait.endpoint();
        loop {
            from = match endpoint.notify_slowly(self.to.loc(), from, self.data) {
                Ok(from) => return Poll::Ready(Ok(from)),
                Err(Refused::Failed(error, _)) => return Poll::Ready(Err(error)),
                Err(Refused::Full(from)) => from,
            };
            if !endpoint.has_room(self.to.rank())? && self.wait.is_arranged_for_later(cx, For::Room(self.to.rank()))? {
                self.from = Some(from);
                return Poll::Pending;
            }
        }
    }
}
