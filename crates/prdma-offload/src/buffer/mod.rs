//! Registered memory that requests send from and receive into.

mod between;
mod claims;
mod width;

pub(crate) use between::copy;
pub(crate) use claims::{ClaimSet, Use};
pub(crate) use width::{Cells, Width, with_width};

use crate::{Result, init::Block, layout::Layout};
use claims::{Claim, ClaimTable};
use core::{fmt, marker::PhantomData};
use rdma_fabric::{Fabric, FabricError, Pod, Region};
use std::sync::Arc;

/// `len` elements of registered memory, zeroed at first. Cloning yields the same memory.
///
/// A program reads and writes it by copying. While a request is active, the bytes that it sends can
/// only be read, and those that it receives can't be accessed at all: [`crate::PrdmaError::InUse`].
/// All other bytes can be, so the inside of an array can be computed while its border is exchanged.
pub struct Buffer<T> {
    pub(crate) memory: Memory,
    len: usize,
    elements: PhantomData<fn() -> T>,
}

/// A buffer, whatever its elements are.
pub(crate) struct Memory {
    allocation: Arc<Allocation>,
}

struct Allocation {
    fabric: Fabric,
    region: Region,
    /// The bytes that were asked for; the region may have more.
    bytes: usize,
    width: Width,
    claims: ClaimTable,
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

impl<T> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} elements in {:?})", self.len, self.memory.region().key())
    }
}

impl<T: Pod> Buffer<T> {
    /// Allocates `len` elements.
    ///
    /// # Errors
    /// As [`Fabric::alloc`].
    pub fn new(fabric: &Fabric, len: usize) -> Result<Self> {
        let bytes = len.saturating_mul(size_of::<T>());
        Ok(Buffer { memory: Memory::new(fabric, bytes, Width::of::<T>())?, len, elements: PhantomData })
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
        allocation.claims.may(Use::Receive, start * size_of::<T>(), size_of_val(into))?;
        let span = allocation.region.span::<T>(&allocation.fabric, start * size_of::<T>(), into.len())?;
        Ok(allocation.fabric.read(&span, into)?)
    }

    /// Copies `from` to the elements starting at `start`.
    ///
    /// # Errors
    /// As [`Buffer::read`].
    pub fn write(&self, start: usize, from: &[T]) -> Result<()> {
        let allocation = &self.memory.allocation;
        allocation.inside(start, from)?;
        allocation.claims.may(Use::Send, start * size_of::<T>(), size_of_val(from))?;
        let span = allocation.region.span::<T>(&allocation.fabric, start * size_of::<T>(), from.len())?;
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

impl Allocation {
    /// Checks that `elements`, starting at number `start`, are inside the buffer.
    fn inside<T>(&self, start: usize, elements: &[T]) -> Result<()> {
        let (offset, len) = (start.saturating_mul(size_of::<T>()), size_of_val(elements));
        if offset.checked_add(len).is_some_and(|end| end <= self.bytes) {
            return Ok(());
        }
        let addr = self.region.at(self.fabric.rank(), offset as u64);
        Err(FabricError::out_of_bounds(addr, len as u64, self.bytes as u64).into())
    }
}

impl Memory {
    /// Allocates zeroed bytes, which are accessed in cells of `width`.
    pub(crate) fn new(fabric: &Fabric, bytes: usize, width: Width) -> Result<Self> {
        let region = fabric.alloc(bytes.max(1).next_multiple_of(8))?;
        let claims = ClaimTable::default();
        Ok(Memory { allocation: Arc::new(Allocation { fabric: fabric.clone(), region, bytes, width, claims }) })
    }

    pub(crate) fn region(&self) -> &Region {
        &self.allocation.region
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

    /// Enters what a request will do with the memory.
    pub(crate) fn claim(&self, claim: Arc<Claim>) {
        self.allocation.claims.enter(claim);
    }

    /// Replaces the content of `out` with the bytes of `layout`, one after the other.
    pub(crate) fn gather(&self, layout: &Layout, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        with_width!(self.width(), W => Cells::<W>::gather(&self.allocation.fabric, &self.allocation.region, layout.runs(), out)?);
        Ok(())
    }

    /// Writes `bytes`, one after the other, to the bytes of `layout`.
    pub(crate) fn scatter(&self, layout: &Layout, bytes: &[u8]) -> Result<()> {
        with_width!(self.width(), W => Cells::<W>::scatter(&self.allocation.fabric, &self.allocation.region, layout.runs(), bytes)?);
        Ok(())
    }
}
