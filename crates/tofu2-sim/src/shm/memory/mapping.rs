//! Shared memory as such: where it comes from, and its words.
//!
//! A [`Mapping`] starts with protocol words, which are atomics, and goes on with the heap, which is
//! reached only through [`rdma_fabric::access`]: by operations in checked pieces ([`Piece`]). It
//! never moves or shrinks while it exists, and nothing outside this module and those in it sees its
//! addresses, except through a [`Mapped`] of a locked region.
//!
//! # Safety
//! `base..base + len` lies in one mapped allocation, aligned to a cache line, until the last owner
//! of the [`Mapping`] is gone, and no other mapping of the allocation has a byte of it; a file is
//! sealed at its length. The heap starts at `heap_at`, behind the header; it and `len` are
//! multiples of 8, so that no cell straddles an end. `Mapping::new` checks all that. Wherever an
//! address is made of an offset, here and in [`piece`], the offset is checked.

#![allow(unsafe_code)]

mod bell;
mod piece;

use super::{inside::ANNOUNCEMENTS, layout};
use crate::shm::waiting::report::Reports;
use core::{ptr::NonNull, sync::atomic::AtomicU64};
use rdma_fabric::{FabricError, Mapped, access};
use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    fmt,
    sync::{Arc, Mutex, OnceLock},
};

pub(crate) use bell::Parking;
pub(crate) use piece::Piece;

/// Memory that other threads or processes access at the same time.
pub(crate) struct Mapping {
    /// Page-aligned in files, cache-line-aligned for heap memory.
    base: NonNull<u8>,
    /// Length in bytes.
    len: usize,
    /// Bytes before this are protocol words.
    heap_at: usize,
    /// Waits of this process that are parked on the segment's doorbell, or about to be.
    parked: Mutex<usize>,
    /// Where that is shown to a rank that wakes all others: a protocol word of another mapping.
    sign: OnceLock<(Arc<Mapping>, usize)>,
    /// What the threads of the segment's rank in this process have reported of their parking.
    reports: Mutex<Reports>,
    backing: Backing,
}

enum Backing {
    /// Memory of this process only.
    Heap { start: NonNull<u8>, layout: Layout },
    /// A part of a file's pages; unmapped when no part is left.
    #[cfg(target_os = "linux")]
    File { _whole: Arc<MappedFile> },
}

/// A sealed memory file, mapped whole.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub(crate) struct MappedFile {
    start: NonNull<u8>,
    len: usize,
}

#[cfg(target_os = "linux")]
impl MappedFile {
    /// Returns the `len` bytes of `file`.
    pub(crate) fn new(file: &std::os::fd::OwnedFd, len: usize) -> Result<Arc<Self>, FabricError> {
        use rustix::mm::{MapFlags, ProtFlags, mmap};
        // Otherwise a peer could make an access fail by truncating it.
        crate::shm::processes::memory_file::examine(file, len)
            .map_err(|what| FabricError::setting("memory file", what))?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: without an address the system takes one where nothing is.
        let start = unsafe { mmap(core::ptr::null_mut(), len, access, MapFlags::SHARED, file, 0) }
            .map_err(|errno| FabricError::System { call: &"mmap", errno: errno.raw_os_error() })?;
        let start = NonNull::new(start.cast()).ok_or(FabricError::System { call: &"mmap", errno: OUT_OF_MEMORY })?;
        Ok(Arc::new(MappedFile { start, len }))
    }
}

#[cfg(target_os = "linux")]
impl Drop for MappedFile {
    fn drop(&mut self) {
        // SAFETY: `new` mapped these bytes, and nobody has a part of them any more.
        let unmapped = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len) };
        debug_assert_eq!(unmapped, Ok(()));
    }
}

// SAFETY: an address and a length that never change; the parts answer for accesses.
#[cfg(target_os = "linux")]
unsafe impl Send for MappedFile {}
// SAFETY: as above.
#[cfg(target_os = "linux")]
unsafe impl Sync for MappedFile {}

// SAFETY: all access is by atomics or by `access`, which any thread may do at any time; freed when
// no owner is left.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mapping({} bytes)", self.len)
    }
}

