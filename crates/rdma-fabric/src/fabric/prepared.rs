//! Operations whose descriptor is built once and posted many times.

use super::{
    DirectOp, Fabric,
    direct::{put_now, same_length},
    operation_future::OperationFuture,
};
use crate::{
    Amo, AtomicWord, Handle, LocalSpan, Operation, Pod, Rank, Refused, RemoteSpan, RemoteWord, Result,
    op::{Atomic, Get, Put},
    provider::{Posted, Sink, Source},
};
use core::{fmt, future::Future};

/// The name of the software layer ([`Fabric::charge`]) for building a descriptor.
const LAYER: &str = "descriptor";

/// An operation whose descriptor is built once, to be posted any number of times, also while earlier
/// postings are in flight.
///
/// Each posting has the same effect as the plain operation: a put reads its source when it is
/// posted, and the ordering rules are the same. Only the target region, the lengths and the source
/// or destination are fixed. Dropping it does not cancel posted operations.
///
/// ```
/// use rdma_fabric::{Amo, Fabric, Prepared, RemoteWord, Result, op::Atomic};
///
/// async fn tickets(fabric: Fabric, counter: RemoteWord<u64>) -> Result<[u64; 3]> {
///     let mut draw = Prepared::new(&fabric, Atomic { word: &counter, amo: Amo::Add(1) }).await?;
///     let (first, second) = (draw.run().await?, draw.run().await?);
///     draw.set(Amo::Add(10));
///     Ok([first, second, draw.run().await?])
/// }
/// ```
#[derive(Clone)]
pub struct Prepared<D> {
    fabric: Fabric,
    descriptor: D,
}

impl<D: fmt::Debug> fmt::Debug for Prepared<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Prepared").field(&self.descriptor).finish()
    }
}

impl<D: Descriptor> Prepared<D> {
    /// Builds the descriptor of an operation that is to be posted many times: an [`Atomic`], or a
    /// [`Put`] from or [`Get`] into local registered memory ([`LocalSpan`]).
    ///
    /// If building descriptors takes CPU time in addition to posting, that time is spent here
    /// instead of in each posting: virtual time charges the platform's `software.descriptor`, which
    /// plain operations pay each time. If operations are executed directly, as on shared memory,
    /// there is no descriptor, and a posting costs the same as a plain operation.
    ///
    /// # Errors
    /// [`FabricError::LengthMismatch`](crate::FabricError::LengthMismatch). All other errors are
    /// reported when the operation is posted.
    pub async fn new<O: Preparable<Descriptor = D>>(fabric: &Fabric, op: O) -> Result<Self> {
        let descriptor = op.describe()?;
        fabric.charge(LAYER).await;
        Ok(Prepared { fabric: fabric.clone(), descriptor })
    }

    /// Posts the operation, if there is room. Never blocks.
    ///
    /// # Errors
    /// [`Refused`].
    #[inline(always)]
    pub fn try_post(&self) -> Result<Handle<<D::Posted<'_> as Operation>::Output>, Refused<()>> {
        self.descriptor.operation().start(&self.fabric).map_err(|refused| refused.map(drop))
    }

    /// Posts the operation, waiting for room if necessary.
    ///
    /// # Errors
    /// As [`Fabric::post`].
    #[inline(always)]
    pub async fn post(&self) -> Result<Handle<<D::Posted<'_> as Operation>::Output>> {
        self.fabric.post(self.descriptor.operation()).await
    }

    /// Posts the operation and waits until it is complete. For an atomic, returns the previous
    /// value.
    ///
    /// # Errors
    /// As [`Fabric::post`].
    #[inline(always)]
    pub fn run(&self) -> impl Future<Output = Result<D::Value>> {
        self.descriptor.run(&self.fabric)
    }
}

impl<W: AtomicWord> Prepared<AtomicDescriptor<W>> {
    /// Changes the atomic from the next posting on: operation and operand are fields of the
    /// descriptor, which the network interface reads when it is posted. This costs nothing.
    #[inline(always)]
    pub fn set(&mut self, amo: Amo<W>) {
        self.descriptor.amo = amo;
    }
}

mod sealed {
    /// Prevents other crates from defining operations that can be prepared.
    pub trait Sealed {}
}

/// An operation that [`Prepared::new`] accepts.
pub trait Preparable: sealed::Sealed {
    /// The descriptor that it becomes.
    type Descriptor: Descriptor;
    /// Performs the checks that are needed only once.
    ///
    /// # Errors
    /// Those of [`Prepared::new`].
    fn describe(self) -> Result<Self::Descriptor>;
}

/// A descriptor: everything that a posting needs, resolved.
pub trait Descriptor: sealed::Sealed {
    /// The operation that a posting starts.
    type Posted<'a>: Operation
    where
        Self: 'a;
    /// The result of [`Prepared::run`].
    type Value;
    /// Returns the operation to post.
    fn operation(&self) -> Self::Posted<'_>;
    /// Posts the operation and waits until it is complete.
    fn run<'a>(&'a self, fabric: &'a Fabric) -> impl Future<Output = Result<Self::Value>> + 'a;
}

/// The descriptor of an [`Atomic`].
#[derive(Clone, Debug)]
pub struct AtomicDescriptor<W: AtomicWord> {
    word: RemoteWord<W>,
    amo: Amo<W>,
}

impl<W: AtomicWord> sealed::Sealed for Atomic<'_, W> {}
impl<W: AtomicWord> sealed::Sealed for AtomicDescriptor<W> {}

