//! Progress: a call that waits on a communicator polls the incomplete sends of its rank.
//!
//! No receiver depends on that: a message is announced before the call that sends it returns
//! ([`Communicator::announced`]).

use crate::{Communicator, state::State};
use core::{
    convert::Infallible,
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll, Waker},
};
use rdma_fabric::join::{Either, map, race};

impl Communicator {
    /// Awaits a future while polling this member's sends.
    pub(crate) fn progressing<F: Future>(&self, future: F) -> impl Future<Output = F::Output> {
        map(race(future, Waiting { comm: self, waits: false }), |ended| match ended {
            Either::First(out) => out,
            Either::Second(never) => match never {},
        })
    }

    /// Polls this member's sends once.
    pub(crate) async fn once(&self) {
        poll_fn(|cx| {
            let _ = self.with(|state| state.advance(cx));
            Poll::Ready(())
        })
        .await;
    }

    /// Polls this member's sends until `done` returns a result.
    pub(crate) async fn until<T>(&self, mut done: impl FnMut(&mut State) -> Option<T>) -> crate::Result<T> {
        let mut waiting = Waiting { comm: self, waits: false };
        poll_fn(|cx| {
            waiting.advance(cx);
            match self.with(&mut done) {
                Ok(Some(out)) => Poll::Ready(Ok(out)),
                Ok(None) => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            }
        })
        .await
    }
}

/// A task that waits. Pending sends hold the waker of the task that polled them last; when that
/// task stops waiting, the other tasks poll them again.
struct Waiting<'a> {
    comm: &'a Communicator,
    /// Whether other tasks may wake this one when they stop waiting.
    waits: bool,
}

/// Polls the sends for ever.
impl Future for Waiting<'_> {
    type Output = Infallible;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Infallible> {
        self.advance(cx);
        Poll::Pending
    }
}

impl Waiting<'_> {
    fn advance(&mut self, cx: &mut Context<'_>) {
        let _ = self.comm.with(|state| {
            if state.pending.is_empty() {
                return;
            }
            self.waits = true;
            if !state.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
                state.waiting.push(cx.waker().clone());
            }
            state.advance(cx);
        });
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.waits {
            let _ = self.comm.with(State::wake_all);
        }
    }
}

impl State {
    /// Polls the pending sends, and records their outcomes.
    fn advance(&mut self, cx: &mut Context<'_>) {
        let mut at = 0;
        while at < self.pending.len() {
            match self.pending[at].poll(cx) {
                Poll::Ready(outcome) => {
                    let pending = self.pending.swap_remove(at);
                    pending.ended(self, outcome);
                }
                Poll::Pending => at += 1,
            }
        }
    }

    /// Wakes all waiting tasks, so that one of them continues to poll.
    fn wake_all(&mut self) {
        self.waiting.drain(..).for_each(Waker::wake);
    }
}
