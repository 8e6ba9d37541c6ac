//! Matrices of the caller's, as the library below sees them.
//!
//! # Safety
//! The address of a matrix is made into a [`Source`] or a [`Sink`] by functions whose callers pass
//! on what the program promises: all elements that the routine's arguments describe are there, and
//! nobody else changes them (or uses them, if the routine changes them) as long as the call lasts.
//! The library below asks a [`Lent`] matrix only for bytes of the shape's runs, and slices are made
//! of exactly those: what lies between two columns may be anybody's. Peers write into memory of the
//! fabric only where this process has posted a receive, while the library below has no slice of it.

#![allow(unsafe_code)]

use blacs::{Memory, MemoryMut};
use core::{ffi::c_void, ops::Range, slice};
use rdma_fabric::LocalSpan;

/// Where a matrix begins that a routine reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source(*const u8);

impl Source {
    /// # Safety
    /// All elements of the matrix that the routine is described to read are there, and nobody
    /// changes them as long as the call lasts.
    pub(crate) unsafe fn new(at: *const c_void) -> Self {
        Source(at.cast())
    }
}

/// Where a matrix begins that a routine changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sink(*mut u8);

impl Sink {
    /// # Safety
    /// All elements of the matrix that the routine is described to change are there, and nobody
    /// else uses them as long as the call lasts.
    pub(crate) unsafe fn new(at: *mut c_void) -> Self {
        Sink(at.cast())
    }
}

// SAFETY: an address; those who made it promise that the bytes may be used wherever the call goes.
unsafe impl Send for Source {}
// SAFETY: as above; they are only read.
unsafe impl Sync for Source {}
// SAFETY: as for a `Source`.
unsafe impl Send for Sink {}

/// Where a matrix begins.
pub(crate) trait Start {
    /// Returns the address.
    fn address(&self) -> usize;
}

impl Start for Source {
    fn address(&self) -> usize {
        self.0.addr()
    }
}

impl Start for Sink {
    fn address(&self) -> usize {
        self.0.addr()
    }
}

/// A matrix of the caller's, as long as its call lasts.
#[derive(Debug)]
pub(crate) struct Lent<S> {
    start: S,
    /// The same, if it is one piece of memory of the fabric.
    span: Option<LocalSpan<u8>>,
}

impl<S> Lent<S> {
    /// Makes one of where it begins. If `span` is given, it begins there too, and is the whole.
    pub(crate) fn new(start: S, span: Option<LocalSpan<u8>>) -> Self {
        Lent { start, span }
    }
}

impl Memory for Lent<Source> {
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

impl MemoryMut for Lent<Sink> {
    #[inline]
    fn bytes_mut(&mut self, range: Range<usize>) -> &mut [u8] {
        if range.is_empty() {
            return &mut [];
        }
        // SAFETY: bytes of the matrix, which nobody else uses as long as the call lasts; the matrix
        // is borrowed exclusively. The program may not have written them yet: then they are written
        // here before they are read.
        unsafe { slice::from_raw_parts_mut(self.start.0.wrapping_add(range.start), range.len()) }
    }

    #[inline]
    fn bytes(&self, range: Range<usize>) -> &[u8] {
        if range.is_empty() {
            return &[];
        }
        // SAFETY: as in `bytes_mut`; those that are read are operands, which the program has
        // written.
        unsafe { slice::from_raw_parts(self.start.0.wrapping_add(range.start), range.len()) }
    }

    fn span(&self) -> Option<&LocalSpan<u8>> {
        self.span.as_ref()
    }
}
