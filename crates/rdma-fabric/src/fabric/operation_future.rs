//! The future of an operation that is posted when it is first polled, and awaited.
//!
//! If the place is mapped, the operation is executed in that poll, by [`DirectOp::try_direct`].

use super::{DirectOp, Fabric};
use crate::{
    FabricError, Result,
    fast_path::{FastPath, fast_path},
    provider::{Ended, Posted, Token, WaitFor, WaitState},
};
use core::{
    convert::identity,
    future::Future,
    mem,
    pin::Pin,
    task::{Context, Poll},
};

/// Posts an operation when first polled, and waits for its completion.
#[inline(always)]
pub(super) fn operation<'a, O: DirectOp>(
    fabric: &'a Fabric,
    op: O,
) -> impl Future<Output = Result<O::Out>> + use<'a, O> {
    fast_path(Direct { fabric, op }, identity)
}

/// An operation that is executed directly if possible.
struct Direct<'a, O> {
    fabric: &'a Fabric,
    op: O,
}

impl<'a, O: DirectOp> FastPath for Direct<'a, O> {
    type Out = O::Out;
    type Error = FabricError;
    type Stage = Operation<'a, O>;

    #[inline(always)]
    fn fast(self, _: &mut Context<'_>) -> Result<Result<O::Out>, Operation<'a, O>> {
        let Direct { fabric, op } = self;
        op.try_direct(fabric).map(Ok).map_err(|op| Operation { fabric, state: State::New(op) })
    }
}

/// An operation that could not be executed directly.
struct Operation<'a, O: DirectOp> {
    fabric: &'a Fabric,
    state: State<O>,
}

enum State<O> {
    New(O),
    InFlight(Token, O),
    /// Waiting for room, after which the operation is posted again.
    Room(WaitState, O),
    Complete,
}

// Nothing in the future is pinned.
impl<O: DirectOp> Unpin for Operation<'_, O> {}

impl<O: DirectOp> Future for Operation<'_, O> {
    type Output = Result<O::Out>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let me = &mut *self;
        let fabric = me.fabric;
        loop {
            match &mut me.state {
                State::New(op) => {
                    let posted = op.post(fabric);
                    let op = me.take();
                    me.state = match posted {
                        Posted::Complete(word) => return Poll::Ready(Ok(op.finish(word))),
                        Posted::Failed(error) => return Poll::Ready(Err(error)),
                        Posted::Pending(token) => State::InFlight(token, op),
                        Posted::Full => State::Room(WaitState::default(), op),
                    };
                }
                State::InFlight(token, op) => {
                    let Poll::Ready(outcome) = fabric.provider().poll(token, op.sink(), cx) else {
                        return Poll::Pending;
                    };
                    let op = me.take();
                    return Poll::Ready(outcome.map(|word| op.finish(word)));
                }
                State::Room(wait_state, op) => {
                    let wait_for = WaitFor::Room(op.notifies());
                    let Poll::Ready(room) = fabric.provider().poll_wait(wait_state, wait_for, cx) else {
                        return Poll::Pending;
                    };
                    end_room(fabric, wait_state, wait_for, if room.is_ok() { Ended::Reached } else { Ended::GivenUp });
                    let op = me.take();
                    room?;
                    me.state = State::New(op);
                }
                State::Complete => panic!("a future is not polled after its end"),
            }
        }
    }
}

impl<O: DirectOp> Operation<'_, O> {
    /// Takes the operation out; its state has ended.
    fn take(&mut self) -> O {
        match mem::replace(&mut self.state, State::Complete) {
            State::New(op) | State::InFlight(_, op) | State::Room(_, op) => op,
            State::Complete => unreachable!("the operation is not complete"),
        }
    }
}

impl<O: DirectOp> Drop for Operation<'_, O> {
    fn drop(&mut self) {
        match mem::replace(&mut self.state, State::Complete) {
            State::New(_) | State::Complete => {}
            State::InFlight(token, _) => self.fabric.provider().forget(token),
            State::Room(mut wait_state, op) => {
                end_room(self.fabric, &mut wait_state, WaitFor::Room(op.notifies()), Ended::GivenUp);
            }
        }
    }
}

/// Ends a wait for room.
fn end_room(fabric: &Fabric, wait_state: &mut WaitState, wait_for: WaitFor<'_>, ended: Ended) {
    if !wait_state.is_empty() {
        fabric.provider().end_wait(wait_state, wait_for, ended);
    }
}
