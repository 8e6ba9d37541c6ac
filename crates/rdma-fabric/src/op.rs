//! Operations as values, so that a refused operation can be returned.
//!
//! [`Fabric::try_post`] and [`Fabric::post`] take any [`Operation`]; the short methods of
//! [`Fabric`] (`put`, `get`, `fetch_add`, …) post and wait in one step.

pub use crate::fabric::prepared::{
    AtomicDescriptor, Descriptor, GetDescriptor, Preparable, PreparedPut, PutDescriptor,
};
use crate::{
    Amo, AtomicWord, Fabric, FabricError, Handle, LocalSpan, Rank, RegionKey, RemoteSpan, RemoteWord, Result,
    fabric::DirectOp,
    provider::{Sink, Source},
};
use bytemuck::Pod;

/// A source of a put: a `Vec<T>`, a `Box<[T]>`, an array (for short puts, which Tofu carries in the
/// descriptor), or a [`LocalSpan`] of registered memory. The put owns it and returns it on
/// completion.
///
/// A slice is not a source: a put may still read its source after the future that posted it was
/// dropped. [`Fabric::put_slice`] and [`Fabric::try_put_slice`] take a slice, and may copy it.
///
/// ```compile_fail,E0277
/// # use rdma_fabric::{Fabric, RemoteSpan, Result};
/// async fn send(fabric: Fabric, to: RemoteSpan<u64>, values: &[u64]) -> Result<()> {
///     fabric.put(&to, values).await.map(drop)
/// }
/// ```
///
/// An owned source compiles:
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
    /// Returns the number of elements.
    fn elements(&self) -> usize;
    /// Returns the bytes.
    fn view(&self) -> Source<'_>;
}

/// A destination of a get: a `Vec<T>`, a `Box<[T]>`, an array, or a [`LocalSpan`]. Its number of
/// elements is the number of elements to get.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be where a get of `{T}` arrives",
    label = "not owned, or not made of `{T}`",
    note = "a get owns its buffer until it is complete, and gives it back filled: pass an array, a `Vec<{T}>` (`vec![…; n]`), a `Box<[{T}]>`, or a `LocalSpan` of own registered memory; `get_slice` takes a slice"
)]
pub trait GetSink<T: Pod>: Unpin + 'static {
    /// Returns the number of elements.
    fn elements(&self) -> usize;
    /// Returns the bytes.
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

/// An operation that can be posted: [`Put`], [`Get`], [`Copy`](struct@Copy), [`Atomic`] or [`Nop`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an operation that can be posted",
    note = "operations are `op::Put`, `op::Get`, `op::Copy`, `op::Atomic` and `op::Nop`; the methods of `Fabric` post and wait in one step"
)]
pub trait Operation: Sized + Unpin {
    /// The output of the operation's handle.
    type Output: Unpin + 'static;

    /// Posts the operation through `fabric`, or returns it.
    ///
    /// # Errors
    /// [`Refused::Full`] when there is no room now, [`Refused::Failed`] when the operation is
    /// impossible.
    fn start(self, fabric: &Fabric) -> Result<Handle<Self::Output>, Refused<Self>>;

    /// Returns the rank in whose notice queue the operation needs room, if any.
    fn notifies(&self) -> Option<Rank> {
        None
    }
}

/// An operation that was not posted. Nothing is lost: it is returned to the caller.
#[derive(Debug)]
pub enum Refused<Op> {
    /// The queue, or the target's notice queue, has no room now. Post again later.
    Full(Op),
    /// The operation is not possible.
    Failed(FabricError, Op),
}

impl<Op> Refused<Op> {
    /// Returns the operation that was refused.
    pub fn into_inner(self) -> Op {
        match self {
            Refused::Full(op) | Refused::Failed(_, op) => op,
        }
    }

    /// Converts the operation that was refused.
    #[inline(always)]
    pub fn map<New>(self, f: impl FnOnce(Op) -> New) -> Refused<New> {
        match self {
            Refused::Full(op) => Refused::Full(f(op)),
            Refused::Failed(error, op) => Refused::Failed(error, f(op)),
        }
    }
}

/// Writes elements into some rank's memory.
#[derive(Debug)]
pub struct Put<'a, T: Pod, S> {
    /// Destination.
    pub to: &'a RemoteSpan<T>,
    /// Source.
    pub from: S,
    /// Data of the [`Notice`] to leave at the target, if any.
    pub notice: Option<u64>,
}

