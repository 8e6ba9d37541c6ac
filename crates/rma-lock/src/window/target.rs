//! The operations of an epoch on one rank's memory.

use super::{
    core::{Core, range},
    op::{Op, UpdateForm, WindowElement},
    request::{Claim, Request, Transfer},
    update::Update,
};
use core::{fmt, sync::atomic::Ordering::Relaxed};
use rdma_fabric::{
    FabricError, LocalSpan, Pod, PutSource, Rank, RemoteAddr, RemoteSpan, Result,
    op::{Get, Put},
    provider::Source,
};
use std::sync::Arc;

/// The number of accumulates that may be in flight before a caller has to wait.
const MAX_UNFINISHED: usize = 64;

/// One rank's memory, as accessible in an epoch. Positions are elements, counted from 0.
///
/// Operations that return before they are complete ([`put`](Target::put),
/// [`get_into`](Target::get_into), [`accumulate`](Target::accumulate)) are completed by the next
/// flush or the end of the epoch, which also reports their errors.
///
/// Overlapping accesses by any ranks yield unspecified values but have no other effects.
/// Accumulates (all methods that need [`WindowElement`]s) are the exception: they are atomic per
/// element with respect to each other, and one rank's accumulates to the same element take effect
/// in the order in which it started them.
///
/// # Errors
/// All operations return [`FabricError::OutOfBounds`] and [`FabricError::LengthMismatch`], without
/// any effect; [`FabricError::StaleRegion`] if the target has dropped the window;
/// [`FabricError::PeerLost`].
pub struct Target<'e, T: Pod> {
    pub(super) core: &'e Arc<Core>,
    rank: Rank,
    /// The whole part of the rank.
    span: RemoteSpan<T>,
}

impl<T: Pod> fmt::Debug for Target<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({}, {} elements)", self.rank, self.span.len())
    }
}

impl<'e, T: Pod> Target<'e, T> {
    pub(super) fn new(core: &'e Arc<Core>, rank: Rank) -> Result<Self> {
        let (addr, elements) = core.memory.part(rank)?;
        Ok(Target { core, rank, span: core.fabric.remote_span(addr, elements)? })
    }

    /// Returns the rank whose memory is accessed.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// Returns the number of elements.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.span.len()
    }

    fn part(&self, at: usize, len: usize) -> Result<RemoteSpan<T>> {
        let range = range(at, len);
        self.core.memory.check(self.rank, &range)?;
        self.span.slice(range)
    }

    /// Writes elements, starting at element `at` (`MPI_Put`). Returns when the put is posted.
    ///
    /// # Errors
    /// See [`Target`].
    pub async fn put<S: PutSource<T>>(&self, at: usize, from: S) -> Result<()> {
        self.rput(at, from).await.map(drop)
    }

    /// Writes elements, starting at element `at` (`MPI_Rput`). The request returns the source when
    /// it may be reused.
    ///
    /// # Errors
    /// See [`Target`].
    pub async fn rput<S: PutSource<T>>(&self, at: usize, from: S) -> Result<Transfer<'_, S>> {
        let to = self.part(at, from.elements())?;
        if matches!(from.view(), Source::Place(_)) {
            self.core.reads_registered.store(true, Relaxed);
        }
        let put = Put { to: &to, from, notice: None };
        self.core.fabric.post(put).await.map(Transfer::new)
    }

    /// Reads as many elements as `into` has, starting at element `at`, and returns it filled
    /// (`MPI_Get`).
    ///
    /// # Errors
    /// See [`Target`].
    pub async fn get(&self, at: usize, into: Vec<T>) -> Result<Vec<T>>
    where
        T: Unpin,
    {
        self.rget(at, into).await?.await
    }

    /// Reads one element.
    ///
    /// # Errors
    /// See [`Target`].
    pub async fn get_one(&self, at: usize) -> Result<T>
    where
        T: Unpin,
    {
        let [element] = self.core.fabric.get(&self.part(at, 1)?, [T::zeroed()]).await?;
        Ok(element)
    }

    /// Reads as many elements as `into` has, starting at element `at` (`MPI_Rget`). The request
    /// returns `into` filled.
    ///
    /// # Errors
    /// See [`Target`].
    pub async fn rget(&self, at: usize, into: Vec<T>) -> Result<Transfer<'_, Vec<T>>>
    where
        T: Unpin,
    {
        let from = self.part(at, into.len())?;
        self.core.fabric.post(Get { from: &from, to: into }).await.map(Transfer::new)
    }

    /// Reads elements, starting at element `at`, into this rank's registered memory, such as
    /// [`crate::Window::own`] (`MPI_Get`). Returns when the get is posted; the elements have
    /// arrived after a flush, local or not.
    ///
    /// # Errors
    /// See [`Target`].
    pub async fn get_into(&self, at: usize, into: LocalSpan<T>) -> Result<()> {
        let from = self.part(at, into.len())?;
        let handle = self.core.fabric.post(Get { from: &from, to: into }).await?;
        self.core.in_flight.get_into(&self.core.fabric, self.rank, handle);
        Ok(())
    }
}

