//! Operations as values, so that a refused one can come back.
//!
//! [`Fabric::try_post`] and [`Fabric::post`] take any [`Operation`]; the short methods of [`Fabric`]
//! (`put`, `get`, `fetch_add`, …) post and wait in one step.

use crate::{
    Amo, AtomicWord, FabricError, LocalSpan, PutOptions, Rank, Refused, RemoteSpan, RemoteWord, Result, fabric::Fabric,
};
use bytemuck::Pod;
use core::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

/// Where the bytes of a put come from.
#[derive(Debug)]
pub enum SourceView<'a, L> {
    /// A buffer that the operation owns.
    Bytes(&'a [u8]),
    /// Own registered memory.
    Registered(&'a L),
}

/// Where the bytes of a get go.
#[derive(Debug)]
pub enum SinkView<'a, L> {
    /// A buffer that the operation owns.
    Bytes(&'a mut [u8]),
    /// Own registered memory.
    Registered(&'a L),
}

/// What a put may take its elements from: a `Vec<T>`, a `Box<[T]>`, an array (for short puts, which
/// Tofu carries inside the descriptor), or a [`LocalSpan`] of registered memory. It comes back when the
/// put is complete.
///
/// No slice is one: a put may still read its source when the future that posted it has been dropped.
///
/// ```compile_fail,E0277
/// # use rdma_fabric::{Fabric, RemoteSpan, Result};
/// async fn send<F: Fabric>(fabric: F, to: RemoteSpan<F, u64>, values: &[u64]) -> Result<()> {
///     fabric.put(&to, values).await.map(drop)
/// }
/// ```
///
/// Owned, it can be put:
///
/// ```
/// # use rdma_fabric::{Fabric, RemoteSpan, Result};
/// async fn send<F: Fabric>(fabric: F, to: RemoteSpan<F, u64>, values: &[u64]) -> Result<Vec<u64>> {
///     fabric.put(&to, values.to_vec()).await
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be the source of a put of `{T}`",
    label = "not owned, or not made of `{T}`",
    note = "a put owns its source until it is complete, and gives it back: pass an array, a `Vec<{T}>` (`slice.to_vec()`), a `Box<[{T}]>`, or a `LocalSpan` of own registered memory"
)]
pub trait PutSource<F: Fabric, T: Pod>: Unpin + 'static {
    /// Number of elements.
    fn elements(&self) -> usize;
    /// The bytes.
    fn view(&self) -> SourceView<'_, F::Loc>;
}

/// What a get may deliver to: a `Vec<T>`, a `Box<[T]>`, an array, or a [`LocalSpan`]. The number of
/// its elements says how much to get.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be where a get of `{T}` arrives",
    label = "not owned, or not made of `{T}`",
    note = "a get owns its buffer until it is complete, and gives it back filled: pass an array, a `Vec<{T}>` (`vec![…; n]`), a `Box<[{T}]>`, or a `LocalSpan` of own registered memory"
)]
pub trait GetSink<F: Fabric, T: Pod>: Unpin + 'static {
    /// Number of elements.
    fn elements(&self) -> usize;
    /// The bytes.
    fn view(&mut self) -> SinkView<'_, F::Loc>;
}

macro_rules! owned_buffer {
    ($([$($generics:tt)*] $buffer:ty),*) => {$(
        impl<F: Fabric, T: Pod + Unpin, $($generics)*> PutSource<F, T> for $buffer {
            #[inline(always)]
            fn elements(&self) -> usize { self.len() }
            #[inline(always)]
            fn view(&self) -> SourceView<'_, F::Loc> { SourceView::Bytes(bytemuck::cast_slice(&self[..])) }
        }
        impl<F: Fabric, T: Pod + Unpin, $($generics)*> GetSink<F, T> for $buffer {
            #[inline(always)]
            fn elements(&self) -> usize { self.len() }
            #[inline(always)]
            fn view(&mut self) -> SinkView<'_, F::Loc> { SinkView::Bytes(bytemuck::cast_slice_mut(&mut self[..])) }
        }
    )*};
}
owned_buffer!([] Vec<T>, [] Box<[T]>, [const N: usize] [T; N]);