impl Mapping {
    /// Maps `len` zeroed bytes of this process. Pages that nobody touches cost nothing where the
    /// allocator gets large blocks from the system.
    pub(crate) fn in_process(len: usize, heap_at: usize) -> Result<Arc<Self>, FabricError> {
        // A larger alignment would make the allocator touch every page.
        let refused = || FabricError::System { call: &"alloc", errno: OUT_OF_MEMORY };
        let padded = len.checked_add(layout::CACHE_LINE).ok_or_else(refused)?;
        let layout = Layout::from_size_align(padded, 16).map_err(|_| refused())?;
        // SAFETY: the layout's size is not 0.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(refused)?;
        let address = start.addr().get();
        let pad = address.wrapping_neg() & (layout::CACHE_LINE - 1);
        // SAFETY: the pad is below a cache line, a power of two, for which there is room.
        let base = unsafe { start.add(pad) };
        Ok(Mapping::new(base, len, heap_at, Backing::Heap { start, layout }))
    }

    /// Returns the `len` bytes from `at` on of a sealed memory file.
    ///
    /// # Panics
    /// If they are not there: offsets come from [`layout`], for which the file was examined.
    #[cfg(target_os = "linux")]
    pub(crate) fn of_file(whole: &Arc<MappedFile>, at: usize, len: usize, heap_at: usize) -> Arc<Self> {
        let end = at.checked_add(len).filter(|&end| end <= whole.len);
        let start = end.map(|_| whole.start).expect("a mapping inside its file");
        // SAFETY: inside the mapped file, by the check.
        let base = unsafe { start.add(at) };
        Mapping::new(base, len, heap_at, Backing::File { _whole: whole.clone() })
    }

    /// Returns what the module's documentation calls a mapping.
    ///
    /// # Panics
    /// If it is none: lengths come from [`layout`].
    fn new(base: NonNull<u8>, len: usize, heap_at: usize, backing: Backing) -> Arc<Self> {
        assert!(base.addr().get().is_multiple_of(layout::CACHE_LINE), "a mapping's alignment");
        assert!(len.is_multiple_of(8) && heap_at.is_multiple_of(8) && heap_at <= len, "a mapping's lengths");
        assert!(heap_at >= layout::CACHE_LINE, "a mapping's header");
        let (parked, sign, reports) = (Mutex::default(), OnceLock::new(), Mutex::default());
        Arc::new(Mapping { base, len, heap_at, parked, sign, reports, backing })
    }

    /// Returns what the threads of the segment's rank in this process have reported.
    pub(crate) fn reports(&self) -> &Mutex<Reports> {
        &self.reports
    }

