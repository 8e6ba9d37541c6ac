//! Shared memory: its sources, and its words.
//!
//! A [`Mapping`] consists of protocol words, which are atomics, followed by the heap, which is
//! accessed only through [`rdma_fabric::access`]; operations do so in checked pieces ([`Piece`]).
//! It never moves or shrinks while it exists, and nothing outside this module and its submodules
//! sees its addresses, except through a [`Mapped`] of a locked region.
//!
//! # Safety
//! `base..base + len` lies in one mapped allocation, aligned to a cache line, until the last owner
//! of the [`Mapping`] has been dropped, and no other mapping of the allocation contains any of
//! these bytes; a file is sealed at its length. The heap starts at `heap_at`, after the header;
//! `heap_at` and `len` are multiples of 8, so no cell straddles an end. `Mapping::new` checks this.
//! Wherever an address is made from an offset, here and in [`piece`], the offset is checked.

#![allow(unsafe_code)]

mod kept;
mod parking;
mod piece;

use super::{inside::ANNOUNCEMENTS, layout};
use crate::waiting::report::Reports;
use core::{ptr::NonNull, sync::atomic::AtomicU64};
use rdma_fabric::{FabricError, Mapped, access};
use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    fmt,
    sync::{Arc, Mutex, OnceLock},
};

pub(crate) use kept::Kept;
pub(crate) use parking::Parking;
pub(crate) use piece::Piece;

/// Memory that other threads or processes access concurrently.
pub(crate) struct Mapping {
    /// Page-aligned in files, cache-line-aligned for heap memory.
    base: NonNull<u8>,
    /// Length in bytes.
    len: usize,
    /// Offset of the heap; the bytes before it are protocol words.
    heap_at: usize,
    /// Number of waits of this process that are parked on the segment's doorbell, or about to park.
    parked: Mutex<usize>,
    /// The protocol word of another mapping where `parked != 0` is shown to a rank that wakes all
    /// others.
    sign: OnceLock<(Arc<Mapping>, usize)>,
    /// The parking reports of the threads of the segment's rank in this process.
    reports: Mutex<Reports>,
    backing: Backing,
}

enum Backing {
    /// Memory of this process only.
    Heap { start: NonNull<u8>, layout: Layout },
    /// A part of a mapped file, which is unmapped when no part is left.
    #[cfg(target_os = "linux")]
    File { _whole: Arc<MappedFile> },
}

/// A sealed memory file, mapped as a whole.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub(crate) struct MappedFile(memmap2::MmapRaw);

#[cfg(target_os = "linux")]
impl MappedFile {
    /// Maps the `len` bytes of `file`.
    pub(crate) fn new(file: &std::os::fd::OwnedFd, len: usize) -> Result<Arc<Self>, FabricError> {
        // Otherwise a peer could make an access fail by truncating it.
        crate::processes::memory_file::examine(file, len).map_err(|what| FabricError::setting("memory file", what))?;
        let map = memmap2::MmapOptions::new().len(len).map_raw(file).map_err(|error| FabricError::System {
            call: &"mmap",
            errno: error.raw_os_error().unwrap_or(OUT_OF_MEMORY),
        })?;
        Ok(Arc::new(MappedFile(map)))
    }
}

// SAFETY: all access is by atomics or by `access`, which any thread may do at any time; freed when
// no owner is left.
unsafe impl Send for Mapping {}
// SAFETY: as for `Send`.
unsafe impl Sync for Mapping {}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mapping({} bytes)", self.len)
    }
}

impl Mapping {
    /// Maps `len` zeroed bytes of this process. Untouched pages cost nothing if the allocator
    /// obtains large blocks from the system.
    pub(crate) fn in_process(len: usize, heap_at: usize) -> Result<Arc<Self>, FabricError> {
        let refused = || FabricError::System { call: &"alloc", errno: OUT_OF_MEMORY };
        // For large blocks, a larger alignment would make the allocator touch every page.
        let (pad, align) = if len < layout::PAGE { (0, layout::CACHE_LINE) } else { (layout::CACHE_LINE, 16) };
        let padded = len.checked_add(pad).ok_or_else(refused)?;
        let layout = Layout::from_size_align(padded, align).map_err(|_| refused())?;
        // SAFETY: the layout's size is not 0.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(refused)?;
        let address = start.addr().get();
        let pad = address.wrapping_neg() & (layout::CACHE_LINE - 1);
        // SAFETY: the pad is below a cache line, a power of two, for which there is room.
        let base = unsafe { start.add(pad) };
        Ok(Mapping::new(base, len, heap_at, Backing::Heap { start, layout }))
    }