impl<F: Fabric, T: Pod> PutSource<F, T> for LocalSpan<F, T> {
    #[inline(always)]
    fn elements(&self) -> usize {
        self.len()
    }
    #[inline(always)]
    fn view(&self) -> SourceView<'_, F::Loc> {
        SourceView::Registered(self.loc())
    }
}

impl<F: Fabric, T: Pod> GetSink<F, T> for LocalSpan<F, T> {
    #[inline(always)]
    fn elements(&self) -> usize {
        self.len()
    }
    #[inline(always)]
    fn view(&mut self) -> SinkView<'_, F::Loc> {
        SinkView::Registered(self.loc())
    }
}

/// Something that can be posted.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an operation that can be posted",
    note = "operations are `op::Put`, `op::Get`, `op::Atomic` and `op::Nop`; the methods of `Fabric` post and wait in one step"
)]
pub trait Operation<F: Fabric>: Sized + Unpin {
    /// What its handle yields.
    type Output: Unpin + 'static;

    /// Post it through `fabric`, or get it back.
    ///
    /// # Errors
    /// [`Refused::Full`] when there is no room now, [`Refused::Failed`] when it is impossible.
    fn start(self, fabric: &F) -> Result<F::Handle<Self::Output>, Refused<Self>>;

    /// Whose notice queue it needs room in, if any.
    fn notifies(&self) -> Option<Rank> {
        None
    }
}

/// Write elements into some rank's memory.
#[derive(Debug)]
pub struct Put<'a, F: Fabric, T: Pod, S> {
    /// Where to.
    pub to: &'a RemoteSpan<F, T>,
    /// What.
    pub from: S,
    /// Notice and session advance.
    pub options: PutOptions,
}

impl<F: Fabric, T: Pod, S: PutSource<F, T>> Operation<F> for Put<'_, F, T, S> {
    type Output = S;

    #[inline(always)]
    fn start(self, fabric: &F) -> Result<F::Handle<S>, Refused<Self>> {
        let Put { to, from, options } = self;
        if from.elements() != to.len() {
            let error = FabricError::LengthMismatch { have: from.elements(), want: to.len() };
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
pub struct Get<'a, F: Fabric, T: Pod, D> {
    /// Where from.
    pub from: &'a RemoteSpan<F, T>,
    /// Where to.
    pub to: D,
}

impl<F: Fabric, T: Pod, D: GetSink<F, T>> Operation<F> for Get<'_, F, T, D> {
    type Output = D;

    #[inline(always)]
    fn start(self, fabric: &F) -> Result<F::Handle<D>, Refused<Self>> {
        let Get { from, to } = self;
        if to.elements() != from.len() {
            let error = FabricError::LengthMismatch { have: to.elements(), want: from.len() };
            return Err(Refused::Failed(error, Get { from, to }));
        }
        fabric.try_get(from, to).map_err(|refused| refused.map(|to| Get { from, to }))
    }
}

/// A remote atomic; yields the value before.
#[derive(Debug)]
pub struct Atomic<'a, F: Fabric, W: AtomicWord> {
    /// The word.
    pub word: &'a RemoteWord<F, W>,
    /// What to do to it.
    pub amo: Amo<W>,
}

impl<F: Fabric, W: AtomicWord> Operation<F> for Atomic<'_, F, W> {
    type Output = W;

    #[inline(always)]
    fn start(self, fabric: &F) -> Result<F::Handle<W>, Refused<Self>> {
        fabric.try_atomic(self.word, self.amo).map_err(|refused| refused.map(|()| self))
    }
}

/// Nothing, in order with the other commands of the queue.
#[derive(Clone, Copy, Debug)]
pub struct Nop;

impl<F: Fabric> Operation<F> for Nop {
    type Output = ();

    #[inline(always)]
    fn start(self, fabric: &F) -> Result<F::Handle<()>, Refused<Self>> {
        fabric.try_nop().map_err(|refused| refused.map(|()| Nop))
    }
}

