//! Waiting for operations.

use crate::{Acp, Handle, Order, Result};
use core::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

impl Acp {
    /// Waits until an operation and all earlier ones are complete: their effects are visible at
    /// their destinations. A handle that was never issued counts as complete. Takes an order too:
    /// [`Order::All`] and [`Order::Continue`] are everything issued so far, [`Order::None`] nothing.
    ///
    /// # Errors
    /// The first failure among them that was not reported before; the others among them are
    /// complete or have failed.
    #[inline(always)]
    pub fn complete(&self, until: impl Into<Order>) -> impl Future<Output = Result<()>> {
        Completion { acp: self, until: Until::Named(until.into()) }
    }

    /// Waits until every operation issued so far is complete.
    ///
    /// # Errors
    /// As [`Acp::complete`].
    #[inline(always)]
    pub fn complete_all(&self) -> impl Future<Output = Result<()>> {
        self.complete(Order::All)
    }

    /// Returns whether an operation and all earlier ones are complete, without waiting. Takes what
    /// [`Acp::complete`] does.
    ///
    /// # Errors
    /// As [`Acp::complete`].
    pub fn is_complete(&self, until: impl Into<Order>) -> Result<bool> {
        let mut completion = Completion { acp: self, until: Until::Named(until.into()) };
        match completion.poll_later(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(complete) => complete.map(|()| true),
            Poll::Pending => Ok(false),
        }
    }

    /// Waits until one more operation may be under way.
    pub(crate) async fn room(&self) -> Result<()> {
        self.fewer_than(self.options().depth).await
    }

    /// Waits until fewer than `depth` operations are under way.
    pub(crate) async fn fewer_than(&self, depth: usize) -> Result<()> {
        poll_fn(|cx| {
            let poll = self.with(|state| {
                let poll = state.engine.poll_room(depth, cx);
                if poll.is_pending() {
                    state.poll_server(cx);
                }
                poll
            });
            poll.map_or_else(|error| Poll::Ready(Err(error)), |poll| poll.map(Ok))
        })
        .await
    }

    /// Awaits something, and meanwhile serves other ranks where the network leaves something to
    /// them.
    pub(crate) async fn while_serving<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|cx| {
            let poll = future.as_mut().poll(cx);
            if poll.is_pending() {
                // On another thread than its own it can't have been called at all.
                let _ = self.with(|state| state.poll_server(cx));
            }
            poll
        })
        .await
    }
}

/// Ends when operations are complete.
#[must_use = "futures do nothing unless they are polled"]
struct Completion<'a> {
    acp: &'a Acp,
    until: Until,
}

/// Which operations.
#[derive(Clone, Copy)]
enum Until {
    /// Those named by an order, as of the first poll.
    Named(Order),
    /// All up to this one; it was polled without success, and its task is to be woken.
    Number(i64),
    Over,
}

impl Future for Completion<'_> {
    type Output = Result<()>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        if let Until::Named(Order::After(handle)) = self.until
            && (self.acp.is_settled(handle) || self.now())
        {
            self.until = Until::Over;
            return Poll::Ready(Ok(()));
        }
        // Matched and rebuilt, so that a result that is ready at once stays in registers.
        match self.poll_later(cx) {
            Poll::Ready(Ok(())) => Poll::Ready(Ok(())),
            poll => poll,
        }
    }
}

impl Completion<'_> {
    /// Completes everything at once, if that is possible.
    #[inline(always)]
    fn now(&self) -> bool {
        let Ok(mut state) = self.acp.enter() else { return false };
        let over = state.engine.complete_now(self.acp.fabric());
        if let Some(over) = over {
            self.acp.settle(Handle(over));
        }
        over.is_some()
    }

    #[inline(never)]
    fn poll_later(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let mut turn = match self.acp.enter() {
            Ok(turn) => turn,
            Err(error) => return Poll::Ready(Err(error)),
        };
        let state = &mut *turn;
        let until = match self.until {
            Until::Named(order) => state.engine.last_of(order),
            Until::Number(until) => until,
            Until::Over => return Poll::Ready(Ok(())),
        };
        let poll = state.engine.poll_complete(self.acp.fabric(), until, cx);
        if state.engine.is_settled() {
            self.acp.settle(Handle(state.engine.over()));
        }
        match poll {
            Poll::Ready(done) => {
                self.until = Until::Over;
                Poll::Ready(done.map_err(|error| state.memory.explained(error)))
            }
            Poll::Pending => {
                self.until = Until::Number(until);
                state.poll_server(cx);
                Poll::Pending
            }
        }
    }
}

impl Drop for Completion<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if matches!(self.until, Until::Number(_)) {
            self.acp.hand_on();
        }
    }
}

impl Acp {
    /// Wakes the other tasks that wait: what they wait for knows the waker of one that has given up.
    #[cold]
    #[inline(never)]
    fn hand_on(&self) {
        let _ = self.with(|state| state.engine.wake());
    }
}