    /// Returns the mapping of the `len` bytes from `at` on of a sealed memory file.
    ///
    /// # Panics
    /// If they are not inside the file: offsets come from [`layout`], against which the file was
    /// examined.
    #[cfg(target_os = "linux")]
    pub(crate) fn of_file(whole: &Arc<MappedFile>, at: usize, len: usize, heap_at: usize) -> Arc<Self> {
        let is_inside = at.checked_add(len).is_some_and(|end| end <= whole.0.len());
        let start = NonNull::new(whole.0.as_mut_ptr()).filter(|_| is_inside).expect("a mapping inside its file");
        // SAFETY: inside the mapped file, by the check.
        let base = unsafe { start.add(at) };
        Mapping::new(base, len, heap_at, Backing::File { _whole: whole.clone() })
    }

    /// Makes a mapping after checking the conditions in the module's documentation.
    ///
    /// # Panics
    /// If alignment or lengths do not fit: lengths come from [`layout`].
    fn new(base: NonNull<u8>, len: usize, heap_at: usize, backing: Backing) -> Arc<Self> {
        assert!(base.addr().get().is_multiple_of(layout::CACHE_LINE), "a mapping's alignment");
        assert!(len.is_multiple_of(8) && heap_at.is_multiple_of(8) && heap_at <= len, "a mapping's lengths");
        assert!(heap_at >= layout::CACHE_LINE, "a mapping's header");
        let (parked, sign, reports) = (Mutex::default(), OnceLock::new(), Mutex::default());
        Arc::new(Mapping { base, len, heap_at, parked, sign, reports, backing })
    }

    /// Returns the parking reports of the threads of the segment's rank in this process.
    pub(crate) fn reports(&self) -> &Mutex<Reports> {
        &self.reports
    }