/// Tries to start an operation when first polled; if there is no room, goes on with the future that `otherwise` makes of it.
///
/// The rare wait for room is boxed: it would make every operation's future large, and moving that costs more than a short
/// operation itself. Not an `async` block, whose poll the compiler may leave out of line.
pub(crate) struct Starting<'a, F, Op, Otherwise, Waiting> {
    fabric: &'a F,
    /// What to start, and what to do when there is no room; until the first poll.
    op: Option<(Op, Otherwise)>,
    waiting: Option<Pin<Box<Waiting>>>,
}

/// The [`Starting`] that waits for room in the target's queue.
macro_rules! starting {
    ($fabric:expr, $op:expr) => {
        $crate::op::Starting::new($fabric, $op, |fabric: &Self, mut op| async move {
            loop {
                fabric.room(op.notifies()).await?;
                op = match op.start(fabric) {
                    Ok(handle) => return Ok(handle),
                    Err(Refused::Failed(error, _)) => return Err(error),
                    Err(Refused::Full(op)) => op,
                };
            }
        })
    };
}
pub(crate) use starting;

impl<'a, F: Fabric, Op: Operation<F>, Otherwise, Waiting> Starting<'a, F, Op, Otherwise, Waiting>
where
    Otherwise: FnOnce(&'a F, Op) -> Waiting,
    Waiting: Future<Output = Result<F::Handle<Op::Output>>>,
{
    #[inline(always)]
    pub(crate) fn new(fabric: &'a F, op: Op, otherwise: Otherwise) -> Self {
        Starting { fabric, op: Some((op, otherwise)), waiting: None }
    }
}

// Only the boxed future is pinned.
impl<F, Op, Otherwise, Waiting> Unpin for Starting<'_, F, Op, Otherwise, Waiting> {}

impl<'a, F: Fabric, Op: Operation<F>, Otherwise, Waiting> Future for Starting<'a, F, Op, Otherwise, Waiting>
where
    Otherwise: FnOnce(&'a F, Op) -> Waiting,
    Waiting: Future<Output = Result<F::Handle<Op::Output>>>,
{
    type Output = Result<F::Handle<Op::Output>>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some((op, otherwise)) = self.op.take() {
            match op.start(self.fabric) {
                Ok(handle) => return Poll::Ready(Ok(handle)),
                Err(Refused::Failed(error, _)) => return Poll::Ready(Err(error)),
                Err(Refused::Full(op)) => self.waiting = Some(Box::pin(otherwise(self.fabric, op))),
            }
        }
        let waiting = self.waiting.as_mut().expect("a future is not polled after its end");
        waiting.as_mut().poll(cx)
    }
}

/// [`Starting`], and then the operation's handle: posts when first polled and waits for the end.
pub(crate) struct Performing<'a, F: Fabric, Op: Operation<F>, Otherwise, Waiting> {
    starting: Starting<'a, F, Op, Otherwise, Waiting>,
    handle: Option<F::Handle<Op::Output>>,
}

impl<'a, F: Fabric, Op: Operation<F>, Otherwise, Waiting> Performing<'a, F, Op, Otherwise, Waiting> {
    #[inline(always)]
    pub(crate) fn new(starting: Starting<'a, F, Op, Otherwise, Waiting>) -> Self {
        Performing { starting, handle: None }
    }
}

// As `Starting`; handles are `Unpin`.
impl<F: Fabric, Op: Operation<F>, Otherwise, Waiting> Unpin for Performing<'_, F, Op, Otherwise, Waiting> {}

impl<'a, F: Fabric, Op: Operation<F>, Otherwise, Waiting> Future for Performing<'a, F, Op, Otherwise, Waiting>
where
    Otherwise: FnOnce(&'a F, Op) -> Waiting,
    Waiting: Future<Output = Result<F::Handle<Op::Output>>>,
{
    type Output = Result<Op::Output>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut handle = match self.handle.take() {
            Some(handle) => handle,
            None => match Pin::new(&mut self.starting).poll(cx) {
                Poll::Ready(Ok(handle)) => handle,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            },
        };
        let outcome = Pin::new(&mut handle).poll(cx);
        if outcome.is_pending() {
            self.handle = Some(handle);
        }
        outcome
    }
}
