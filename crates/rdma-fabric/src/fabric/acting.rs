//! Operations that are posted when their future is first polled, and awaited.
//!
//! Where the place is mapped the operation is done there and then, by [`Act::now`]. What is not over at once is given to functions of their own,
//! *by value*: so the compiler keeps the short path in registers, and what an operation costs there is the instructions that do it.

use super::Fabric;
use crate::{
    Rank, Result,
    provider::{Ended, Goal, Posted, Sink, Slot, Token},
};
use core::{
    future::Future,
    mem::ManuallyDrop,
    pin::Pin,
    task::{Context, Poll},
};

/// An operation: how it is done directly, and how it is posted.
pub(super) trait Act: Sized {
    type Out;
    /// Do it directly, or give it back.
    fn now(self, fabric: &Fabric) -> Result<Self::Out, Self>;
    fn post(&mut self, fabric: &Fabric) -> Posted;
    /// Where the bytes of a get go.
    fn sink(&mut self) -> Sink<'_> {
        Sink::none()
    }
    /// What it came to.
    fn over(self, word: u64) -> Self::Out;
    /// Whose notice queue it needs room in.
    fn notifies(&self) -> Option<Rank> {
        None
    }
}

/// Posts when first polled, and waits for the end.
#[must_use = "futures do nothing unless they are polled"]
pub(super) struct Running<'a, A: Act> {
    fabric: &'a Fabric,
    /// Until the first poll.
    act: Option<A>,
    /// Ended by [`Running::drop`] only, which the short path sees through.
    later: ManuallyDrop<Later<A>>,
}

enum Later<A> {
    Nothing,
    Under(Token, A),
    Room(Slot, A),
}

impl<'a, A: Act> Running<'a, A> {
    #[inline(always)]
    pub(super) fn new(fabric: &'a Fabric, act: A) -> Self {
        Running { fabric, act: Some(act), later: ManuallyDrop::new(Later::Nothing) }
    }
}

/// Post it, and what follows.
#[inline(never)]
fn begin<A: Act>(fabric: &Fabric, mut act: A, later: &mut Later<A>, cx: &mut Context<'_>) -> Poll<Result<A::Out>> {
    loop {
        match act.post(fabric) {
            Posted::Over(word) => return Poll::Ready(Ok(act.over(word))),
            Posted::Pending(mut token) => {
                return match fabric.provider().poll(&mut token, act.sink(), cx) {
                    Poll::Pending => {
                        *later = Later::Under(token, act);
                        Poll::Pending
                    }
                    Poll::Ready(outcome) => Poll::Ready(outcome.map(|word| act.over(word))),
                };
            }
            Posted::Full => {
                let (mut slot, goal) = (Slot::default(), Goal::Room(act.notifies()));
                let Poll::Ready(room) = fabric.provider().poll_wait(&mut slot, goal, cx) else {
                    *later = Later::Room(slot, act);
                    return Poll::Pending;
                };
                end(fabric, slot, goal, &room);
                if let Err(error) = room {
                    return Poll::Ready(Err(error));
                }
            }
            Posted::Failed(error) => return Poll::Ready(Err(error)),
        }
    }
}

fn end(fabric: &Fabric, mut slot: Slot, goal: Goal<'_>, room: &Result<()>) {
    if !slot.is_empty() {
        let ended = if room.is_ok() { Ended::Reached } else { Ended::GivenUp };
        fabric.provider().end_wait(&mut slot, goal, ended);
    }
}

#[inline(never)]
fn go_on<A: Act>(fabric: &Fabric, later: &mut Later<A>, cx: &mut Context<'_>) -> Poll<Result<A::Out>> {
    match later {
        Later::Nothing => panic!("a future is not polled after its end"),
        Later::Under(token, act) => {
            let Poll::Ready(outcome) = fabric.provider().poll(token, act.sink(), cx) else { return Poll::Pending };
            let Later::Under(_, act) = core::mem::replace(later, Later::Nothing) else { unreachable!("looked at") };
            Poll::Ready(outcome.map(|word| act.over(word)))
        }
        Later::Room(slot, act) => {
            let goal = Goal::Room(act.notifies());
            let Poll::Ready(room) = fabric.provider().poll_wait(slot, goal, cx) else { return Poll::Pending };
            let Later::Room(slot, act) = core::mem::replace(later, Later::Nothing) else { unreachable!("looked at") };
            end(fabric, slot, goal, &room);
            match room {
                Ok(()) => begin(fabric, act, later, cx),
                Err(error) => Poll::Ready(Err(error)),
            }
        }
    }
}

#[cold]
#[inline(never)]
fn give_up<A: Act>(fabric: &Fabric, later: &mut Later<A>) {
    match core::mem::replace(later, Later::Nothing) {
        Later::Nothing => {}
        Later::Under(token, _) => fabric.provider().forget(token),
        Later::Room(mut slot, act) => {
            if !slot.is_empty() {
                fabric.provider().end_wait(&mut slot, Goal::Room(act.notifies()), Ended::GivenUp);
            }
        }
    }
}

// Nothing in it is pinned.
impl<A: Act> Unpin for Running<'_, A> {}

impl<A: Act> Future for Running<'_, A> {
    type Output = Result<A::Out>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let me = &mut *self;
        let outcome = match me.act.take() {
            Some(act) => match act.now(me.fabric) {
                Ok(out) => return Poll::Ready(Ok(out)),
                Err(act) => begin(me.fabric, act, &mut me.later, cx),
            },
            None => go_on(me.fabric, &mut me.later, cx),
        };
        // Taken apart, so that what is over at once stays in registers.
        match outcome {
            Poll::Ready(Ok(out)) => Poll::Ready(Ok(out)),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<A: Act> Drop for Running<'_, A> {
    #[inline(always)]
    fn drop(&mut self) {
        if !matches!(*self.later, Later::Nothing) {
            give_up(self.fabric, &mut self.later);
        }
    }
}