    /// Returns the 8-byte protocol word at `at`.
    ///
    /// # Panics
    /// If there is no such word: offsets come only from [`layout`] and validated indices.
    #[inline(always)]
    pub(crate) fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at < self.heap_at && at != layout::DOORBELL);
        // SAFETY: inside the mapping and aligned, by the assertion, since `heap_at` is a multiple
        // of 8 too; protocol words are accessed as atomics only, and this one as 8 bytes only.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(at).cast()) }
    }

    /// Returns the `N` 8-byte protocol words from `at` on.
    ///
    /// # Panics
    /// If they are not there: offsets come only from [`layout`] and validated indices.
    #[inline(always)]
    pub(crate) fn words<const N: usize>(&self, at: usize) -> &[AtomicU64; N] {
        assert!(at.is_multiple_of(8) && at > layout::DOORBELL && at + 8 * N <= self.heap_at);
        // SAFETY: as in `word`, for each of them; they follow one another like those of an array.
        unsafe { &*self.base.as_ptr().add(at).cast() }
    }

    /// Prefetches the line of the protocol word at `at`, which will be written soon. Only a hint:
    /// there need not be such a word.
    #[inline(always)]
    pub(crate) fn expect_store(&self, at: usize) {
        access::expect_store(self.base.as_ptr().wrapping_add(at));
    }

    /// Returns the length of the heap in bytes.
    pub(crate) fn heap_len(&self) -> usize {
        self.len - self.heap_at
    }

    /// Returns whether this mapping represents the segments of all ranks of other nodes, which
    /// share only the first line of protocol words.
    pub(crate) fn is_absent(&self) -> bool {
        self.heap_at <= layout::CACHE_LINE && self.heap_len() == 0
    }

    /// Returns the start of the heap, and its length in bytes.
    pub(crate) fn heap(&self) -> (NonNull<u8>, usize) {
        // SAFETY: inside the mapping, or its end.
        (unsafe { self.base.add(self.heap_at) }, self.heap_len())
    }

    /// Returns the location of the `len` bytes at `offset` of the heap; `None` if they are not
    /// inside.
    #[inline(always)]
    pub(super) fn heap_bytes(&self, offset: usize, len: usize) -> Option<NonNull<u8>> {
        offset.checked_add(len).filter(|&end| end <= self.heap_len())?;
        // SAFETY: inside the mapping, by the check.
        Some(unsafe { self.base.add(self.heap_at + offset) })
    }

    /// Zeroes bytes of the heap; does nothing if they are not inside.
    pub(crate) fn zero(&self, offset: usize, len: usize) {
        if let Some(start) = self.heap_bytes(offset, len) {
            // SAFETY: `len` bytes of the heap.
            unsafe { access::zero(start.as_ptr(), len) };
        }
    }

    /// Copies into bytes of the heap; does nothing if they are not inside.
    pub(crate) fn fill(&self, offset: usize, bytes: &[u8]) {
        if let Some(start) = self.heap_bytes(offset, bytes.len()) {
            // SAFETY: as many bytes of the heap.
            unsafe { access::copy_in(start.as_ptr(), bytes.as_ptr(), bytes.len()) };
        }
    }

    /// Copies bytes of the heap out; does nothing if they are not inside.
    pub(crate) fn empty(&self, offset: usize, bytes: &mut [u8]) {
        if let Some(start) = self.heap_bytes(offset, bytes.len()) {
            // SAFETY: as many bytes of the heap.
            unsafe { access::copy_out(bytes.as_mut_ptr(), start.as_ptr(), bytes.len()) };
        }
    }

    /// Returns the words in which the segment's rank announces the regions that its operations
    /// access.
    pub(crate) fn announcements(&self) -> &[AtomicU64; ANNOUNCEMENTS] {
        self.words(layout::INSIDE)
    }

    /// Returns the location of `len` bytes at `offset` of the heap; `None` if they are not inside.
    ///
    /// # Safety
    /// They are part of a locked region, and all handles that allocated it were created with an
    /// access policy that allows references.
    pub(crate) unsafe fn mapped(self: &Arc<Self>, offset: usize, len: usize) -> Option<Mapped> {
        let start = self.heap_bytes(offset, len)?;
        // SAFETY: inside the mapping, which is mapped, sealed, as long as the mapping is owned.
        // Only those handles resolve the region (`regions::resolve`), its bytes never belonged nor
        // will belong to another kind of region (`heap`), and operations are complete when they are
        // posted. The endpoint's atomics are those of `access`.
        Some(unsafe { Mapped::new(start, len, self.clone()) })
    }

    /// Returns the bytes of the heap that hold a control queue, which are protocol words while the
    /// queue owns them. `None` if they are not inside, or are not whole aligned words.
    ///
    /// No region key grants access to a queue's bytes ([`super::regions`]). They are accessed only
    /// as these words from when the queue is opened until their time in [`super::retired`] has
    /// ended, and before and afterwards through [`access`]. A word may hold any value: every reader
    /// checks it.
    #[inline(always)]
    pub(crate) fn queue_words(&self, offset: usize, len: usize) -> Option<&[AtomicU64]> {
        let whole = offset.is_multiple_of(8) && len.is_multiple_of(8);
        let start = self.heap_bytes(offset, len).filter(|_| whole)?;
        // SAFETY: inside the mapping, by the check, and aligned, since `heap_at` and `offset` are
        // multiples of 8 and the base is; any thread may access atomics of this width at any time,
        // and `access` is either the same atomics or assembly, which the compiler treats as an
        // access like any other thread's.
        Some(unsafe { core::slice::from_raw_parts(start.as_ptr().cast(), len / 8) })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        match self.backing {
            // SAFETY: allocated with this layout, and no owner of the mapping is left.
            Backing::Heap { start, layout } => unsafe { dealloc(start.as_ptr(), layout) },
            #[cfg(target_os = "linux")]
            Backing::File { .. } => {}
        }
    }
}

/// The system's error code for lack of memory: `ENOMEM`, or `ERROR_NOT_ENOUGH_MEMORY`.
const OUT_OF_MEMORY: i32 = if cfg!(windows) { 8 } else { 12 };