impl<'e, T: WindowElement> Target<'e, T> {
    fn update(&self, at: usize, form: UpdateForm, values: &[T], claimed: bool) -> Result<u64> {
        self.core.memory.check(self.rank, &range(at, values.len()))?;
        let start = self.span.addr();
        let addr = RemoteAddr { offset: start.offset + (at * size_of::<T>()) as u64, ..start };
        let values = values.iter().map(|value| value.bits()).collect();
        let update = Update::new(addr, size_of::<T>(), form, values);
        Ok(self.core.in_flight.update(&self.core.fabric, self.rank, update, claimed))
    }

    fn claim(&self, at: usize, form: UpdateForm, values: &[T]) -> Result<Claim<'_>> {
        Ok(Claim::new(self.core, self.update(at, form, values, true)?))
    }

    /// Combines each element, starting at element `at`, with a value (`MPI_Accumulate`). Returns
    /// when the accumulate is started.
    ///
    /// # Errors
    /// See [`Target`]; [`FabricError::Unsupported`] if `op` is not defined for these elements;
    /// [`FabricError::NoAtomics`] if the window's memory was registered without atomics.
    pub async fn accumulate(&self, at: usize, op: Op, values: &[T]) -> Result<()> {
        self.update(at, form::<T>(op)?, values, false)?;
        self.core.in_flight.fewer_than(&self.core.fabric, MAX_UNFINISHED).await
    }

    /// Combines each element, starting at element `at`, with a value (`MPI_Raccumulate`). The
    /// request completes when all elements have been combined.
    ///
    /// # Errors
    /// As [`Target::accumulate`].
    pub fn raccumulate(&self, at: usize, op: Op, values: &[T]) -> Result<Request<'_, ()>> {
        Ok(Request::new(self.claim(at, form::<T>(op)?, values)?, drop))
    }

    /// Combines each element, starting at element `at`, with a value, and returns the previous
    /// elements (`MPI_Get_accumulate`). Each element is read and changed atomically, but not all of
    /// them together.
    ///
    /// # Errors
    /// As [`Target::accumulate`].
    pub async fn get_accumulate(&self, at: usize, op: Op, values: &[T]) -> Result<Vec<T>> {
        self.claim(at, form::<T>(op)?, values)?.before().await.map(elements)
    }

    /// Combines each element, starting at element `at`, with a value; the request returns the
    /// previous elements (`MPI_Rget_accumulate`).
    ///
    /// # Errors
    /// As [`Target::accumulate`].
    pub fn rget_accumulate(&self, at: usize, op: Op, values: &[T]) -> Result<Request<'_, Vec<T>>> {
        Ok(Request::new(self.claim(at, form::<T>(op)?, values)?, elements))
    }

    /// Combines one element with a value, and returns its previous value (`MPI_Fetch_and_op`).
    ///
    /// # Errors
    /// As [`Target::accumulate`].
    pub async fn fetch_and_op(&self, at: usize, op: Op, value: T) -> Result<T> {
        one(self.claim(at, form::<T>(op)?, &[value])?).await
    }

    /// Stores `new` if the element has the bits of `expected`; returns its previous value
    /// (`MPI_Compare_and_swap`).
    ///
    /// # Errors
    /// As [`Target::accumulate`].
    pub async fn compare_and_swap(&self, at: usize, expected: T, new: T) -> Result<T> {
        one(self.claim(at, UpdateForm::Exchange(expected.bits()), &[new])?).await
    }
}

async fn one<T: WindowElement>(claim: Claim<'_>) -> Result<T> {
    claim.before().await.map(|before| T::of_bits(before[0]))
}

fn elements<T: WindowElement>(bits: Vec<u64>) -> Vec<T> {
    bits.into_iter().map(T::of_bits).collect()
}

fn form<T: WindowElement>(op: Op) -> Result<UpdateForm> {
    T::form(op).ok_or(FabricError::Unsupported { feature: &"bitwise and logical operations on floating point" })
}
