//! References to local memory: all the `unsafe` of this crate.
//!
//! # Safety
//! References are created from a [`Mapped`], whose mapping the fabric guarantees, while a view is
//! entered in the buffer's table of claims; or from words of a loan or a copy, which the view owns, or shares with a
//! provider that does not write them. The safety argument for this crate's part of the first:
//!
//! * The memory is allocated under the access policy [`data`], which is created only here. The
//!   handle never
//!   leaves [`Allocation`] and the machinery of requests, so users cannot obtain it. Local memory
//!   is read and written through it only for the program, with the table locked
//!   ([`Buffer`](super::Buffer)), and by packing and unpacking, under the claims of the request
//!   that packs or unpacks.
//! * A neighbour puts into it only for a *guarded* request ([`crate::init`]): one whose members
//!   execute PRDMA with their CPUs, with words under the access policy [`words`], which no other code can
//!   write, and on which both ends have agreed through tables under the access policy [`tables`], which only
//!   their members have written. It puts after the READY of an iteration, which is sent after the
//!   claim was taken, and before its END. The claim, also that of the sent bytes, is released once
//!   all ENDs have arrived; no put of them is left then. Iteration numbers are never used twice for
//!   the same bytes of words, so a leftover of an earlier request cannot be mistaken for a READY or
//!   an END ([`crate::init`]). Memory of another job, which may have the same key, is refused.
//! * If an iteration fails, or a request is dropped before its end, the claim stays forever, and
//!   the memory is never freed.
//! * A view and a claim that exclude each other never exist at the same time: [`super::claims`].
//! * A view that writes has rows that don't overlap, and lends one of them at a time.

#![allow(unsafe_code)]

use super::view::{Element, Lent};
use core::{fmt, ptr::NonNull, slice};
use rdma_fabric::{AccessPolicy, Fabric, LockedMemory, Mapped};

/// Returns the access policy of memory that is lent.
fn data() -> AccessPolicy {
    // SAFETY: the module's documentation.
    unsafe { AccessPolicy::references([0x6f6e_6573_6964_6564, 0x7072_646d_6120_6431]) }
}

/// Returns the access policy of the words of guarded requests. No reference to them is ever made;
/// an access policy that allows references excludes handles that other code can make.
fn words() -> AccessPolicy {
    // SAFETY: the module's documentation; nothing is lent.
    unsafe { AccessPolicy::references([0x6f6e_6573_6964_6564, 0x7072_646d_6120_7731]) }
}

/// Returns the access policy of the tables of guarded requests, which is like [`words`]. It is a
/// separate access policy because a number may arrive late, for words that have been freed: it must
/// never reach the bytes of a table.
fn tables() -> AccessPolicy {
    // SAFETY: the module's documentation; nothing is lent.
    unsafe { AccessPolicy::references([0x6f6e_6573_6964_6564, 0x7072_646d_6120_7431]) }
}

/// Returns whether the rank can lend its memory in place.
pub(crate) fn lends(fabric: &Fabric) -> bool {
    fabric.caps().locked_memory == LockedMemory::Mapped
}

/// Returns a handle that allocates memory to be lent, and accesses that of others; `None` where
/// memory isn't lent in place.
///
/// # Errors
/// As [`Fabric::protected`].
pub(crate) fn data_handle(fabric: &Fabric) -> rdma_fabric::Result<Option<Fabric>> {
    lends(fabric).then(|| fabric.protected(data())).transpose()
}

/// Returns a handle that allocates words of guarded requests, and accesses those of others.
///
/// # Errors
/// As [`Fabric::protected`].
pub(crate) fn words_handle(fabric: &Fabric) -> rdma_fabric::Result<Fabric> {
    fabric.protected(words())
}

/// Returns a handle that allocates tables of guarded requests, and accesses those of others.
///
/// # Errors
/// As [`Fabric::protected`].
pub(crate) fn tables_handle(fabric: &Fabric) -> rdma_fabric::Result<Fabric> {
    fabric.protected(tables())
}

impl<T: Element> Lent<'_, T> {
    /// Returns elements of a view of mapped memory. They must be contiguous.
    #[inline(always)]
    pub(super) fn in_place(&self, start: usize, len: usize) -> &[T] {
        let mapped = self.allocation.mapped.as_ref().expect("checked by the caller");
        // SAFETY: the view is entered, so no request or other view writes its bytes; if it writes
        // itself, it is not borrowed exclusively as long as `self` is borrowed so.
        unsafe { mapped.slice(start * size_of::<T>(), len) }.expect("a view is inside its buffer")
    }

    /// Returns elements of a view that writes, in place. They must be contiguous.
    #[inline(always)]
    pub(super) fn in_place_mut(&mut self, start: usize, len: usize) -> &mut [T] {
        let mapped = self.allocation.mapped.as_ref().expect("checked by the caller");
        // SAFETY: the view is entered as one that writes, so nothing else reads or writes its bytes,
        // and it is borrowed exclusively.
        unsafe { mapped.slice_mut(start * size_of::<T>(), len) }.expect("a view is inside its buffer")
    }
}

/// A view of one row, whose place was found once: elements of a mapping, of a loan, or of a copy.
///
/// A loop over a view dereferences it for each element, and is compiled like one over a slice only if that is no more
/// than reading two words.
pub(super) struct Run<'b, T: Element, const WRITES: bool> {
    start: NonNull<T>,
    len: usize,
    /// Keeps the view entered, and the elements where they are.
    lent: Lent<'b, T>,
}

/// `Run` is sent with its [`Lent`].
fn _lent_may_be_sent<'b, T: Element>(lent: Lent<'b, T>) -> impl Send + Sync + 'b {
    lent
}

// SAFETY: a pointer to elements that any thread may use, and that belong to `lent`, which may be sent.
unsafe impl<T: Element, const WRITES: bool> Send for Run<'_, T, WRITES> {}

// SAFETY: as above; they are written only through an exclusive reference.
unsafe impl<T: Element, const WRITES: bool> Sync for Run<'_, T, WRITES> {}

impl<'b, T: Element, const WRITES: bool> Run<'b, T, WRITES> {
    /// Finds the elements of a view of one row, which writes if `WRITES`.
    pub(super) fn new(mut lent: Lent<'b, T>) -> Self {
        assert_eq!(lent.writes, WRITES, "a view is entered as what it is");
        let (start, len) = match WRITES {
            true => {
                let elements = lent.row_mut(&[]);
                (NonNull::from(&mut *elements).cast(), elements.len())
            }
            false => {
                let elements = lent.row(&[]);
                (NonNull::from(elements).cast(), elements.len())
            }
        };
        Run { start, len, lent }
    }

    #[inline(always)]
    pub(super) fn as_slice(&self) -> &[T] {
        // SAFETY: `len` elements that `lent` has returned. It is not used otherwise until it is dropped, so they stay
        // where they are and, if it writes, are written only through `as_mut_slice`; the view is entered as long.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Element> Run<'_, T, true> {
    #[inline(always)]
    pub(super) fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: as in `as_slice`; the view writes, so nothing else accesses its elements, and it is borrowed
        // exclusively.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T: Element, const WRITES: bool> fmt::Debug for Run<'_, T, WRITES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lent.fmt(f)
    }
}

/// Returns the mapping of an allocation.
///
/// # Errors
/// As [`Region::mapped`](rdma_fabric::Region::mapped).
pub(super) fn mapped(handle: &Fabric, region: &rdma_fabric::Region) -> rdma_fabric::Result<Mapped> {
    region.mapped(handle, handle.rank())
}
