//! Operations as values, so that a refused one can come back.
//!
//! [`Fabric::try_post`] and [`Fabric::post`] take any [`Operation`]; the short methods of [`Fabric`]
//! (`put`, `get`, `fetch_add`, …) post and wait in one step.

use crate::{
    Amo, AtomicWord, Fabric, FabricError, Handle, LocalSpan, PutOptions, Rank, Refused, RemoteSpan, RemoteWord, Result,
    provider::{Sink, Source},
};
use bytemuck::Pod;

/// What a put may take its elements from: a `Vec<T>`, a `Box<[T]>`, an array (for short puts, which
/// Tofu carries inside the descriptor), or a [`LocalSpan`] of registered memory. It comes back when the
/// put is complete.
///
/// No slice is one: a put may still read its source when the future that posted it has been dropped.
/// [`Fabric::put_slice`] takes one, and may copy it.
///
/// ```compile_fail,E0277
/// # use rdma_fabric::{Fabric, RemoteSpan, Result};
/// async fn send(fabric: Fabric, to: RemoteSpan<u64>, values: &[u64]) -> Result<()> {
///     fabric.put(&to, values).await.map(drop)
/// }
/// ```
///
/// Owned, it can be put:
///
/// ```
/// # use rdma_fabric::{Fabric, RemoteSpan, Result};
/// async fn send(fabric: Fabric, to: RemoteSpan<u64>, values: &[u64]) -> Result<Vec<u64>> {
///     fabric.put(&to, values.to_vec()).await
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be the source of a put of `{T}`",
    label = "not owned, or not made of `{T}`",
    note = "a put owns its source until it is complete, and gives it back: pass an array, a `Vec<{T}>` (`slice.to_vec()`), a `Box<[{T}]>`, or a `LocalSpan` of own registered memory; `put_slice` takes a slice"
)]
pub trait PutSource<T: Pod>: Unpin + 'static {
    /// Number of elements.
    fn elements(&self) -> usize;
    /// The bytes.
    fn view(&self) -> Source<'_>;
}

/// What a get may deliver to: a `Vec<T>`, a `Box<[T]>`, an array, or a [`LocalSpan`]. The number of
/// its elements says how much to get.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be where a get of `{T}` arrives",
    label = "not owned, or not made of `{T}`",
    note = "a get owns its buffer until it is complete, and gives it back filled: pass an array, a `Vec<{T}>` (`vec![…; n]`), a `Box<[{T}]>`, or a `LocalSpan` of own registered memory; `get_slice` takes a slice"
)]
pub trait GetSink<T: Pod>: Unpin + 'static {
    /// Number of elements.
    fn elements(&self) -> usize;
    /// The bytes.
    fn view(&mut self) -> Sink<'_>;
}

macro_rules! owned_buffer {
    ($([$($generics:tt)*] $buffer:ty),*) => {$(
        impl<T: Pod + Unpin, $($generics)*> PutSource<T> for $buffer {
            #[inline(always)]
            fn elements(&self) -> usize { self.len() }
            #[inline(always)]
            fn view(&self) -> Source<'_> { Source::Bytes(bytemuck::cast_slice(&self[..])) }
        }
        impl<T: Pod + Unpin, $($generics)*> GetSink<T> for $buffer {
            #[inline(always)]
            fn elements(&self) -> usize { self.len() }
            #[inline(always)]
            fn view(&mut self) -> Sink<'_> { Sink::Bytes(bytemuck::cast_slice_mut(&mut self[..])) }
        }
    )*};
}
owned_buffer!([] Vec<T>, [] Box<[T]>, [const N: usize] [T; N]);

impl<T: Pod> PutSource<T> for LocalSpan<T> {
    #[inline(always)]
    fn elements(&self) -> usize {
        self.len()
    }
    #[inline(always)]
    fn view(&self) -> Source<'_> {
        Source::Place(self.place())
    }
}

impl<T: Pod> GetSink<T> for LocalSpan<T> {
    #[inline(always)]
    fn elements(&self) -> usize {
        self.len()
    }
    #[inline(always)]
    fn view(&mut self) -> Sink<'_> {
        Sink::Place(self.place())
    }
}

/// Something that can be posted.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an operation that can be posted",
    note = "operations are `op::Put`, `op::Get`, `op::Atomic` and `op::Nop`; the methods of `Fabric` post and wait in one step"
)]
pub trait Operation: Sized + Unpin {
    /// What its handle yields.
    type Output: Unpin + 'static;

    /// Post it through `fabric`, or get it back.
    ///
    /// # Errors
    /// [`Refused::Full`] when there is no room now, [`Refused::Failed`] when it is impossible.
    fn start(self, fabric: &Fabric) -> Result<Handle<Self::Output>, Refused<Self>>;

    /// Whose notice queue it needs room in, if any.
    fn notifies(&self) -> Option<Rank> {
        None
    }
}

/// Write elements into some rank's memory.
#[derive(Debug)]
pub struct Put<'a, T: Pod, S> {
    /// Where to.
    pub to: &'a RemoteSpan<T>,
    /// What.
    pub from: S,
    /// Notice and session advance.
    pub options: PutOptions,
}

impl<T: Pod, S: PutSource<T>> Operation for Put<'_, T, S> {
    type Output = S;

    #[inline(always)]
    fn start(self, fabric: &Fabric) -> Result<Handle<S>, Refused<Self>> {
        let Put { to, from, options } = self;
        if from.elements() != to.len() {
            let error = FabricError::length_mismatch(from.elements(), to.len());
            return Err(Refused::Failed(error, Put { to, from, options }));
        }
        fabric.try_put(to, from, options).map_err(|refused| refused.map(|from| Put { to, from, options }))
    }

    #[inline]
    fn notifies(&self) -> Option<Rank> {
        self.options.notice.map(|_| self.to.rank())
    }
}

/// Read elements of some rank's memory.
#[derive(Debug)]
pub struct Get<'a, T: Pod, D> {
    /// Where from.
    pub from: &'a RemoteSpan<T>,
    /// Where to.
    pub to: D,
}

impl<T: Pod, D: GetSink<T>> Operation for Get<'_, T, D> {
    type Output = D;

    #[inline(always)]
    fn start(self, fabric: &Fabric) -> Result<Handle<D>, Refused<Self>> {
        let Get { from, to } = self;
        if to.elements() != from.len() {
            let error = FabricError::length_mismatch(to.elements(), from.len());
            return Err(Refused::Failed(error, Get { from, to }));
        }
        fabric.try_get(from, to).map_err(|refused| refused.map(|to| Get { from, to }))
    }
}

/// A remote atomic; yields the value before.
#[derive(Debug)]
pub struct Atomic<'a, W: AtomicWord> {
    /// The word.
    pub word: &'a RemoteWord<W>,
    /// What to do to it.
    pub amo: Amo<W>,
}

impl<W: AtomicWord> Operation for Atomic<'_, W> {
    type Output = W;

    #[inline(always)]
    fn start(self, fabric: &Fabric) -> Result<Handle<W>, Refused<Self>> {
        fabric.try_atomic(self.word, self.amo).map_err(|refused| refused.map(|()| self))
    }
}

/// Nothing, in order with the other commands of the queue.
#[derive(Clone, Copy, Debug)]
pub struct Nop;

impl Operation for Nop {
    type Output = ();

    #[inline(always)]
    fn start(self, fabric: &Fabric) -> Result<Handle<()>, Refused<Self>> {
        fabric.try_nop().map_err(|refused| refused.map(|()| Nop))
    }
}
