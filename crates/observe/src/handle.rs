//! Handles of operations that are observed.

use crate::{counts::WaitKind, event::Event, recorder::Recorder};
use rdma_fabric::{Fabric, OpHandle, Result};
use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

/// A posted operation. Notes its end when it is done, or given up, and whether it was waited for.
struct Posted<F: Fabric> {
    /// For the clock.
    below: F,
    recorder: Recorder,
    /// The operation, but for its end.
    event: Event,
    /// When a poll first found it not done.
    waiting_since: Option<u64>,
}

impl<F: Fabric> Drop for Posted<F> {
    fn drop(&mut self) {
        let end_ps = self.below.now().as_picos();
        let mut record = self.recorder.lock();
        if let Some(since) = self.waiting_since {
            record.waited(WaitKind::Operation, self.event.peer, since, end_ps);
        }
        record.happened(Event { end_ps, ..self.event });
    }
}

/// The handle of an operation that is observed.
#[must_use = "a handle carries the operation's result"]
pub struct ObservedHandle<F: Fabric, T: Unpin + 'static> {
    inner: F::Handle<T>,
    /// Until its end is known.
    posted: Option<Posted<F>>,
}

// Inner handles are `Unpin`, and nothing else in it is pinned.
impl<F: Fabric, T: Unpin + 'static> Unpin for ObservedHandle<F, T> {}

impl<F: Fabric, T: Unpin + 'static> ObservedHandle<F, T> {
    /// Of `event`, posted just now.
    pub(crate) fn new(recorder: &Recorder, below: &F, event: Event, inner: F::Handle<T>) -> Self {
        let posted = Posted { below: below.clone(), recorder: recorder.clone(), event, waiting_since: None };
        ObservedHandle { inner, posted: Some(posted) }
    }

    /// Of an operation that is not noted.
    pub(crate) fn unseen(inner: F::Handle<T>) -> Self {
        ObservedHandle { inner, posted: None }
    }
}

impl<F: Fabric, T: Unpin + 'static> fmt::Debug for ObservedHandle<F, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let event = self.posted.as_ref().map(|posted| posted.event);
        f.debug_struct("ObservedHandle").field("posted", &event).finish_non_exhaustive()
    }
}

impl<F: Fabric, T: Unpin + 'static> Future for ObservedHandle<F, T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        let this = &mut *self;
        let poll = Pin::new(&mut this.inner).poll(cx);
        match (&poll, &mut this.posted) {
            (Poll::Ready(_), posted) => *posted = None,
            (Poll::Pending, Some(posted)) if posted.waiting_since.is_none() => {
                posted.waiting_since = Some(posted.below.now().as_picos());
            }
            (Poll::Pending, _) => {}
        }
        poll
    }
}

impl<F: Fabric, T: Unpin + 'static> OpHandle<T> for ObservedHandle<F, T> {
    fn test(&mut self) -> bool {
        let done = self.inner.test();
        if done {
            self.posted = None;
        }
        done
    }

    fn wait(mut self) -> Result<T> {
        if !self.test()
            && let Some(posted) = &mut self.posted
        {
            posted.waiting_since.get_or_insert(posted.below.now().as_picos());
        }
        let ObservedHandle { inner, posted } = self;
        let result = inner.wait();
        drop(posted);
        result
    }
}
