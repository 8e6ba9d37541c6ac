//! One element.

use super::{GlobalAtomic, GlobalSlice, Link};
use crate::{Acp, AcpError, GlobalAddress, Handle, Order, Result, address::MAX_REGION_BYTES};
use core::{cmp::Ordering, fmt, future::Future, hash, marker::PhantomData};
use rdma_fabric::{AtomicWord, Pod, Rank};

/// The address of an element in any rank's memory, aligned for the element: 8 bytes.
///
/// It is stored in global memory as a [`Link`].
#[repr(transparent)]
pub struct GlobalPtr<T> {
    address: GlobalAddress,
    element: PhantomData<T>,
}

impl<T> GlobalPtr<T> {
    /// Returns the address of the first byte.
    #[inline]
    pub const fn address(self) -> GlobalAddress {
        self.address
    }

    /// Returns the rank whose memory this is.
    #[inline]
    pub const fn rank(self) -> Rank {
        self.address.rank()
    }
}

impl<T: Pod> GlobalPtr<T> {
    /// Makes a pointer.
    ///
    /// # Errors
    /// [`AcpError::Misaligned`] if the address is not aligned for a `T`.
    #[inline]
    pub fn new(address: GlobalAddress) -> Result<Self> {
        match address.offset().is_multiple_of(align_of::<T>() as u64) {
            true => Ok(GlobalPtr { address, element: PhantomData }),
            false => Err(AcpError::Misaligned { address, align: align_of::<T>() as u8 }),
        }
    }

    /// Returns the pointer `elements` elements further on.
    ///
    /// # Errors
    /// [`AcpError::OutOfBounds`] if it can't be in the same region.
    #[inline]
    #[allow(clippy::should_implement_trait, reason = "as of pointers")]
    pub fn add(self, elements: usize) -> Result<Self> {
        self.moved(elements, GlobalAddress::checked_add)
    }

    /// Returns the pointer `elements` elements back.
    ///
    /// # Errors
    /// As [`GlobalPtr::add`].
    #[inline]
    #[allow(clippy::should_implement_trait, reason = "as of pointers")]
    pub fn sub(self, elements: usize) -> Result<Self> {
        self.moved(elements, GlobalAddress::checked_sub)
    }

    #[inline]
    fn moved(self, elements: usize, by: impl Fn(GlobalAddress, u64) -> Option<GlobalAddress>) -> Result<Self> {
        let bytes = (elements as u64).saturating_mul(size_of::<T>() as u64);
        let address = by(self.address, bytes);
        let address = address.ok_or_else(|| AcpError::out_of_bounds(self.address, bytes, MAX_REGION_BYTES))?;
        Ok(GlobalPtr { address, element: PhantomData })
    }

    /// Returns the number of elements from `start` to this one; `None` if this pointer is before
    /// `start`, in another region, or not a whole number of elements away.
    pub fn elements_from(self, start: Self) -> Option<usize> {
        if self.address.id() != start.address.id() {
            return None;
        }
        let bytes = self.address.offset().checked_sub(start.address.offset())?;
        match size_of::<T>() as u64 {
            0 => (bytes == 0).then_some(0),
            size => {
                bytes.is_multiple_of(size).then(|| bytes.checked_div(size)).flatten().map(|elements| elements as usize)
            }
        }
    }

    /// Returns the same address for elements of another type.
    ///
    /// # Errors
    /// As [`GlobalPtr::new`].
    #[inline]
    pub fn cast<U: Pod>(self) -> Result<GlobalPtr<U>> {
        GlobalPtr::new(self.address)
    }

    /// Returns the `len` elements that start here.
    ///
    /// # Errors
    /// As [`GlobalPtr::add`].
    #[inline]
    pub fn slice(self, len: usize) -> Result<GlobalSlice<T>> {
        GlobalSlice::new(self.address, len)
    }

    /// Reads the element. If other ranks write it at the same time, each byte is either old or new;
    /// a word of 4 or 8 bytes is read atomically.
    ///
    /// # Errors
    /// As [`Acp::read`].
    #[inline]
    pub async fn read(self, acp: &Acp) -> Result<T> {
        let mut value = T::zeroed();
        acp.read(self.address, core::slice::from_mut(&mut value)).await?;
        Ok(value)
    }

    /// Writes the element; returns when the write is visible.
    ///
    /// # Errors
    /// As [`Acp::write`].
    #[inline]
    pub async fn write(self, acp: &Acp, value: T) -> Result<()> {
        acp.write(self.address, core::slice::from_ref(&value)).await
    }

    /// Copies the element to another place, both of any rank, as [`Acp::copy`] does: returns when
    /// the copy is issued.
    ///
    /// # Errors
    /// As [`Acp::copy`].
    #[inline]
    pub fn copy_to(self, acp: &Acp, to: Self, order: impl Into<Order>) -> impl Future<Output = Result<Handle>> {
        acp.copy(to.address, self.address, size_of::<T>(), order)
    }

    /// Returns the form in which this pointer is stored in global memory.
    #[inline]
    pub fn to_link(self) -> Link<T> {
        Link::from(Some(self))
    }
}

impl<W: AtomicWord> GlobalPtr<W> {
    /// Returns the same word for use by atomics.
    #[inline]
    pub fn as_atomic(self) -> GlobalAtomic<W> {
        GlobalAtomic::of(self)
    }
}

// Written by hand, because none of these has a bound on `T`.

impl<T> Clone for GlobalPtr<T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for GlobalPtr<T> {}

impl<T> PartialEq for GlobalPtr<T> {
    fn eq(&self, other: &Self) -> bool {
        self.address == other.address
    }
}

impl<T> Eq for GlobalPtr<T> {}

impl<T> PartialOrd for GlobalPtr<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for GlobalPtr<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.address.cmp(&other.address)
    }
}

impl<T> hash::Hash for GlobalPtr<T> {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.address.hash(state);
    }
}

impl<T> fmt::Debug for GlobalPtr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", core::any::type_name::<T>(), self.address)
    }
}
