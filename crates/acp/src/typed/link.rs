//! A pointer as stored in global memory.

use super::GlobalPtr;
use crate::GlobalAddress;
use core::{fmt, marker::PhantomData};
use rdma_fabric::Pod;

/// A [`GlobalPtr`], or null, as stored in global memory: the address's 8 bytes, or zeros.
///
/// It is plain data, so it can be a field of an element, for example `next` in a list.
#[derive(bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct Link<T> {
    bits: u64,
    element: PhantomData<T>,
}

impl<T: Pod> Link<T> {
    /// The null link.
    pub const NULL: Self = Link { bits: 0, element: PhantomData };

    /// Returns whether the link is null.
    #[inline]
    pub const fn is_null(self) -> bool {
        self.bits == 0
    }

    /// Returns the pointer; `None` for [`Link::NULL`], and for words that are not an address of a
    /// `T`.
    #[inline]
    pub fn get(self) -> Option<GlobalPtr<T>> {
        GlobalAddress::from_bits(self.bits).and_then(|address| GlobalPtr::new(address).ok())
    }

    /// Returns the link as a word, which atomics may compare and swap.
    #[inline]
    pub const fn to_bits(self) -> u64 {
        self.bits
    }

    /// Restores a link from [`Link::to_bits`].
    #[inline]
    pub const fn from_bits(bits: u64) -> Self {
        Link { bits, element: PhantomData }
    }
}

impl<T: Pod> From<Option<GlobalPtr<T>>> for Link<T> {
    #[inline]
    fn from(pointer: Option<GlobalPtr<T>>) -> Self {
        Self::from_bits(pointer.map_or(0, |pointer| pointer.address().to_bits()))
    }
}

impl<T: Pod> Default for Link<T> {
    /// [`Link::NULL`].
    fn default() -> Self {
        Self::NULL
    }
}

impl<T: Pod> Clone for Link<T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Pod> Copy for Link<T> {}

impl<T: Pod> PartialEq for Link<T> {
    fn eq(&self, other: &Self) -> bool {
        self.bits == other.bits
    }
}

impl<T: Pod> Eq for Link<T> {}

impl<T: Pod> fmt::Debug for Link<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.get() {
            Some(pointer) => pointer.fmt(f),
            None if self.is_null() => f.write_str("null"),
            None => write!(f, "no address: {:#x}", self.bits),
        }
    }
}
