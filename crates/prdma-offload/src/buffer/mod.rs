//! Registered memory that requests send from and receive into.

mod between;
mod claims;
mod in_place;
mod view;
mod width;

pub(crate) use between::{copy, copy_runs};
pub(crate) use claims::{ClaimSet, Use};
pub(crate) use in_place::{data_handle, lends, tables_handle, words_handle};
pub use view::{Element, Rows, RowsMut, View, ViewMut};
pub(crate) use width::{Cells, Width, with_width};

use crate::{
    PrdmaError, Result,
    init::Block,
    layout::{Layout, Runs},
};
use claims::{ClaimTable, NoViews};
use core::{
    fmt,
    marker::PhantomData,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};
use rdma_fabric::{Fabric, FabricError, LocalSpan, LocalWord, Mapped, Pod, Region, RegionKey, provider::Loan};
use std::sync::Arc;

/// `len` elements of registered memory, initially zero. Clones refer to the same memory.
///
/// A program reads and writes it by copying, or through lent [views](Buffer::view). While a request
/// is active, the bytes that it sends can only be read, and those that it receives cannot be
/// accessed at all: [`crate::PrdmaError::InUse`]. All other bytes can be accessed, so the interior
/// of an array can be computed while its boundary is exchanged.
///
/// ```
/// use prdma_offload::Buffer;
/// use rdma_fabric::{Fabric, ProgramResult};
///
/// async fn fill(fabric: Fabric) -> ProgramResult<()> {
///     let field = Buffer::<f64>::in_place(&fabric, 8)?;
///     field.write(6, &[1.0, 2.0])?;
///     field.view_mut(0..2)?.fill(3.0);
///     assert_eq!(field.view(0..8)?.iter().sum::<f64>(), 9.0);
///     assert!(field.write(7, &[0.0; 2]).is_err()); // beyond the end
///     Ok(())
/// }
/// # checks::documented::run(2, &fill);
/// ```
pub struct Buffer<T> {
    pub(crate) memory: Memory,
    len: usize,
    elements: PhantomData<fn() -> T>,
}

/// A buffer of any element type.
pub(crate) struct Memory {
    allocation: Arc<Allocation>,
}

struct Allocation {
    /// The handle that opens `region`.
    fabric: Fabric,
    /// `None` only while the allocation is dropped.
    region: Option<Region>,
    /// The mapping of the region, if it is lent in place.
    mapped: Option<Mapped>,
    /// The requested number of bytes; the region may have more.
    bytes: usize,
    width: Width,
    claims: ClaimTable,
    /// Whether the memory may be accessed without a claim: the program has the key, or a request has failed, or was
    /// dropped while active.
    is_exposed: AtomicBool,
}

impl<T> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        Buffer { memory: self.memory.clone(), len: self.len, elements: PhantomData }
    }
}

impl Clone for Memory {
    fn clone(&self) -> Self {
        Memory { allocation: self.allocation.clone() }
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes in {:?}", self.bytes(), self.region().key())
    }
}

impl<T> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} elements in {:?})", self.len, self.memory.region().key())
    }
}

#[deny(clippy::arithmetic_side_effects)]
impl<T: Pod> Buffer<T> {
    /// Allocates `len` elements.
    ///
    /// # Errors
    /// As [`Fabric::alloc`].
    pub fn new(fabric: &Fabric, len: usize) -> Result<Self> {
        let bytes = len.saturating_mul(size_of::<T>());
        Ok(Buffer { memory: Memory::new(fabric, bytes, Width::of::<T>())?, len, elements: PhantomData })
    }

    /// Allocates `len` elements whose [views](Buffer::view) are the memory itself, where the rank's
    /// own memory is mapped ([`rdma_fabric::Caps::locked_memory`]). Elsewhere it is an ordinary
    /// buffer, whose views are copies or, in virtual time, loans.
    ///
    /// Such memory has no key for other ranks. Where it is mapped, neighbours put into it for
    /// requests of the form [`Cpu`](crate::Form::Cpu); other requests of a
    /// [`Neighbourhood`](crate::Neighbourhood) pack its blocks at start and unpack them at wait.
    /// All ranks of the job must run over the same provider, wrapped by the same layers.
    ///
    /// # Errors
    /// As [`Fabric::alloc`].
    pub fn in_place(fabric: &Fabric, len: usize) -> Result<Self> {
        let bytes = len.saturating_mul(size_of::<T>());
        let memory = match data_handle(fabric)? {
            Some(handle) => Memory::in_place(&handle, bytes, Width::of::<T>())?,
            None => Memory::new(fabric, bytes, Width::of::<T>())?,
        };
        Ok(Buffer { memory, len, elements: PhantomData })
    }