/// Notifies the target that a put has arrived; delivered after the data is visible there, if the
/// poster requested it.
///
/// The counterpart of Tofu's remote MRQ notice (`edata`), libfabric's remote CQ data and notified
/// access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Notice {
    /// The poster.
    pub from: Rank,
    /// The poster's data, at most [`crate::Caps::notice_bits`] wide.
    pub data: u64,
    /// The region that was written.
    pub region: RegionKey,
    /// Offset of the byte *after* the last one written, as Tofu reports it.
    pub end: u64,
}

impl<T: Pod, S: PutSource<T>> Operation for Put<'_, T, S> {
    type Output = S;

    #[inline(always)]
    fn start(self, fabric: &Fabric) -> Result<Handle<S>, Refused<Self>> {
        if self.from.elements() != self.to.len() {
            let error = FabricError::length_mismatch(self.from.elements(), self.to.len());
            return Err(Refused::Failed(error, self));
        }
        fabric.begin(self, |op| op)
    }

    #[inline]
    fn notifies(&self) -> Option<Rank> {
        DirectOp::notifies(self)
    }
}

/// Reads elements of some rank's memory.
#[derive(Debug)]
pub struct Get<'a, T: Pod, D> {
    /// Source.
    pub from: &'a RemoteSpan<T>,
    /// Destination.
    pub to: D,
}

impl<T: Pod, D: GetSink<T>> Operation for Get<'_, T, D> {
    type Output = D;

    #[inline(always)]
    fn start(self, fabric: &Fabric) -> Result<Handle<D>, Refused<Self>> {
        if self.to.elements() != self.from.len() {
            let error = FabricError::length_mismatch(self.to.elements(), self.from.len());
            return Err(Refused::Failed(error, self));
        }
        fabric.begin(self, |op| op)
    }
}

/// Copies elements between the memory of any two ranks: see [`Fabric::copy`].
#[derive(Debug)]
pub struct Copy<'a, T: Pod> {
    /// Destination.
    pub to: &'a RemoteSpan<T>,
    /// Source.
    pub from: &'a RemoteSpan<T>,
}

impl<T: Pod> Operation for Copy<'_, T> {
    type Output = ();

    #[inline(always)]
    fn start(self, fabric: &Fabric) -> Result<Handle<()>, Refused<Self>> {
        if self.from.len() != self.to.len() {
            let error = FabricError::length_mismatch(self.from.len(), self.to.len());
            return Err(Refused::Failed(error, self));
        }
        fabric.begin(self, |op| op)
    }
}

/// Changes a word by a remote atomic; yields its previous value.
#[derive(Debug)]
pub struct Atomic<'a, W: AtomicWord> {
    /// The word.
    pub word: &'a RemoteWord<W>,
    /// The change.
    pub amo: Amo<W>,
}

impl<W: AtomicWord> Operation for Atomic<'_, W> {
    type Output = W;

    #[inline(always)]
    fn start(self, fabric: &Fabric) -> Result<Handle<W>, Refused<Self>> {
        fabric.begin(self, |op| op)
    }
}

/// Equal blocks at equal distances: block `i` starts `i * stride` bytes after the first, on both
/// sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Blocks {
    /// Number of blocks; at least 1.
    pub count: u32,
    /// Distance from the start of one block to the start of the next, in bytes.
    pub stride: u64,
}

impl Blocks {
    /// A single block, as in an ordinary operation.
    pub const ONE: Blocks = Blocks { count: 1, stride: 0 };

    /// Returns the number of bytes from the first byte of the first block to the last byte of the
    /// last, in blocks of `len` bytes; `None` if there is no block, or if the number overflows.
    #[inline]
    pub fn extent(self, len: usize) -> Option<usize> {
        let last = u64::from(self.count.checked_sub(1)?).checked_mul(self.stride)?;
        usize::try_from(last).ok()?.checked_add(len)
    }
}

/// Does nothing, in order with the other commands of the queue.
#[derive(Clone, Copy, Debug)]
pub struct Nop;

impl Operation for Nop {
    type Output = ();

    #[inline(always)]
    fn start(self, fabric: &Fabric) -> Result<Handle<()>, Refused<Self>> {
        fabric.begin(self, |op| op)
    }
}