impl<W: AtomicWord> Preparable for Atomic<'_, W> {
    type Descriptor = AtomicDescriptor<W>;

    fn describe(self) -> Result<AtomicDescriptor<W>> {
        Ok(AtomicDescriptor { word: RemoteWord::new(self.word.place().clone().prepared()), amo: self.amo })
    }
}

impl<W: AtomicWord> Descriptor for AtomicDescriptor<W> {
    type Posted<'a> = Atomic<'a, W>;
    type Value = W;

    #[inline(always)]
    fn operation(&self) -> Atomic<'_, W> {
        Atomic { word: &self.word, amo: self.amo }
    }

    #[inline(always)]
    fn run<'a>(&'a self, fabric: &'a Fabric) -> impl Future<Output = Result<W>> + 'a {
        OperationFuture::new(fabric, self.operation())
    }
}

/// The descriptor of a [`Put`] from local registered memory.
#[derive(Clone, Debug)]
pub struct PutDescriptor<T: Pod> {
    to: RemoteSpan<T>,
    from: LocalSpan<T>,
    notice: Option<u64>,
}

impl<T: Pod> sealed::Sealed for Put<'_, T, LocalSpan<T>> {}
impl<T: Pod> sealed::Sealed for PutDescriptor<T> {}

impl<T: Pod> Preparable for Put<'_, T, LocalSpan<T>> {
    type Descriptor = PutDescriptor<T>;

    fn describe(self) -> Result<PutDescriptor<T>> {
        same_length::<T>(self.from.len(), self.to.place())?;
        let to = RemoteSpan::new(self.to.place().clone().prepared(), self.to.len());
        Ok(PutDescriptor { to, from: self.from, notice: self.notice })
    }
}

impl<T: Pod> Descriptor for PutDescriptor<T> {
    type Posted<'a> = PreparedPut<'a, T>;
    type Value = ();

    #[inline(always)]
    fn operation(&self) -> PreparedPut<'_, T> {
        PreparedPut { put: self }
    }

    #[inline(always)]
    fn run<'a>(&'a self, fabric: &'a Fabric) -> impl Future<Output = Result<()>> + 'a {
        OperationFuture::new(fabric, self.operation())
    }
}

/// A posting of a [`PutDescriptor`]: a put that borrows source and target.
#[derive(Debug)]
pub struct PreparedPut<'a, T: Pod> {
    put: &'a PutDescriptor<T>,
}

impl<T: Pod> DirectOp for PreparedPut<'_, T> {
    type Out = ();
    #[inline(always)]
    fn try_direct(self, fabric: &Fabric) -> Result<(), Self> {
        let PutDescriptor { to, from, notice } = self.put;
        let direct = notice.is_none() && put_now(fabric, to.place(), Source::Place(from.place()));
        if direct { Ok(()) } else { Err(self) }
    }
    fn post(&mut self, fabric: &Fabric) -> Posted {
        let PutDescriptor { to, from, notice } = self.put;
        fabric.provider().put(to.place(), Source::Place(from.place()), *notice)
    }
    fn finish(self, _: u64) {}
    #[inline]
    fn notifies(&self) -> Option<Rank> {
        self.put.notice.map(|_| self.put.to.rank())
    }
}

impl<T: Pod> Operation for PreparedPut<'_, T> {
    type Output = ();

    #[inline(always)]
    fn start(self, fabric: &Fabric) -> Result<Handle<()>, Refused<Self>> {
        fabric.begin(self, |op| op)
    }

    fn notifies(&self) -> Option<Rank> {
        DirectOp::notifies(self)
    }
}

/// The descriptor of a [`Get`] into local registered memory.
#[derive(Clone, Debug)]
pub struct GetDescriptor<T: Pod> {
    from: RemoteSpan<T>,
    to: LocalSpan<T>,
}

impl<T: Pod> sealed::Sealed for Get<'_, T, LocalSpan<T>> {}
impl<T: Pod> sealed::Sealed for GetDescriptor<T> {}

impl<T: Pod> Preparable for Get<'_, T, LocalSpan<T>> {
    type Descriptor = GetDescriptor<T>;

    fn describe(self) -> Result<GetDescriptor<T>> {
        same_length::<T>(self.to.len(), self.from.place())?;
        let from = RemoteSpan::new(self.from.place().clone().prepared(), self.from.len());
        Ok(GetDescriptor { from, to: self.to })
    }
}

impl<T: Pod> Descriptor for GetDescriptor<T> {
    type Posted<'a> = Get<'a, T, LocalSpan<T>>;
    type Value = ();

    /// A handle holds the destination until the bytes have arrived.
    #[inline(always)]
    fn operation(&self) -> Get<'_, T, LocalSpan<T>> {
        Get { from: &self.from, to: self.to.clone() }
    }

    #[inline(always)]
    fn run<'a>(&'a self, fabric: &'a Fabric) -> impl Future<Output = Result<()>> + 'a {
        OperationFuture::new(fabric, BorrowedGet(self))
    }
}

/// A posting of a [`GetDescriptor`] that is awaited, so that no handle has to hold the destination.
struct BorrowedGet<'a, T: Pod>(&'a GetDescriptor<T>);

impl<T: Pod> DirectOp for BorrowedGet<'_, T> {
    type Out = ();
    #[inline(always)]
    fn try_direct(self, _: &Fabric) -> Result<(), Self> {
        Err(self)
    }
    fn post(&mut self, fabric: &Fabric) -> Posted {
        fabric.provider().get(self.0.from.place(), self.sink())
    }
    fn sink(&mut self) -> Sink<'_> {
        Sink::Place(self.0.to.place())
    }
    fn finish(self, _: u64) {}
}
