//! Matrices of the caller's, as the library below sees them.
//!
//! # Safety
//! The address of a matrix is made into a [`Start`] by functions whose callers pass on what the
//! program promises: all elements that the routine's arguments describe are there, unchanged by
//! others (or unused, if the routine changes them) as long as the call lasts. The library below
//! asks a [`Lent`] matrix only for bytes of the shape's runs, and slices are made of exactly those:
//! what lies between two columns may be anybody's.

#![allow(unsafe_code)]

use blacs::{Memory, MemoryMut};
use core::{ffi::c_void, ops::Range, slice};
use rdma_fabric::LocalSpan;

/// Where a matrix of the caller's begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start(*mut u8);

impl Start {
    /// # Safety
    /// All elements of the matrix that the routine is described to read are there, and nobody
    /// changes them as long as the call lasts.
    pub(crate) unsafe fn of_source(at: *const c_void) -> Self {
        Start(at.cast_mut().cast())
    }

    /// # Safety
    /// All elements of the matrix that the routine is described to change are there, and nobody
    /// else uses them as long as the call lasts.
    pub(crate) unsafe fn of_sink(at: *mut c_void) -> Self {
        Start(at.cast())
    }

    /// Returns the address.
    pub(crate) fn address(self) -> usize {
        self.0.addr()
    }
}

// SAFETY: an address; those who made it promise that the bytes may be used wherever the call goes.
unsafe impl Send for Start {}
// SAFETY: as above.
unsafe impl Sync for Start {}

/// A matrix of the caller's, as long as its call lasts.
#[derive(Debug)]
pub(crate) struct Lent {
    start: Start,
    /// The same, if it is one piece of memory of the fabric.
    span: Option<LocalSpan<u8>>,
}

impl Lent {
    /// Makes one of where it begins. If `span` is given, it begins there too, and is the whole.
    pub(crate) fn new(start: Start, span: Option<LocalSpan<u8>>) -> Self {
        Lent { start, span }
    }
}

impl Memory for Lent {
    #[inline]
    fn bytes(&self, range: Range<usize>) -> &[u8] {
        if range.is_empty() {
            return &[];
        }
        // SAFETY: bytes of the matrix, which is there and unchanged as long as the call lasts.
        unsafe { slice::from_raw_parts(self.start.0.wrapping_add(range.start), range.len()) }
    }

    fn span(&self) -> Option<&LocalSpan<u8>> {
        self.span.as_ref()
    }
}

impl MemoryMut for Lent {
    #[inline]
    fn bytes_mut(&mut self, range: Range<usize>) -> &mut [u8] {
        if range.is_empty() {
            return &mut [];
        }
        // SAFETY: bytes of the matrix, which nobody else uses as long as the call lasts; the matrix
        // is borrowed exclusively. (Those for which this is called are made of a sink.)
        unsafe { slice::from_raw_parts_mut(self.start.0.wrapping_add(range.start), range.len()) }
    }

    #[inline]
    fn bytes(&self, range: Range<usize>) -> &[u8] {
        Memory::bytes(self, range)
    }

    fn span(&self) -> Option<&LocalSpan<u8>> {
        self.span.as_ref()
    }
}
