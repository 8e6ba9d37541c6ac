//! Buffers on their way down, handles on their way up.

use super::{Layer, Layered};
use crate::{
    Fabric, GetSink, OpHandle, PutSource, Result,
    op::{SinkView, SourceView},
};
use bytemuck::Pod;
use core::{
    fmt,
    future::Future,
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll},
};

/// A source or sink of the fabric `G` that is one of the fabric below.
pub(super) struct Across<G, B>(pub(super) B, PhantomData<fn() -> G>);

impl<G, B> Across<G, B> {
    #[inline(always)]
    pub(super) fn new(buffer: B) -> Self {
        Across(buffer, PhantomData)
    }
}

impl<F: Fabric, L: Layer<F>, T: Pod, S: PutSource<Layered<F, L>, T>> PutSource<F, T> for Across<Layered<F, L>, S> {
    #[inline(always)]
    fn elements(&self) -> usize {
        self.0.elements()
    }
    #[inline(always)]
    fn view(&self) -> SourceView<'_, F::Loc> {
        self.0.view()
    }
}

impl<F: Fabric, L: Layer<F>, T: Pod, D: GetSink<Layered<F, L>, T>> GetSink<F, T> for Across<Layered<F, L>, D> {
    #[inline(always)]
    fn elements(&self) -> usize {
        self.0.elements()
    }
    #[inline(always)]
    fn view(&mut self) -> SinkView<'_, F::Loc> {
        self.0.view()
    }
}

/// The handle of an operation that was posted through a layer: the layer's own, whose buffer is given back as it came.
#[must_use = "a handle carries the operation's result"]
pub struct LayeredHandle<F: Fabric, L: Layer<F>, T: Unpin + 'static>(Inner<F, L, T>);

enum Inner<F: Fabric, L: Layer<F>, T: Unpin + 'static> {
    /// Of an operation that gives a buffer back.
    Buffer(L::Handle<Across<Layered<F, L>, T>>),
    /// Of any other.
    Plain(L::Handle<T>),
}

impl<F: Fabric, L: Layer<F>, T: Unpin + 'static> LayeredHandle<F, L, T> {
    #[inline(always)]
    pub(super) fn of_buffer(handle: L::Handle<Across<Layered<F, L>, T>>) -> Self {
        LayeredHandle(Inner::Buffer(handle))
    }

    #[inline(always)]
    pub(super) fn plain(handle: L::Handle<T>) -> Self {
        LayeredHandle(Inner::Plain(handle))
    }
}

impl<F: Fabric, L: Layer<F>, T: Unpin + 'static> fmt::Debug for LayeredHandle<F, L, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Inner::Buffer(_) => "LayeredHandle(with its buffer)",
            Inner::Plain(_) => "LayeredHandle",
        })
    }
}

impl<F: Fabric, L: Layer<F>, T: Unpin + 'static> Future for LayeredHandle<F, L, T> {
    type Output = Result<T>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        match &mut self.0 {
            Inner::Buffer(handle) => Pin::new(handle).poll(cx).map_ok(|across| across.0),
            Inner::Plain(handle) => Pin::new(handle).poll(cx),
        }
    }
}

impl<F: Fabric, L: Layer<F>, T: Unpin + 'static> OpHandle<T> for LayeredHandle<F, L, T> {
    #[inline(always)]
    fn test(&mut self) -> bool {
        match &mut self.0 {
            Inner::Buffer(handle) => handle.test(),
            Inner::Plain(handle) => handle.test(),
        }
    }

    #[inline(always)]
    fn wait(self) -> Result<T> {
        match self.0 {
            Inner::Buffer(handle) => handle.wait().map(|across| across.0),
            Inner::Plain(handle) => handle.wait(),
        }
    }
}
