//! Combinators for protocol code, which joins futures and never spawns.
//!
//! Futures that a combinator takes are polled where it keeps them: an `async fn` would have room for each
//! of its arguments twice, and each level of combinators would double that.

#![allow(unsafe_code)]

use core::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

/// Polls a future once and drops it; returns its output if it was ready.
#[inline]
pub fn now<T: Future>(future: T) -> Option<T::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(out) => Some(out),
        Poll::Pending => None,
    }
}

/// Runs two futures concurrently until both are done.
pub async fn join<A: Future, B: Future>(a: A, b: B) -> (A::Output, B::Output) {
    let (mut a, mut b) = (pin!(a), pin!(b));
    let (mut left, mut right) = (None, None);
    poll_fn(|cx| {
        if left.is_none()
            && let Poll::Ready(out) = a.as_mut().poll(cx)
        {
            left = Some(out);
        }
        if right.is_none()
            && let Poll::Ready(out) = b.as_mut().poll(cx)
        {
            right = Some(out);
        }
        if left.is_some() && right.is_some() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    (left.expect("polled to the end"), right.expect("polled to the end"))
}

/// Runs futures concurrently until all are done; returns their outputs in argument order.
pub async fn join_all<T: Future>(futures: impl IntoIterator<Item = T>) -> Vec<T::Output> {
    let mut running: Vec<Option<Pin<Box<T>>>> = futures.into_iter().map(|f| Some(Box::pin(f))).collect();
    let mut done: Vec<Option<T::Output>> = running.iter().map(|_| None).collect();
    poll_fn(|cx| {
        let mut left = 0;
        for (slot, out) in running.iter_mut().zip(&mut done) {
            if let Some(future) = slot {
                match future.as_mut().poll(cx) {
                    Poll::Ready(value) => (*out, *slot) = (Some(value), None),
                    Poll::Pending => left += 1,
                }
            }
        }
        if left == 0 { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    done.into_iter().map(|out| out.expect("polled to the end")).collect()
}

/// The output of the one of two futures that finished first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Either<A, B> {
    /// The first argument finished.
    First(A),
    /// The second argument finished, and the first had not.
    Second(B),
}

/// Runs two futures until one is done and drops the other. In a tie the first takes precedence.
pub fn race<A: Future, B: Future>(a: A, b: B) -> impl Future<Output = Either<A::Output, B::Output>> {
    Race(a, b)
}

struct Race<A, B>(A, B);

impl<A: Future, B: Future> Future for Race<A, B> {
    type Output = Either<A::Output, B::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: the fields are pinned whenever this is: they are never moved out, there is no `Drop`,
        // and this is `Unpin` only if they are.
        let (a, b) = unsafe {
            let Race(a, b) = self.get_unchecked_mut();
            (Pin::new_unchecked(a), Pin::new_unchecked(b))
        };
        match a.poll(cx) {
            Poll::Ready(out) => Poll::Ready(Either::First(out)),
            Poll::Pending => b.poll(cx).map(Either::Second),
        }
    }
}

/// Converts the output of a future.
pub fn map<F: Future, Out>(future: F, convert: impl FnOnce(F::Output) -> Out) -> impl Future<Output = Out> {
    Map { future, convert: Some(convert) }
}

struct Map<F, Convert> {
    future: F,
    /// `None` after it was used.
    convert: Option<Convert>,
}

impl<F: Future, Out, Convert: FnOnce(F::Output) -> Out> Future for Map<F, Convert> {
    type Output = Out;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Out> {
        // SAFETY: `future` is pinned whenever this is: it is never moved out, there is no `Drop`, and
        // this is `Unpin` only if it is. `convert` is never pinned.
        let (future, convert) = unsafe {
            let Map { future, convert } = self.get_unchecked_mut();
            (Pin::new_unchecked(future), convert)
        };
        future.poll(cx).map(|out| convert.take().expect("a future is not polled after its end")(out))
    }
}

/// Runs futures concurrently until one is done and drops the others. In a tie the earliest argument
/// takes precedence. Never completes if there are none.
pub async fn race_all<T: Future>(futures: impl IntoIterator<Item = T>) -> T::Output {
    let mut running: Vec<Pin<Box<T>>> = futures.into_iter().map(Box::pin).collect();
    poll_fn(|cx| {
        let done = running.iter_mut().find_map(|future| match future.as_mut().poll(cx) {
            Poll::Ready(out) => Some(out),
            Poll::Pending => None,
        });
        done.map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::{now, race_all};
    use core::{
        future::{Future, pending, ready},
        pin::Pin,
    };

    type Racer = Pin<Box<dyn Future<Output = u32>>>;

    #[test]
    fn the_first_that_is_done_wins() {
        let never = || -> Racer { Box::pin(pending()) };
        let done = |number| -> Racer { Box::pin(ready(number)) };
        assert_eq!(now(race_all(vec![never(), done(1), done(2)])), Some(1));
        assert_eq!(now(race_all(vec![never(), never()])), None);
        assert_eq!(now(race_all::<Racer>(vec![])), None);
    }
}
