//! Operations that are posted when their future is first polled, and awaited.
//!
//! Where the place is mapped the operation is done there and then, by [`Act::now`]. What is not over at once is given to functions of their own,
//! *by value*: so the compiler keeps the short path in registers, and what an operation costs there is the instructions that do it.

use super::Fabric;
use crate::{
    Amo, AtomicWord, FabricError, GetSink, PutSource, Rank, Result,
    provider::{Ended, Goal, Place, Posted, Sink, Slot, Source, Token},
};
use bytemuck::Pod;
use core::{
    future::Future,
    marker::PhantomData,
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

// ----- atomics: the kind of each is known where it is compiled ------------------------------------

macro_rules! atomics {
    ($($name:ident($($field:ident),*) = $amo:expr;)*) => {$(
        pub(super) struct $name<'a, W> { pub(super) word: &'a Place, $(pub(super) $field: W),* }

        impl<W: AtomicWord> Act for $name<'_, W> {
            type Out = W;
            #[inline(always)]
            fn now(self, fabric: &Fabric) -> Result<W, Self> {
                $(let $field = self.$field.to_bits();)*
                let Some(old) = self.word.modify(W::BYTES, $amo) else { return Err(self) };
                fabric.rung(self.word);
                Ok(W::from_bits(old))
            }
            fn post(&mut self, fabric: &Fabric) -> Posted {
                $(let $field = self.$field.to_bits();)*
                fabric.provider().atomic(self.word, $amo)
            }
            #[inline]
            fn over(self, word: u64) -> W {
                W::from_bits(word)
            }
        }
    )*};
}
atomics! {
    Add(add) = Amo::Add(add);
    Swap(new) = Amo::Swap(new);
    CompareSwap(expected, new) = Amo::CompareSwap { expected, new };
    Or(bits) = Amo::Or(bits);
    And(bits) = Amo::And(bits);
}

/// Any atomic.
pub(super) struct Any<'a, W> {
    pub(super) word: &'a Place,
    pub(super) amo: Amo<W>,
}

impl<W: AtomicWord> Act for Any<'_, W> {
    type Out = W;
    #[inline(always)]
    fn now(self, fabric: &Fabric) -> Result<W, Self> {
        let Some(old) = self.word.modify(W::BYTES, self.amo.to_bits()) else { return Err(self) };
        fabric.rung(self.word);
        Ok(W::from_bits(old))
    }
    fn post(&mut self, fabric: &Fabric) -> Posted {
        fabric.provider().atomic(self.word, self.amo.to_bits())
    }
    #[inline]
    fn over(self, word: u64) -> W {
        W::from_bits(word)
    }
}

// ----- words -------------------------------------------------------------------------------------

pub(super) struct PutWord<'a, W> {
    pub(super) to: &'a Place,
    pub(super) value: W,
}

impl<W: AtomicWord> Act for PutWord<'_, W> {
    type Out = ();
    #[inline(always)]
    fn now(self, fabric: &Fabric) -> Result<(), Self> {
        if self.to.store(W::BYTES, self.value.to_bits()).is_none() {
            return Err(self);
        }
        fabric.rung(self.to);
        Ok(())
    }
    fn post(&mut self, fabric: &Fabric) -> Posted {
        fabric.provider().put(self.to, Source::Bytes(bytemuck::bytes_of(&self.value)), None)
    }
    fn over(self, _: u64) {}
}

pub(super) struct GetWord<'a, W> {
    pub(super) from: &'a Place,
    pub(super) value: W,
}

impl<W: AtomicWord> Act for GetWord<'_, W> {
    type Out = W;
    #[inline(always)]
    fn now(self, _: &Fabric) -> Result<W, Self> {
        match self.from.load(W::BYTES) {
            Some(bits) => Ok(W::from_bits(bits)),
            None => Err(self),
        }
    }
    fn post(&mut self, fabric: &Fabric) -> Posted {
        fabric.provider().get(self.from, Sink::Bytes(bytemuck::bytes_of_mut(&mut self.value)))
    }
    fn sink(&mut self) -> Sink<'_> {
        Sink::Bytes(bytemuck::bytes_of_mut(&mut self.value))
    }
    fn over(self, _: u64) -> W {
        self.value
    }
}

// ----- spans -------------------------------------------------------------------------------------

/// Put a short source where it is to go, if that can be done directly.
#[inline(always)]
pub(super) fn put_now(fabric: &Fabric, to: &Place, from: Source<'_>) -> bool {
    let put = match from {
        Source::Bytes(bytes) => to.copy_in(bytes),
        Source::Place(own) => to.copy_from(own),
    };
    if put.is_some() {
        fabric.rung(to);
    }
    put.is_some()
}

/// Fill a short buffer, if that can be done directly.
#[inline(always)]
pub(super) fn get_now(from: &Place, to: Sink<'_>) -> bool {
    match to {
        Sink::Bytes(bytes) => from.copy_out(bytes).is_some(),
        Sink::Place(_) => false,
    }
}

pub(super) fn same_length<T>(elements: usize, place: &Place) -> Result<()> {
    let want = place.len() / size_of::<T>().max(1);
    if elements == want || size_of::<T>() == 0 { Ok(()) } else { Err(FabricError::length_mismatch(elements, want)) }
}

pub(super) struct Put<'a, T, S> {
    pub(super) to: &'a Place,
    pub(super) from: S,
    pub(super) notice: Option<u64>,
    pub(super) of: PhantomData<fn() -> T>,
}

impl<T: Pod, S: PutSource<T>> Act for Put<'_, T, S> {
    type Out = S;
    #[inline(always)]
    fn now(self, fabric: &Fabric) -> Result<S, Self> {
        if self.notice.is_none() && put_now(fabric, self.to, self.from.view()) { Ok(self.from) } else { Err(self) }
    }
    fn post(&mut self, fabric: &Fabric) -> Posted {
        if let Err(error) = same_length::<T>(self.from.elements(), self.to) {
            return Posted::failed(error);
        }
        fabric.provider().put(self.to, self.from.view(), self.notice)
    }
    fn over(self, _: u64) -> S {
        self.from
    }
    fn notifies(&self) -> Option<Rank> {
        self.notice.map(|_| self.to.rank())
    }
}

pub(super) struct Get<'a, T, D> {
    pub(super) from: &'a Place,
    pub(super) to: D,
    pub(super) of: PhantomData<fn() -> T>,
}

impl<T: Pod, D: GetSink<T>> Act for Get<'_, T, D> {
    type Out = D;
    #[inline(always)]
    fn now(mut self, _: &Fabric) -> Result<D, Self> {
        if get_now(self.from, self.to.view()) { Ok(self.to) } else { Err(self) }
    }
    fn post(&mut self, fabric: &Fabric) -> Posted {
        if let Err(error) = same_length::<T>(self.to.elements(), self.from) {
            return Posted::failed(error);
        }
        fabric.provider().get(self.from, self.to.view())
    }
    fn sink(&mut self) -> Sink<'_> {
        self.to.view()
    }
    fn over(self, _: u64) -> D {
        self.to
    }
}