    /// Returns the key with which other ranks access the memory; `None` if it has none, because it
    /// is lent [in place](Buffer::in_place). A program that passes it on is responsible for writes
    /// through it. `rma_lock::Window::over_region` makes a window of the buffer with it. In virtual time, ranks that use
    /// it while a writing view from before this call exists read zeros, and their writes are lost.
    pub fn key(&self) -> Option<RegionKey> {
        (!self.memory.is_in_place()).then(|| {
            self.memory.expose();
            self.memory.region().key()
        })
    }

    /// Returns the number of elements.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Copies the elements starting at `start` into `into`.
    ///
    /// # Errors
    /// [`crate::PrdmaError::InUse`]; [`rdma_fabric::FabricError::OutOfBounds`].
    pub fn read(&self, start: usize, into: &mut [T]) -> Result<()> {
        let allocation = &self.memory.allocation;
        allocation.inside(start, into)?;
        let at = start.saturating_mul(size_of::<T>());
        let _no_views = allocation.may(Use::Send, at, size_of_val(into))?;
        let span = allocation.region().span::<T>(&allocation.fabric, at, into.len())?;
        Ok(allocation.fabric.read(&span, into)?)
    }

    /// Copies `from` to the elements starting at `start`.
    ///
    /// # Errors
    /// As [`Buffer::read`].
    pub fn write(&self, start: usize, from: &[T]) -> Result<()> {
        let allocation = &self.memory.allocation;
        allocation.inside(start, from)?;
        let at = start.saturating_mul(size_of::<T>());
        let _no_views = allocation.may(Use::Receive, at, size_of_val(from))?;
        let span = allocation.region().span::<T>(&allocation.fabric, at, from.len())?;
        Ok(allocation.fabric.write(&span, from)?)
    }

    /// Returns all elements.
    ///
    /// # Errors
    /// As [`Buffer::read`].
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut all = vec![T::zeroed(); self.len];
        self.read(0, &mut all)?;
        Ok(all)
    }

    /// Makes a block of the buffer.
    pub(crate) fn block(&self, layout: Layout) -> Block {
        Block { memory: self.memory.clone(), layout }
    }
}

#[deny(clippy::arithmetic_side_effects)]
impl Allocation {
    fn region(&self) -> &Region {
        self.region.as_ref().expect("taken only when it is dropped")
    }

    /// Checks that the program may copy bytes now. Where they are lent in place, no view is made
    /// before the returned guard is dropped; elsewhere the rank's only thread copies.
    ///
    /// # Errors
    /// [`PrdmaError::InUse`].
    fn may(&self, wanted: Use, start: usize, len: usize) -> Result<Option<NoViews<'_>>> {
        let no_views = self.claims.may(wanted, start, len)?;
        Ok(self.mapped.is_some().then_some(no_views))
    }

    /// Checks that `elements`, starting at index `start`, are inside the buffer.
    fn inside<T>(&self, start: usize, elements: &[T]) -> Result<()> {
        self.contains(start.saturating_mul(size_of::<T>()) as u64, size_of_val(elements) as u64)
    }

    /// Checks that `len` bytes, starting at byte `offset`, are inside the buffer.
    fn contains(&self, offset: u64, len: u64) -> Result<()> {
        if offset.checked_add(len).is_some_and(|end| end <= self.bytes as u64) {
            return Ok(());
        }
        let addr = self.region().at(self.fabric.rank(), offset);
        Err(FabricError::out_of_bounds(addr, len, self.bytes as u64).into())
    }

    /// Borrows the memory for a view of elements at `layout` from a fabric that lends it; returns also the bytes that
    /// were asked for. `None` if the view has to be a copy: one that writes borrows all elements or none.
    fn borrowed<T: Pod>(&self, layout: &Layout, writes: bool) -> Result<Option<(Loan, LocalSpan<u64>)>> {
        let Some(lender) = self.fabric.provider().lender() else { return Ok(None) };
        let is_part = layout.bytes() != self.bytes as u64;
        let is_aligned = align_of::<T>() <= align_of::<u64>();
        if layout.bytes() == 0 || !is_aligned || writes && (is_part || self.is_exposed.load(Relaxed)) {
            return Ok(None);
        }
        let (start, end) = (layout.offset as usize / 8, (layout.end() as usize).div_ceil(8));
        let span = self.region().span::<u64>(&self.fabric, start.saturating_mul(8), end.saturating_sub(start))?;
        Ok(lender.lend(span.place(), writes).map(|loan| (loan, span)))
    }

    /// Gives back what a writing view has borrowed.
    fn give_back(&self, span: &LocalSpan<u64>, loan: Option<Loan>) {
        if let (Some(lender), Some(loan)) = (self.fabric.provider().lender(), loan) {
            lender.give_back(span.place(), loan);
        }
    }

    /// Replaces the content of `out` with the bytes of `runs`, one after the other.
    fn gather(&self, runs: Runs, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        with_width!(self.width, W => Cells::<W>::gather(&self.fabric, self.region(), runs, out)?);
        Ok(())
    }

    /// Copies the bytes of `runs`, one after the other, to `into`, which has their total length.
    fn gather_into(&self, runs: Runs, into: &mut [u8]) -> Result<()> {
        with_width!(self.width, W => Cells::<W>::gather_into(&self.fabric, self.region(), runs, into)?);
        Ok(())
    }

    /// Writes `bytes`, one after the other, to the bytes of `runs`.
    fn scatter(&self, runs: Runs, bytes: &[u8]) -> Result<()> {
        with_width!(self.width, W => Cells::<W>::scatter(&self.fabric, self.region(), runs, bytes)?);
        Ok(())
    }
}

