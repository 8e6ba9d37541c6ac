//! The future of an operation that is posted when it is first polled, and awaited.
//!
//! If the place is mapped, the operation is executed in that poll, by [`DirectOp::try_direct`]. An
//! operation that does not complete immediately is passed to separate functions *by value*: that
//! lets the compiler keep the fast path in registers, where an operation costs only the
//! instructions that perform it.
//!
//! This is a [`fast_path`](crate::fast_path()) written by hand: made by that function, a put or get
//! of 8 bytes takes 0.2 ns of 1.9 ns longer (minima of 14 alternating runs of `cargo xtask bench`),
//! because the future holds the operation and its slow path as two optional parts.

use super::{DirectOp, Fabric};
use crate::{
    Result,
    provider::{Ended, Posted, Token, WaitFor, WaitState},
};
use core::{
    future::Future,
    mem::{self, ManuallyDrop},
    pin::Pin,
    task::{Context, Poll},
};

/// Posts an operation when first polled, and waits for its completion.
#[must_use = "futures do nothing unless they are polled"]
pub(super) struct OperationFuture<'a, O: DirectOp> {
    fabric: &'a Fabric,
    /// `None` after the first poll.
    op: Option<O>,
    /// Dropped only by [`OperationFuture::drop`], which is inlined into the fast path.
    pending: ManuallyDrop<Pending<O>>,
}

/// The state of an operation that did not complete immediately.
enum Pending<O> {
    Nothing,
    InFlight(Token, O),
    Room(WaitState, O),
}

impl<'a, O: DirectOp> OperationFuture<'a, O> {
    #[inline(always)]
    pub(super) fn new(fabric: &'a Fabric, op: O) -> Self {
        OperationFuture { fabric, op: Some(op), pending: ManuallyDrop::new(Pending::Nothing) }
    }
}

/// Posts an operation, after waiting for room if necessary.
#[inline(never)]
fn begin<O: DirectOp>(
    fabric: &Fabric,
    mut op: O,
    pending: &mut Pending<O>,
    cx: &mut Context<'_>,
) -> Poll<Result<O::Out>> {
    loop {
        match op.post(fabric) {
            Posted::Complete(word) => return Poll::Ready(Ok(op.finish(word))),
            Posted::Pending(mut token) => {
                return match fabric.provider().poll(&mut token, op.sink(), cx) {
                    Poll::Pending => {
                        *pending = Pending::InFlight(token, op);
                        Poll::Pending
                    }
                    Poll::Ready(outcome) => Poll::Ready(outcome.map(|word| op.finish(word))),
                };
            }
            Posted::Full => {
                let (mut wait_state, wait_for) = (WaitState::default(), WaitFor::Room(op.notifies()));
                let Poll::Ready(room) = fabric.provider().poll_wait(&mut wait_state, wait_for, cx) else {
                    *pending = Pending::Room(wait_state, op);
                    return Poll::Pending;
                };
                end_room(fabric, wait_state, wait_for, &room);
                if let Err(error) = room {
                    return Poll::Ready(Err(error));
                }
            }
            Posted::Failed(error) => return Poll::Ready(Err(error)),
        }
    }
}

/// Ends a wait for room.
fn end_room(fabric: &Fabric, mut wait_state: WaitState, wait_for: WaitFor<'_>, room: &Result<()>) {
    if !wait_state.is_empty() {
        let ended = if room.is_ok() { Ended::Reached } else { Ended::GivenUp };
        fabric.provider().end_wait(&mut wait_state, wait_for, ended);
    }
}

/// Polls an operation that did not complete immediately.
#[inline(never)]
fn resume<O: DirectOp>(fabric: &Fabric, pending: &mut Pending<O>, cx: &mut Context<'_>) -> Poll<Result<O::Out>> {
    match pending {
        Pending::Nothing => panic!("a future is not polled after its end"),
        Pending::InFlight(token, op) => {
            let Poll::Ready(outcome) = fabric.provider().poll(token, op.sink(), cx) else { return Poll::Pending };
            let Pending::InFlight(_, op) = mem::replace(pending, Pending::Nothing) else { unreachable!("looked at") };
            Poll::Ready(outcome.map(|word| op.finish(word)))
        }
        Pending::Room(slot, op) => {
            let wait_for = WaitFor::Room(op.notifies());
            let Poll::Ready(room) = fabric.provider().poll_wait(slot, wait_for, cx) else { return Poll::Pending };
            let Pending::Room(slot, op) = mem::replace(pending, Pending::Nothing) else { unreachable!("looked at") };
            end_room(fabric, slot, wait_for, &room);
            match room {
                Ok(()) => begin(fabric, op, pending, cx),
                Err(error) => Poll::Ready(Err(error)),
            }
        }
    }
}

#[cold]
#[inline(never)]
fn give_up<O: DirectOp>(fabric: &Fabric, pending: &mut Pending<O>) {
    match mem::replace(pending, Pending::Nothing) {
        Pending::Nothing => {}
        Pending::InFlight(token, _) => fabric.provider().forget(token),
        Pending::Room(mut slot, op) => {
            if !slot.is_empty() {
                fabric.provider().end_wait(&mut slot, WaitFor::Room(op.notifies()), Ended::GivenUp);
            }
        }
    }
}

// Nothing in the future is pinned.
impl<O: DirectOp> Unpin for OperationFuture<'_, O> {}

impl<O: DirectOp> Future for OperationFuture<'_, O> {
    type Output = Result<O::Out>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let me = &mut *self;
        let outcome = match me.op.take() {
            Some(op) => match op.try_direct(me.fabric) {
                Ok(out) => return Poll::Ready(Ok(out)),
                Err(op) => begin(me.fabric, op, &mut me.pending, cx),
            },
            None => resume(me.fabric, &mut me.pending, cx),
        };
        // Matched and rebuilt, so that a result that is immediately ready stays in registers.
        match outcome {
            Poll::Ready(Ok(out)) => Poll::Ready(Ok(out)),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<O: DirectOp> Drop for OperationFuture<'_, O> {
    #[inline(always)]
    fn drop(&mut self) {
        if !matches!(*self.pending, Pending::Nothing) {
            give_up(self.fabric, &mut self.pending);
        }
    }
}