    /// Returns the 8-byte protocol word at `at`.
    ///
    /// # Panics
    /// If there is none: offsets come from [`layout`] and validated indices only.
    #[inline(always)]
    pub(crate) fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at < self.heap_at && at != layout::BELL);
        // SAFETY: inside the mapping and aligned, by the assertion, since `heap_at` is a multiple
        // of 8 too; protocol words are accessed as atomics only, and this one as 8 bytes only.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(at).cast()) }
    }

    /// Returns the `N` 8-byte protocol words from `at` on.
    ///
    /// # Panics
    /// If they are not there: offsets come from [`layout`] and validated indices only.
    #[inline(always)]
    pub(crate) fn words<const N: usize>(&self, at: usize) -> &[AtomicU64; N] {
        assert!(at.is_multiple_of(8) && at > layout::BELL && at + 8 * N <= self.heap_at);
        // SAFETY: as in `word`, for each of them; they follow one another like those of an array.
        unsafe { &*self.base.as_ptr().add(at).cast() }
    }

    /// Asks for the line of the protocol word at `at`, to write it soon. A hint: there need be no
    /// such word.
    #[inline(always)]
    pub(crate) fn expect_store(&self, at: usize) {
        access::expect_store(self.base.as_ptr().wrapping_add(at));
    }

    /// Returns the bytes of the heap.
    pub(crate) fn heap_len(&self) -> usize {
        self.len - self.heap_at
    }

    /// Returns where the `len` bytes at `offset` of the heap are; `None` if they are not inside.
    #[inline(always)]
    fn heap_bytes(&self, offset: usize, len: usize) -> Option<NonNull<u8>> {
        offset.checked_add(len).filter(|&end| end <= self.heap_len())?;
        // SAFETY: inside the mapping, by the check.
        Some(unsafe { self.base.add(self.heap_at + offset) })
    }

    /// Sets bytes of the heap to zero; nothing if they are not inside.
    pub(crate) fn zero(&self, offset: usize, len: usize) {
        if let Some(start) = self.heap_bytes(offset, len) {
            // SAFETY: `len` bytes of the heap.
            unsafe { access::zero(start.as_ptr(), len) };
        }
    }

    /// Copies into bytes of the heap; nothing if they are not inside.
    pub(crate) fn fill(&self, offset: usize, bytes: &[u8]) {
        if let Some(start) = self.heap_bytes(offset, bytes.len()) {
            // SAFETY: as many bytes of the heap.
            unsafe { access::copy_in(start.as_ptr(), bytes.as_ptr(), bytes.len()) };
        }
    }

    /// Copies bytes of the heap out; nothing if they are not inside.
    pub(crate) fn empty(&self, offset: usize, bytes: &mut [u8]) {
        if let Some(start) = self.heap_bytes(offset, bytes.len()) {
            // SAFETY: as many bytes of the heap.
            unsafe { access::copy_out(bytes.as_mut_ptr(), start.as_ptr(), bytes.len()) };
        }
    }

    /// Returns where the segment's rank announces what it is inside of.
    pub(crate) fn announcements(&self) -> &[AtomicU64; ANNOUNCEMENTS] {
        self.words(layout::INSIDE)
    }

    /// Returns where `len` bytes at `offset` of the heap are; `None` if they are not inside.
    ///
    /// # Safety
    /// They are a part of a locked region that handles allocated which all were made with a pact
    /// that allows references.
    pub(crate) unsafe fn mapped(self: &Arc<Self>, offset: usize, len: usize) -> Option<Mapped> {
        let start = self.heap_bytes(offset, len)?;
        // SAFETY: inside the mapping, which is mapped, sealed, as long as the mapping is owned.
        // Only those handles resolve the region (`regions::resolve`), its bytes never were nor will
        // be another kind of region's (`heap`), and operations are over when they are posted. The
        // endpoint's atomics are `access`'s.
        Some(unsafe { Mapped::new(start, len, self.clone()) })
    }

    /// Returns the bytes of the heap that hold a control queue: protocol words, while the queue has
    /// them. `None` if they are not inside, or no words.
    ///
    /// No region key leads to a queue's bytes ([`super::regions`]), so they are accessed as these
    /// words only, from when the queue is opened until their time in [`super::retired`] is over;
    /// before and afterwards through [`access`]. A word may hold anything: whoever reads one checks
    /// it.
    #[inline(always)]
    pub(crate) fn queue_words(&self, offset: usize, len: usize) -> Option<&[AtomicU64]> {
        let whole = offset.is_multiple_of(8) && len.is_multiple_of(8);
        let start = self.heap_bytes(offset, len).filter(|_| whole)?;
        // SAFETY: inside the mapping, by the check, and aligned, since `heap_at` and `offset` are
        // multiples of 8 and the base is; atomics of this width may be accessed by anybody at any
        // time, and `access` is either the same atomics or assembly, which the compiler takes as an
        // access like any other thread's.
        Some(unsafe { core::slice::from_raw_parts(start.as_ptr().cast(), len / 8) })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        match self.backing {
            // SAFETY: allocated with this layout, and nobody holds the mapping any more.
            Backing::Heap { start, layout } => unsafe { dealloc(start.as_ptr(), layout) },
            #[cfg(target_os = "linux")]
            Backing::File { .. } => {}
        }
    }
}

/// What the system calls it when there is no memory: `ENOMEM`, or `ERROR_NOT_ENOUGH_MEMORY`.
const OUT_OF_MEMORY: i32 = if cfg!(windows) { 8 } else { 12 };
