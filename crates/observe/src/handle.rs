//! Buffers and handles on their way through the wrapper.

use crate::{counts::WaitKind, event::Event, observed::Observed, recorder::Recorder};
use rdma_fabric::{
    Fabric, GetSink, OpHandle, Pod, PutSource, Result,
    op::{SinkView, SourceView},
};
use std::{
    fmt,
    future::Future,
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll},
};

/// A source or sink of the outer fabric that is one of the inner.
pub(crate) struct Across<F, B>(pub(crate) B, PhantomData<fn() -> F>);

impl<F, B> Across<F, B> {
    pub(crate) fn new(buffer: B) -> Self {
        Across(buffer, PhantomData)
    }
}

impl<F, B> fmt::Debug for Across<F, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Across(..)")
    }
}

impl<F: Fabric, T: Pod, S: PutSource<Observed<F>, T>> PutSource<F, T> for Across<F, S> {
    fn elements(&self) -> usize {
        self.0.elements()
    }
    fn view(&self) -> SourceView<'_, F::Loc> {
        self.0.view()
    }
}

impl<F: Fabric, T: Pod, D: GetSink<Observed<F>, T>> GetSink<F, T> for Across<F, D> {
    fn elements(&self) -> usize {
        self.0.elements()
    }
    fn view(&mut self) -> SinkView<'_, F::Loc> {
        self.0.view()
    }
}

/// The inner fabric's handle.
enum Inner<F: Fabric, T: Unpin + 'static> {
    /// Of an operation that gives a buffer back.
    Buffer(F::Handle<Across<F, T>>),
    /// Of any other.
    Plain(F::Handle<T>),
}

/// A posted operation. Notes its end when it is done, or given up, and whether it was waited for.
struct Posted<F: Fabric> {
    /// For the clock.
    inner: F,
    recorder: Recorder,
    /// The operation, but for its end.
    event: Event,
    /// When a poll first found it not done.
    waiting_since: Option<u64>,
}

impl<F: Fabric> Drop for Posted<F> {
    fn drop(&mut self) {
        let end_ps = self.inner.now().as_picos();
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
    inner: Inner<F, T>,
    /// Until its end is known.
    posted: Option<Posted<F>>,
}

// Inner handles are `Unpin`, and nothing else in it is pinned.
impl<F: Fabric, T: Unpin + 'static> Unpin for ObservedHandle<F, T> {}

impl<F: Fabric, T: Unpin + 'static> ObservedHandle<F, T> {
    /// Of an operation that takes and gives back a buffer.
    pub(crate) fn of_buffer(fabric: &Observed<F>, event: Event, inner: F::Handle<Across<F, T>>) -> Self {
        ObservedHandle { inner: Inner::Buffer(inner), posted: Some(posted(fabric, event)) }
    }

    pub(crate) fn plain(fabric: &Observed<F>, event: Event, inner: F::Handle<T>) -> Self {
        ObservedHandle { inner: Inner::Plain(inner), posted: Some(posted(fabric, event)) }
    }
}

fn posted<F: Fabric>(fabric: &Observed<F>, event: Event) -> Posted<F> {
    Posted { inner: fabric.inner.clone(), recorder: fabric.recorder.clone(), event, waiting_since: None }
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
        let poll = match &mut this.inner {
            Inner::Buffer(handle) => Pin::new(handle).poll(cx).map_ok(|across| across.0),
            Inner::Plain(handle) => Pin::new(handle).poll(cx),
        };
        match (&poll, &mut this.posted) {
            (Poll::Ready(_), posted) => *posted = None,
            (Poll::Pending, Some(posted)) if posted.waiting_since.is_none() => {
                posted.waiting_since = Some(posted.inner.now().as_picos());
            }
            (Poll::Pending, _) => {}
        }
        poll
    }
}

impl<F: Fabric, T: Unpin + 'static> OpHandle<T> for ObservedHandle<F, T> {
    fn test(&mut self) -> bool {
        let done = match &mut self.inner {
            Inner::Buffer(handle) => handle.test(),
            Inner::Plain(handle) => handle.test(),
        };
        if done {
            self.posted = None;
        }
        done
    }

    fn wait(mut self) -> Result<T> {
        if !self.test()
            && let Some(posted) = &mut self.posted
        {
            posted.waiting_since.get_or_insert(posted.inner.now().as_picos());
        }
        let ObservedHandle { inner, posted } = self;
        let result = match inner {
            Inner::Buffer(handle) => handle.wait().map(|across| across.0),
            Inner::Plain(handle) => handle.wait(),
        };
        drop(posted);
        result
    }
}
