//! The caller's matrices, as the crate `blacs` accesses them.
//!
//! # Safety
//! Functions of this module convert the address of a matrix to a [`Source`] or a [`Sink`]; their
//! callers pass on the program's guarantee: all elements that the routine's arguments describe
//! exist, and no other code changes them (or uses them, if the routine changes them) for the
//! duration of the call. `blacs` requests only bytes of the shape's runs from a [`Lent`] matrix,
//! and slices cover exactly these bytes: memory between two columns may belong to other code. Peers
//! write into fabric memory only where this process has posted a receive, while `blacs` has no
//! slice of it.

#![allow(unsafe_code)]

use blacs::{Memory, MemoryMut};
use core::{ffi::c_void, ops::Range, slice};
use rdma_fabric::LocalSpan;

/// The start of a matrix that a routine reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source(*const u8);

impl Source {
    /// # Safety
    /// All elements of the matrix that the routine is described to read exist, and no code changes
    /// them for the duration of the call.
    pub(crate) unsafe fn new(at: *const c_void) -> Self {
        Source(at.cast())
    }
}

/// The start of a matrix that a routine changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sink(*mut u8);

impl Sink {
    /// # Safety
    /// All elements of the matrix that the routine is described to change exist, and no other code
    /// uses them for the duration of the call.
    pub(crate) unsafe fn new(at: *mut c_void) -> Self {
        Sink(at.cast())
    }
}

// SAFETY: it is an address; the callers of `new` guarantee that its bytes may be used wherever the
// call runs.
unsafe impl Send for Source {}
// SAFETY: as above; its bytes are only read.
unsafe impl Sync for Source {}
// SAFETY: as for a `Source`.
unsafe impl Send for Sink {}

/// The start of a matrix.
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

/// A matrix of the caller, for the duration of its call.
#[derive(Debug)]
pub(crate) struct Lent<S> {
    start: S,
    /// The same matrix, if it is one contiguous piece of fabric memory.
    span: Option<LocalSpan<u8>>,
}

impl<S> Lent<S> {
    /// Creates a matrix from its start. If `span` is given, it has the same start and covers the whole
    /// matrix.
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
        // SAFETY: bytes of the matrix, which exists and does not change for the duration of the call.
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
        // SAFETY: bytes of the matrix, which no other code uses for the duration of the call; the
        // matrix is borrowed exclusively. If the program has not written them yet, they are written
        // here before they are read.
        unsafe { slice::from_raw_parts_mut(self.start.0.wrapping_add(range.start), range.len()) }
    }

    #[inline]
    fn bytes(&self, range: Range<usize>) -> &[u8] {
        if range.is_empty() {
            return &[];
        }
        // SAFETY: as in `bytes_mut`; bytes that are read are operands, which the program has written.
        unsafe { slice::from_raw_parts(self.start.0.wrapping_add(range.start), range.len()) }
    }

    fn span(&self) -> Option<&LocalSpan<u8>> {
        self.span.as_ref()
    }
}
