//! Requests to channels, as futures.

use super::{
    channels::Channels,
    results::{Arrival, Done},
};
use crate::{Acp, AcpError, Result};
use core::{
    fmt,
    future::Future,
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll},
};
use rdma_fabric::join;

mod sealed {
    pub trait Sealed {}
}

/// The result of a [`Request`]: the buffer of a sent message, the buffer of a received message with
/// its [`Arrival`], or `()` for a freed channel.
pub trait Outcome: sealed::Sealed + Sized {
    #[doc(hidden)]
    fn of(done: RequestResult) -> Option<Self>;
}

/// A request's result.
#[doc(hidden)]
#[derive(Debug)]
pub struct RequestResult(Done);

macro_rules! outcome {
    ($($ty:ty: $done:pat => $out:expr),*) => {$(
        impl sealed::Sealed for $ty {}
        impl Outcome for $ty {
            fn of(done: RequestResult) -> Option<Self> {
                match done.0 {
                    $done => Some($out),
                    _ => None,
                }
            }
        }
    )*};
}
outcome!(
    Vec<u8>: Done::Sent(buffer) => buffer,
    (Vec<u8>, Arrival): Done::Received(buffer, arrival) => (buffer, arrival),
    (): Done::Freed => ()
);

/// A message being sent or received, or a channel being freed.
///
/// The call that returned it has submitted it; it makes progress whenever the rank awaits any of
/// its channels. Awaiting it yields its result. If it is dropped, a message is still sent, and a
/// channel is still freed; a receive is withdrawn if no byte of its message has arrived, otherwise
/// the message is lost.
#[must_use = "a request that is dropped is withdrawn, or its result is lost"]
pub struct Request<T: Outcome> {
    acp: Acp,
    end: u64,
    /// The number of the request, or the error of its submission.
    made: Result<u64>,
    taken: bool,
    waits: bool,
    of: PhantomData<fn() -> T>,
}

impl<T: Outcome> fmt::Debug for Request<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Request({:?} of channel {})", self.made, self.end)
    }
}

impl<T: Outcome> Request<T> {
    /// Submits a request.
    pub(super) fn new(acp: &Acp, end: u64, make: impl FnOnce(&mut Channels) -> Result<u64>) -> Self {
        let made = acp.channels(|channels| {
            let made = make(channels)?;
            // Starts the request if possible.
            channels.step()?;
            Ok(made)
        });
        let made = made.and_then(|made| made);
        Request { acp: acp.clone(), end, made, taken: false, waits: false, of: PhantomData }
    }

    /// Returns whether the request is complete, without waiting. Makes progress with all channels
    /// of this rank.
    ///
    /// # Errors
    /// [`AcpError::OtherThread`]; errors of accesses to local memory.
    pub fn is_complete(&self) -> Result<bool> {
        let Ok(made) = self.made else { return Ok(true) };
        self.acp.channels(|channels| {
            channels.step()?;
            Ok(self.taken || channels.results.is_complete(made))
        })?
    }

    /// Waits until all of the given requests are complete.
    ///
    /// # Errors
    /// The first error among them, in the order given.
    pub fn wait_all(requests: impl IntoIterator<Item = Self>) -> impl Future<Output = Result<Vec<T>>> {
        let requests: Vec<Self> = requests.into_iter().collect();
        async move { join::join_all(requests).await.into_iter().collect() }
    }
}

impl<T: Outcome> Future for Request<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        let me = &mut *self;
        let made = match &me.made {
            Ok(made) => *made,
            Err(error) => return Poll::Ready(Err(error.clone())),
        };
        let done = me.acp.poll_channels(cx, |channels| channels.results.take(made));
        me.waits = done.is_pending();
        me.taken |= done.is_ready();
        done.map(|done| {
            let result = done.map(|done| T::of(RequestResult(done)))?;
            Ok(result.expect("a request yields what it was made for"))
        })
    }
}

// Nothing in the future is pinned.
impl<T: Outcome> Unpin for Request<T> {}

impl<T: Outcome> Drop for Request<T> {
    fn drop(&mut self) {
        if let Ok(made) = self.made
            && !self.taken
        {
            let forgotten = self.acp.channels(|channels| {
                channels.forget(self.end, made);
                if self.waits {
                    channels.wake();
                }
            });
            // On a thread other than the one that it was created for, the result is kept.
            drop::<Result<(), AcpError>>(forgotten);
        }
    }
}

/// Waits until a check of the channels yields a result.
pub(super) struct Until<'a, Look> {
    acp: &'a Acp,
    look: Look,
    waits: bool,
}

impl<'a, Look> Until<'a, Look> {
    pub(super) fn new(acp: &'a Acp, look: Look) -> Self {
        Until { acp, look, waits: false }
    }
}

// Nothing in the future is pinned.
impl<Look> Unpin for Until<'_, Look> {}

impl<Out, Look: FnMut(&mut Channels) -> Option<Result<Out>>> Future for Until<'_, Look> {
    type Output = Result<Out>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Out>> {
        let me = &mut *self;
        let found = me.acp.poll_channels(cx, &mut me.look);
        me.waits = found.is_pending();
        found
    }
}

impl<Look> Drop for Until<'_, Look> {
    fn drop(&mut self) {
        if self.waits {
            drop(self.acp.channels(Channels::wake));
        }
    }
}

impl Acp {
    /// Checks, makes progress with all channels of this rank, and checks again; without a result,
    /// the task is woken when there may be one.
    fn poll_channels<Out>(
        &self,
        cx: &mut Context<'_>,
        mut look: impl FnMut(&mut Channels) -> Option<Result<Out>>,
    ) -> Poll<Result<Out>> {
        let found = self.channels(|channels| {
            if let Some(found) = look(channels) {
                return Poll::Ready(found);
            }
            if let Err(error) = channels.progress(cx) {
                return Poll::Ready(Err(error));
            }
            match look(channels) {
                Some(found) => Poll::Ready(found),
                None => {
                    channels.remember(cx);
                    Poll::Pending
                }
            }
        });
        match found {
            Ok(Poll::Pending) => match self.with(|state| state.poll_server(cx)) {
                Ok(()) => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            },
            Ok(found) => found,
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}