impl Drop for Allocation {
    /// Never frees memory that neighbours may still write.
    fn drop(&mut self) {
        if self.claims.is_abandoned()
            && let Some(region) = self.region.take()
        {
            region.abandon(&self.fabric);
        }
    }
}

#[deny(clippy::arithmetic_side_effects)]
impl Memory {
    /// Allocates zeroed bytes, which are accessed in cells of `width`.
    pub(crate) fn new(fabric: &Fabric, bytes: usize, width: Width) -> Result<Self> {
        Memory::of(fabric, bytes, width, |_| Ok(None))
    }

    /// Allocates zeroed bytes that can be lent, with a handle made by [`data_handle`].
    fn in_place(handle: &Fabric, bytes: usize, width: Width) -> Result<Self> {
        Memory::of(handle, bytes, width, |region| in_place::mapped(handle, region).map(Some))
    }

    fn of(
        fabric: &Fabric,
        bytes: usize,
        width: Width,
        mapped: impl FnOnce(&Region) -> rdma_fabric::Result<Option<Mapped>>,
    ) -> Result<Self> {
        // An overflowing size exceeds any provider's memory: the provider's error reports the
        // limit.
        let region = fabric.alloc(bytes.max(1).checked_next_multiple_of(8).unwrap_or(usize::MAX))?;
        let mapped = mapped(&region)?;
        let (fabric, region, claims) = (fabric.clone(), Some(region), ClaimTable::default());
        let is_exposed = AtomicBool::new(false);
        Ok(Memory { allocation: Arc::new(Allocation { fabric, region, mapped, bytes, width, claims, is_exposed }) })
    }

    pub(crate) fn region(&self) -> &Region {
        self.allocation.region()
    }

    pub(crate) fn width(&self) -> Width {
        self.allocation.width
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.allocation.bytes as u64
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.allocation, &other.allocation)
    }

    /// Resolves the word at byte `offset`.
    ///
    /// # Errors
    /// As [`Fabric::remote_span`].
    pub(crate) fn word(&self, offset: u64) -> Result<LocalWord<u64>> {
        Ok(self.region().word(&self.allocation.fabric, offset as usize)?)
    }

    /// Resolves elements that start at byte `offset`.
    ///
    /// # Errors
    /// As [`Fabric::remote_span`].
    pub(crate) fn span<W: Pod>(&self, offset: u64, elements: usize) -> Result<LocalSpan<W>> {
        Ok(self.region().span(&self.allocation.fabric, offset as usize, elements)?)
    }

    /// Returns whether the memory has no key, and is lent in place.
    pub(crate) fn is_in_place(&self) -> bool {
        self.allocation.mapped.is_some()
    }

    /// Checks that the memory, if it is lent in place, is lent by `fabric`: in another job, its key
    /// may identify different memory.
    ///
    /// # Errors
    /// [`FabricError::NotMapped`].
    pub(crate) fn is_lent_by(&self, fabric: &Fabric) -> Result<()> {
        if !self.is_in_place() {
            return Ok(());
        }
        let (rank, region) = (fabric.rank(), self.region());
        let handle = data_handle(fabric)?.ok_or(FabricError::NotMapped { rank, region: region.key() })?;
        Ok(in_place::mapped(&handle, region).map(drop)?)
    }

    /// Checks that the memory may be opened to unguarded writes by other ranks, in `what`.
    ///
    /// # Errors
    /// [`PrdmaError::InPlace`].
    pub(crate) fn open_to_all(&self, what: &'static str) -> Result<()> {
        if self.is_in_place() { Err(PrdmaError::InPlace { what }) } else { Ok(()) }
    }

    fn claims(&self) -> &ClaimTable {
        &self.allocation.claims
    }

    /// Records that the memory may be accessed without a claim from now on.
    fn expose(&self) {
        self.allocation.is_exposed.store(true, Relaxed);
    }

    /// Replaces the content of `out` with the bytes of `runs`, one after the other.
    pub(crate) fn gather(&self, runs: Runs, out: &mut Vec<u8>) -> Result<()> {
        self.allocation.gather(runs, out)
    }

    /// Writes `bytes`, one after the other, to the bytes of `runs`.
    pub(crate) fn scatter(&self, runs: Runs, bytes: &[u8]) -> Result<()> {
        self.allocation.scatter(runs, bytes)
    }
}
