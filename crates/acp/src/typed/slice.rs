//! Consecutive elements.

use super::GlobalPtr;
use crate::{Acp, AcpError, GlobalAddress, Handle, Order, Result, address::MAX_REGION_BYTES};
use core::{
    fmt,
    ops::{Bound, RangeBounds},
};
use rdma_fabric::{FabricError, Pod, Rank};

/// Consecutive elements of any rank's memory: the address of the first, and their number: 16 bytes.
///
/// It is stored in global memory as [two words](GlobalSlice::to_words).
#[derive(PartialEq, Eq, Hash)]
pub struct GlobalSlice<T> {
    start: GlobalPtr<T>,
    len: usize,
}

impl<T: Pod> GlobalSlice<T> {
    /// Makes a slice of `len` elements that starts at `address`.
    ///
    /// # Errors
    /// [`AcpError::Misaligned`]; [`AcpError::OutOfBounds`] if they can't be in one region.
    #[inline]
    pub fn new(address: GlobalAddress, len: usize) -> Result<Self> {
        let start = GlobalPtr::new(address)?;
        let bytes = (len as u64).saturating_mul(size_of::<T>() as u64);
        match address.offset().saturating_add(bytes) <= MAX_REGION_BYTES {
            true => Ok(GlobalSlice { start, len }),
            false => Err(AcpError::out_of_bounds(address, bytes, MAX_REGION_BYTES)),
        }
    }

    /// Returns the address of the first byte.
    #[inline]
    pub const fn address(self) -> GlobalAddress {
        self.start.address()
    }

    /// Returns the first element.
    #[inline]
    pub const fn start(self) -> GlobalPtr<T> {
        self.start
    }

    /// Returns the rank whose memory contains the slice.
    #[inline]
    pub const fn rank(self) -> Rank {
        self.address().rank()
    }

    /// Returns the number of elements.
    #[inline]
    pub const fn len(self) -> usize {
        self.len
    }

    /// Returns whether the slice is empty.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Returns the size in bytes.
    #[inline]
    #[expect(clippy::arithmetic_side_effects, reason = "`new` has found that they fit into a region")]
    pub const fn bytes(self) -> usize {
        self.len * size_of::<T>()
    }

    /// Returns an element; `None` if the index is out of bounds.
    #[inline]
    pub fn get(self, index: usize) -> Option<GlobalPtr<T>> {
        if index < self.len { self.start.add(index).ok() } else { None }
    }

    /// Returns an element.
    ///
    /// # Errors
    /// [`AcpError::OutOfBounds`], with the slice's bounds, if the index is out of bounds.
    #[inline]
    pub fn at(self, index: usize) -> Result<GlobalPtr<T>> {
        self.get(index).ok_or_else(|| self.outside(index, 1))
    }

    /// Returns the elements of a range of indices.
    ///
    /// # Errors
    /// [`AcpError::OutOfBounds`], with the slice's bounds.
    pub fn slice(self, range: impl RangeBounds<usize>) -> Result<Self> {
        let start = match range.start_bound() {
            Bound::Included(&start) => Some(start),
            Bound::Excluded(&before) => before.checked_add(1),
            Bound::Unbounded => Some(0),
        };
        let end = match range.end_bound() {
            Bound::Included(&last) => last.checked_add(1),
            Bound::Excluded(&end) => Some(end),
            Bound::Unbounded => Some(self.len),
        };
        match (start, end) {
            (Some(start), Some(end)) if start <= end && end <= self.len => {
                // An empty slice may start at the end of a region.
                let first = if start == end { self.start } else { self.start.add(start)? };
                Ok(GlobalSlice { start: first, len: (start..end).len() })
            }
            (start, end) => {
                let start = start.unwrap_or(usize::MAX);
                Err(self.outside(start, end.unwrap_or(usize::MAX).saturating_sub(start)))
            }
        }
    }

    #[cold]
    fn outside(self, index: usize, elements: usize) -> AcpError {
        let size = size_of::<T>() as u64;
        let before = (index as u64).saturating_mul(size);
        let address = self.address().checked_add(before).unwrap_or(self.address());
        AcpError::out_of_bounds(address, (elements as u64).saturating_mul(size), self.bytes() as u64)
    }

    /// Returns the elements' pointers, in order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = GlobalPtr<T>> + DoubleEndedIterator {
        // In bounds, as checked when the slice was created.
        (0..self.len).map(move |index| self.start.add(index).unwrap_or(self.start))
    }

    /// Reads all elements.
    ///
    /// # Errors
    /// As [`Acp::read`]; [`AcpError::Fabric`] with [`FabricError::LengthMismatch`] if `into` has a
    /// different length.
    #[inline]
    pub async fn read(self, acp: &Acp, into: &mut [T]) -> Result<()> {
        self.same_length(into.len())?;
        acp.read(self.address(), into).await
    }

    /// Reads all elements into a new vector.
    ///
    /// # Errors
    /// As [`Acp::read`].
    pub async fn to_vec(self, acp: &Acp) -> Result<Vec<T>> {
        let mut elements = vec![T::zeroed(); self.len];
        acp.read(self.address(), &mut elements).await?;
        Ok(elements)
    }

    /// Writes all elements; returns when the write is visible.
    ///
    /// # Errors
    /// As [`GlobalSlice::read`].
    #[inline]
    pub async fn write(self, acp: &Acp, from: &[T]) -> Result<()> {
        self.same_length(from.len())?;
        acp.write(self.address(), from).await
    }

    /// Copies all elements to another slice of the same length, both of any rank, as [`Acp::copy`]
    /// does: returns when the copy is issued.
    ///
    /// # Errors
    /// As [`Acp::copy`]; [`AcpError::Fabric`] with [`FabricError::LengthMismatch`], with nothing
    /// issued, if the lengths differ.
    #[inline]
    pub async fn copy_to(self, acp: &Acp, to: Self, order: impl Into<Order>) -> Result<Handle> {
        self.same_length(to.len)?;
        acp.copy(to.address(), self.address(), self.bytes(), order).await
    }

    #[inline]
    fn same_length(self, len: usize) -> Result<()> {
        if len == self.len { Ok(()) } else { Err(FabricError::length_mismatch(len, self.len).into()) }
    }

    /// Returns the two words that represent this slice in global memory: address and length.
    #[inline]
    pub const fn to_words(self) -> [u64; 2] {
        [self.address().to_bits(), self.len as u64]
    }

    /// Restores a slice from [`GlobalSlice::to_words`]; `None` if the words do not encode one.
    pub fn from_words([address, len]: [u64; 2]) -> Option<Self> {
        Self::new(GlobalAddress::from_bits(address)?, usize::try_from(len).ok()?).ok()
    }
}

// Written by hand, because neither has a bound on `T`.

impl<T> Clone for GlobalSlice<T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for GlobalSlice<T> {}

impl<T> fmt::Debug for GlobalSlice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {:?}", self.len, self.start)
    }
}
