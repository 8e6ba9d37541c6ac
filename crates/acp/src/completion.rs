//! Waiting for operations.

use crate::{Acp, Handle, Order, Result, queue::more_complete, state::State};
use core::{
    future::{Future, poll_fn},
    pin::pin,
    task::{Context, Poll, Waker},
};
use rdma_fabric::{
    fast_path::{FastPath, fast_path},
    provider::Boxed,
};

impl Acp {
    /// Waits until an operation and all earlier ones are complete: their effects are visible at
    /// their destinations. A handle that was never issued counts as complete. Also accepts an
    /// order: [`Order::All`] and [`Order::Continue`] stand for everything issued so far,
    /// [`Order::None`] for nothing.
    ///
    /// # Errors
    /// The first failure among them that was not reported before; the others among them are
    /// complete or have failed.
    #[inline(always)]
    pub fn complete(&self, until: impl Into<Order>) -> impl Future<Output = Result<()>> {
        fast_path(Completion { acp: self, until: until.into() }, Completion::slow)
    }

    /// Waits until every operation issued so far is complete.
    ///
    /// # Errors
    /// As [`Acp::complete`].
    #[inline(always)]
    pub fn complete_all(&self) -> impl Future<Output = Result<()>> {
        self.complete(Order::All)
    }

    async fn completed_later(&self, until: Order) -> Result<()> {
        let queued = self.try_with(|state| {
            let Some(queue) = &state.queue else { return Ok(None) };
            let until = until.last_of(queue.issued());
            state.counters.waits += u64::from(queue.complete()? < until);
            Ok(Some((queue.complete_word(), until)))
        })?;
        if let Some((word, until)) = queued {
            more_complete(self.fabric(), &word, until - 1).await?;
            return self.try_with(|state| state.queue.as_ref().map_or(Ok(()), |queue| queue.report(until)));
        }
        let until = self.with(|state| until.last_of(state.engine.issued()))?;
        let mut waiting = Waiting { acp: self, awaited: false };
        let mut has_waited = false;
        poll_fn(|cx| {
            let poll = self.with(|state| {
                let poll = self.poll_complete(state, until, cx);
                count_once(&mut state.counters.waits, &mut has_waited, poll.is_pending());
                poll
            });
            waiting.awaited = matches!(poll, Ok(Poll::Pending));
            poll.unwrap_or_else(|error| Poll::Ready(Err(error)))
        })
        .await
    }

    fn poll_complete(&self, state: &mut State, until: i64, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let poll = state.engine.poll_complete(self.fabric(), until, cx);
        if state.engine.is_settled() {
            self.settle(state.engine.over());
        }
        match poll {
            Poll::Ready(done) => Poll::Ready(done.map_err(|error| state.memory.explained(error))),
            Poll::Pending => {
                state.poll_server(cx);
                Poll::Pending
            }
        }
    }

    /// Returns whether an operation and all earlier ones are complete, without waiting. Accepts the
    /// same orders as [`Acp::complete`].
    ///
    /// # Errors
    /// As [`Acp::complete`].
    pub fn is_complete(&self, until: impl Into<Order>) -> Result<bool> {
        let until = until.into();
        let poll = self.try_with(|state| {
            if let Some(queue) = &state.queue {
                let until = until.last_of(queue.issued());
                let complete = queue.complete()? >= until;
                return Ok(if complete { Poll::Ready(queue.report(until)) } else { Poll::Pending });
            }
            let until = until.last_of(state.engine.issued());
            Ok(self.poll_complete(state, until, &mut Context::from_waker(Waker::noop())))
        })?;
        match poll {
            Poll::Ready(complete) => complete.map(|()| true),
            Poll::Pending => Ok(false),
        }
    }

    /// Starts and completes operations in flight as far as that is possible without waiting, unless `until`
    /// and all earlier ones are complete. A program that then waits for their effects outside of this crate,
    /// such as for a word of its memory, calls this after issuing them; helpers need no such call.
    ///
    /// # Errors
    /// [`AcpError::OtherThread`](crate::AcpError::OtherThread).
    #[inline]
    pub fn advance(&self, until: Handle) -> Result<()> {
        if self.is_over(until) {
            return Ok(());
        }
        self.with(|state| {
            let mut cx = Context::from_waker(Waker::noop());
            while state.engine.len() > 0 && state.engine.poll_front(&mut cx).is_ready() {}
            if state.engine.len() == 0 {
                self.passed(state.engine.over());
            }
        })
    }

    /// Waits until another operation may be issued.
    pub(crate) async fn room(&self) -> Result<()> {
        self.fewer_than(self.options().depth).await
    }

    /// Waits until fewer than `depth` operations are in flight.
    pub(crate) async fn fewer_than(&self, depth: usize) -> Result<()> {
        let mut has_waited = false;
        poll_fn(|cx| {
            let poll = self.with(|state| {
                let poll = state.engine.poll_room(depth, cx);
                count_once(&mut state.counters.full, &mut has_waited, poll.is_pending());
                if poll.is_pending() {
                    state.poll_server(cx);
                }
                poll
            });
            poll.map_or_else(|error| Poll::Ready(Err(error)), |poll| poll.map(Ok))
        })
        .await
    }

    /// Waits until the number of operations in flight has decreased by one.
    pub(crate) async fn one_fewer(&self) -> Result<()> {
        let under_way = self.with(|state| state.engine.len())?;
        self.fewer_than(under_way.max(1)).await
    }

    /// Awaits a future while making progress with this rank's operations and channels, and serving
    /// other ranks on networks that leave operations to the target's CPU. Waits inside this crate's
    /// own calls do so anyway; this function is for all other waits.
    pub async fn while_serving<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|cx| {
            let poll = future.as_mut().poll(cx);
            if poll.is_pending() {
                // It fails only on a thread other than its own, which cannot have called this.
                let _ = self.with(|state| {
                    while state.engine.len() > 0 && state.engine.poll_front(cx).is_ready() {}
                    state.poll_server(cx);
                });
            }
            // The tasks that wait for a channel receive its errors.
            let _ = self.channels(|channels| channels.advance(poll.is_pending().then_some(cx)));
            poll
        })
        .await
    }
}

/// Counts a wait when it is first pending.
fn count_once(counter: &mut u64, has_waited: &mut bool, is_pending: bool) {
    *counter += u64::from(is_pending && !*has_waited);
    *has_waited |= is_pending;
}

/// A wait for the operations up to `until`.
struct Completion<'a> {
    acp: &'a Acp,
    until: Order,
}

impl FastPath for Completion<'_> {
    type Out = Result<()>;
    type Stage = Self;

    #[inline(always)]
    fn fast(self, _: &mut Context<'_>) -> Result<Result<()>, Self> {
        self.at_once().map(Ok).ok_or(self)
    }
}

impl<'a> Completion<'a> {
    #[inline(always)]
    fn at_once(&self) -> Option<()> {
        if let Order::After(handle) = self.until
            && self.acp.is_settled(handle)
        {
            return Some(());
        }
        let mut state = self.acp.enter().ok()?;
        let State { engine, queue: None, .. } = &mut *state else { return None };
        let over = engine.complete_now(self.acp.fabric())?;
        self.acp.settle(over);
        Some(())
    }

    fn slow(self) -> Boxed<'a, Result<()>> {
        Box::pin(self.acp.completed_later(self.until))
    }
}

/// A task that may be dropped while the operations hold its waker and no other task's.
struct Waiting<'a> {
    acp: &'a Acp,
    awaited: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.awaited {
            // The other waiting tasks poll again, and register their wakers.
            let _ = self.acp.with(|state| state.engine.wake());
        }
    }
}
