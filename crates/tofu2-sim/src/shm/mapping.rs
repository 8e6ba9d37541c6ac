//! Shared memory as such: where it comes from, and checked pieces of it.
//!
//! A [`Mapping`] starts with protocol words, which are atomics, and goes on with the heap, which is reached only
//! through [`super::access`]. It never moves or shrinks while it exists, and nothing outside this module sees its
//! addresses, but who is given a [`Mapped`] of a locked region.
//!
//! # Safety
//! `base..base + len` is one mapped allocation, aligned to a cache line, until the last owner of the [`Mapping`] is gone; a
//! file's is sealed at that length. The heap starts at `heap_at`, behind the header; it and `len` are multiples of 8, so
//! that no cell straddles an end. `Mapping::new` checks all that. A [`Piece`] is made by [`Mapping::piece`] and
//! [`Piece::part`] only, which check that it lies in the heap, and holds the mapping. Offsets that come from shared memory
//! are checked there, so nothing a peer writes leads outside.

#![allow(unsafe_code)]

use super::{
    access,
    doorbell::{self, Watch},
    endpoint::Endpoint,
    inside::ANNOUNCEMENTS,
    layout,
    regions::CONDEMNED,
};
use core::{
    ops::Deref,
    ptr::NonNull,
    sync::atomic::{
        AtomicU32, AtomicU64,
        Ordering::{Acquire, Relaxed},
    },
    time::Duration,
};
use rdma_fabric::{Amo, FabricError, Mapped};
use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

/// Memory that other threads or processes access at the same time.
pub(super) struct Mapping {
    /// Page-aligned for files, cache-line-aligned for heap memory.
    base: NonNull<u8>,
    /// Length in bytes.
    len: usize,
    /// Bytes before this are protocol words.
    heap_at: usize,
    /// Waits of this process that are parked on the segment's doorbell, or about to be.
    parked: Mutex<usize>,
    backing: Backing,
}

enum Backing {
    /// Of this process only.
    Heap { start: NonNull<u8>, layout: Layout },
    /// A file's pages; unmapped on drop.
    #[cfg(target_os = "linux")]
    File { _map: memmap2::MmapRaw },
}

// SAFETY: all access is by atomics or by `access`, which any thread may do at any time; freed when no owner is left.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mapping({} bytes)", self.len)
    }
}

impl Mapping {
    /// `len` zeroed bytes of this process. Pages that nobody touches cost nothing where the allocator gets large
    /// blocks from the system.
    pub(super) fn in_process(len: usize, heap_at: usize) -> Result<Arc<Self>, FabricError> {
        // A larger alignment would make the allocator touch every page.
        let refused = || FabricError::System { call: "alloc", errno: OUT_OF_MEMORY };
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

    /// The `len` bytes of a sealed memory file.
    #[cfg(target_os = "linux")]
    pub(super) fn of_file(fd: &std::os::fd::OwnedFd, len: usize, heap_at: usize) -> Result<Arc<Self>, FabricError> {
        use std::os::fd::AsRawFd;
        // Otherwise a peer could make an access fail by truncating it.
        super::processes::memory_file::examine(fd, len)
            .map_err(|what| FabricError::Setting { name: "memory file", problem: what.to_owned() })?;
        let map = memmap2::MmapOptions::new()
            .len(len)
            .map_raw(fd.as_raw_fd())
            .map_err(|error| FabricError::System { call: "mmap", errno: error.raw_os_error().unwrap_or(0) })?;
        let base = NonNull::new(map.as_mut_ptr()).ok_or(FabricError::System { call: "mmap", errno: 0 })?;
        Ok(Mapping::new(base, len, heap_at, Backing::File { _map: map }))
    }

    /// What the module's documentation calls a mapping.
    ///
    /// # Panics
    /// If it is none: lengths come from [`layout`].
    fn new(base: NonNull<u8>, len: usize, heap_at: usize, backing: Backing) -> Arc<Self> {
        assert!(base.addr().get().is_multiple_of(layout::CACHE_LINE), "a mapping's alignment");
        assert!(len.is_multiple_of(8) && heap_at.is_multiple_of(8) && heap_at <= len, "a mapping's lengths");
        assert!(heap_at >= layout::CACHE_LINE, "a mapping's header");
        Arc::new(Mapping { base, len, heap_at, parked: Mutex::new(0), backing })
    }

    /// The 8-byte protocol word at `at`.
    ///
    /// # Panics
    /// If there is none: offsets come from [`layout`] and validated indices only.
    #[inline(always)]
    pub(super) fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at < self.heap_at && at != layout::BELL);
        // SAFETY: inside the mapping and aligned, by the assertion, since `heap_at` is a multiple of 8 too; protocol words
        // are accessed as atomics only, and this one as 8 bytes only.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(at).cast()) }
    }

    /// The `N` 8-byte protocol words from `at` on.
    ///
    /// # Panics
    /// If they are not there: offsets come from [`layout`] and validated indices only.
    #[inline(always)]
    pub(super) fn words<const N: usize>(&self, at: usize) -> &[AtomicU64; N] {
        assert!(at.is_multiple_of(8) && at > layout::BELL && at + 8 * N <= self.heap_at);
        // SAFETY: as in `word`, for each of them; they follow one another like those of an array.
        unsafe { &*self.base.as_ptr().add(at).cast() }
    }

    /// Ask for the line of the protocol word at `at`, to write it soon. A hint: there need be no such word.
    #[inline(always)]
    pub(super) fn expect_store(&self, at: usize) {
        access::expect_store(self.base.as_ptr().wrapping_add(at));
    }

    /// The doorbell of a segment.
    #[inline(always)]
    pub(super) fn bell(&self) -> doorbell::Words<'_> {
        // SAFETY: both are protocol words of this mapping, for which each has room, and live as long as it.
        unsafe { bell_at(self.base) }
    }

    /// Be ready to park on the segment's doorbell, for its own rank: steps W0 to W2.
    pub(super) fn prepare_park(self: &Arc<Self>, watch: Watch) -> Parking {
        let mut parked = self.parked.lock().unwrap_or_else(PoisonError::into_inner);
        *parked += 1;
        let watch = if *parked == 1 { watch } else { Watch::Any };
        Parking { ticket: doorbell::prepare(&self.bell(), watch), segment: self.clone() }
    }

    /// Wake the segment's rank if it is parked, whatever it waits for.
    pub(super) fn ring(&self) {
        doorbell::ring(&self.bell(), |_| true);
    }

    /// Wake the segment's rank, whatever a rank that has died left undone when it rang.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    pub(super) fn rouse(&self) {
        doorbell::rouse(&self.bell());
    }

    /// Wake the segment's rank if it is parked and waits for notices.
    pub(super) fn ring_for_notice(&self) {
        doorbell::ring(&self.bell(), Watch::wants_notices);
    }

    /// Wake the segment's rank if it is parked and waits for the protocol word at `at`.
    pub(super) fn ring_for_word(&self, at: usize) {
        doorbell::ring(&self.bell(), |bits| Watch::covers(bits, at as u64, at as u64 + 8));
    }

    /// Bytes of the heap.
    pub(super) fn heap_len(&self) -> usize {
        self.len - self.heap_at
    }

    /// Set bytes of the heap to zero; nothing if they are not inside.
    pub(super) fn zero(&self, offset: usize, len: usize) {
        if offset.checked_add(len).is_some_and(|end| end <= self.heap_len()) {
            // SAFETY: inside the heap, by the check.
            unsafe { access::zero(self.base.as_ptr().add(self.heap_at + offset), len) };
        }
    }

    /// Copy into bytes of the heap; nothing if they are not inside.
    pub(super) fn fill(&self, offset: usize, bytes: &[u8]) {
        if offset.checked_add(bytes.len()).is_some_and(|end| end <= self.heap_len()) {
            // SAFETY: inside the heap, by the check.
            unsafe { access::copy_in(self.base.as_ptr().add(self.heap_at + offset), bytes.as_ptr(), bytes.len()) };
        }
    }

    /// Copy bytes of the heap out; nothing if they are not inside.
    pub(super) fn empty(&self, offset: usize, bytes: &mut [u8]) {
        if offset.checked_add(bytes.len()).is_some_and(|end| end <= self.heap_len()) {
            // SAFETY: inside the heap, by the check.
            unsafe { access::copy_out(bytes.as_mut_ptr(), self.base.as_ptr().add(self.heap_at + offset), bytes.len()) };
        }
    }

    /// Where the segment's rank announces what it is inside of.
    pub(super) fn announcements(&self) -> &[AtomicU64; ANNOUNCEMENTS] {
        self.words(layout::INSIDE)
    }

    /// What stands for memory outside the segment that is registered in the entry with its generation at `at`: it can be
    /// rung for, and every access is refused.
    pub(super) fn stand_in(self: &Arc<Self>, at: usize) -> Piece {
        let word = NonNull::from(self.word(at));
        Piece::new(self.clone(), self.base, word.cast(), 8, word, NEVER)
    }

    /// A piece of memory outside the segment, valid as long as the protocol word at `generation_at` holds `generation`.
    ///
    /// # Safety
    /// Whenever a method of the piece that moves bytes is called, the memory is there and is accessed through
    /// [`access`] by everybody.
    pub(super) unsafe fn outside(
        self: &Arc<Self>,
        start: NonNull<u8>,
        len: usize,
        generation_at: usize,
        generation: u32,
    ) -> Piece {
        let word = NonNull::from(self.word(generation_at));
        Piece::new(self.clone(), self.base, start, len, word, generation.into())
    }

    /// Where `len` bytes at `offset` of the heap are; `None` if they are not inside.
    ///
    /// # Safety
    /// They are a part of a locked region that handles allocated which all were made with a pact that allows references.
    pub(super) unsafe fn mapped(self: &Arc<Self>, offset: usize, len: usize) -> Option<Mapped<Endpoint>> {
        offset.checked_add(len).filter(|&end| end <= self.heap_len())?;
        // SAFETY: inside the mapping, by the check.
        let start = unsafe { self.base.add(self.heap_at + offset) };
        // SAFETY: mapped, sealed, as long as the mapping is owned. Only those handles resolve the region (`regions::resolve`),
        // its bytes never were nor will be another kind of region's (`heap`), and operations are over when they are posted. The
        // endpoint's atomics are `access`'s.
        Some(unsafe { Mapped::new(start, len, self.clone()) })
    }

    /// The piece of `len` bytes at `offset` of the heap, valid as long as the protocol word at `generation_at` holds
    /// `generation`. `None` if it is not inside.
    pub(super) fn piece(
        self: &Arc<Self>,
        offset: usize,
        len: usize,
        generation_at: usize,
        generation: u32,
    ) -> Option<Piece> {
        offset.checked_add(len).filter(|&end| end <= self.heap_len())?;
        // SAFETY: inside the mapping, by the check.
        let start = unsafe { self.base.add(self.heap_at + offset) };
        let word = NonNull::from(self.word(generation_at));
        Some(Piece::new(self.clone(), self.base, start, len, word, generation.into()))
    }

    /// [`Mapping::piece`] for as long as the borrow.
    #[inline(always)]
    pub(super) fn borrowed_piece(
        &self,
        offset: usize,
        len: usize,
        generation_at: usize,
        generation: u64,
    ) -> Option<Piece<&Mapping>> {
        offset.checked_add(len).filter(|&end| end <= self.heap_len())?;
        // SAFETY: inside the mapping, by the check.
        let start = unsafe { self.base.add(self.heap_at + offset) };
        let word = NonNull::from(self.word(generation_at));
        Some(Piece::new(self, self.base, start, len, word, generation))
    }

    /// Bytes of the heap that hold a control queue: protocol words, while the queue has them. `None` if they are not
    /// inside, or no words.
    ///
    /// No region key leads to a queue's bytes ([`super::regions`]), so they are accessed as these words only, from when the
    /// queue is opened until their time in [`super::limbo`] is over; before and afterwards through [`access`]. A word may hold
    /// anything: whoever reads one checks it.
    #[inline(always)]
    pub(super) fn queue_words(&self, offset: usize, len: usize) -> Option<&[AtomicU64]> {
        let whole = offset.is_multiple_of(8) && len.is_multiple_of(8);
        offset.checked_add(len).filter(|&end| whole && end <= self.heap_len())?;
        // SAFETY: inside the mapping, by the check, and aligned, since `heap_at` and `offset` are multiples of 8 and the
        // base is; atomics of this width may be accessed by anybody at any time, and `access` is either the same atomics or
        // assembly, which the compiler takes as an access like any other thread's.
        Some(unsafe { core::slice::from_raw_parts(self.base.as_ptr().add(self.heap_at + offset).cast(), len / 8) })
    }
}

/// Somebody who is about to park on a segment's doorbell, or is parked on it.
#[derive(Debug)]
pub(super) struct Parking {
    segment: Arc<Mapping>,
    ticket: doorbell::Ticket,
}

impl Parking {
    /// Step W4.
    pub(super) fn park(&self, longest: Duration) {
        doorbell::park(&self.segment.bell(), self.ticket, longest);
    }

    pub(super) fn ticket(&self) -> doorbell::Ticket {
        self.ticket
    }

    /// Whether the doorbell rang since it was made ready for this.
    pub(super) fn was_rung(&self) -> bool {
        doorbell::was_rung(&self.segment.bell(), self.ticket)
    }
}

impl Drop for Parking {
    fn drop(&mut self) {
        *self.segment.parked.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
    }
}

/// # Safety
/// `base` is the first byte of a mapping that outlives `'a`.
#[inline(always)]
unsafe fn bell_at<'a>(base: NonNull<u8>) -> doorbell::Words<'a> {
    // SAFETY: protocol words, aligned because the base is, accessed as atomics of these widths only: `word` refuses
    // the bell.
    unsafe {
        doorbell::Words {
            bell: AtomicU32::from_ptr(base.as_ptr().add(layout::BELL).cast()),
            watch: AtomicU64::from_ptr(base.as_ptr().add(layout::WATCH).cast()),
        }
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

/// The generation of no region.
const NEVER: u64 = u64::MAX;

/// What the system calls it when there is no memory: `ENOMEM`, or `ERROR_NOT_ENOUGH_MEMORY`.
const OUT_OF_MEMORY: i32 = if cfg!(windows) { 8 } else { 12 };

/// What a piece looks at that is no 8-byte word: the generation of no piece.
static UNFIT: AtomicU64 = AtomicU64::new(NEVER - 1);

/// Some bytes of a segment's heap, together with what tells whether they may still be used.
///
/// All methods that move bytes answer `None`, and move nothing, if the generation has moved, the segment's rank is lost
/// ([`super::regions::condemn`]), or length or alignment are not those asked for. The last two are known when the piece is made:
/// an access to an 8-byte word is one comparison.
#[derive(Clone, Debug)]
///
/// `M` keeps the mapping: an owner, or a borrow for what is over at once.
pub(super) struct Piece<M = Arc<Mapping>> {
    /// `len` bytes of the heap of `mapping`, or those that [`Mapping::outside`] was told of.
    start: NonNull<u8>,
    /// `word` if the piece is one aligned 8-byte word, else [`UNFIT`].
    word8: NonNull<AtomicU64>,
    /// What the word must hold: 32 bits, or [`NEVER`]; not what [`UNFIT`] holds.
    generation: u64,
    /// First byte of `mapping`, a segment.
    base: NonNull<u8>,
    len: usize,
    /// The protocol word of `mapping` that must hold `generation`.
    word: NonNull<AtomicU64>,
    /// Keeps the memory.
    mapping: M,
}

// SAFETY: the pointers lead into `mapping`, which is `Send` and `Sync` and lives as long as the piece, and to a static.
unsafe impl Send for Piece {}
// SAFETY: as above.
unsafe impl Sync for Piece {}

impl Piece {
    pub(super) fn mapping(&self) -> &Arc<Mapping> {
        &self.mapping
    }
}

impl<M: Clone + Deref<Target = Mapping>> Piece<M> {
    #[inline(always)]
    fn new(
        mapping: M,
        base: NonNull<u8>,
        start: NonNull<u8>,
        len: usize,
        word: NonNull<AtomicU64>,
        generation: u64,
    ) -> Self {
        let fit = len == 8 && start.addr().get().is_multiple_of(8);
        let word8 = if fit { word } else { NonNull::from(&UNFIT) };
        Piece { start, word8, generation, base, len, word, mapping }
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The `len` bytes from `offset` on.
    pub(super) fn part(&self, offset: usize, len: usize) -> Option<Self> {
        offset.checked_add(len).filter(|&end| end <= self.len)?;
        // SAFETY: inside the piece, by the check.
        let start = unsafe { self.start.add(offset) };
        Some(Piece::new(self.mapping.clone(), self.base, start, len, self.word, self.generation))
    }

    /// Whether the segment's rank is lost.
    pub(super) fn is_lost(&self) -> bool {
        // SAFETY: a protocol word of the mapping, aligned like `base`.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(layout::LOST).cast()) }.load(Relaxed) != 0
    }

    /// Whether the region was deregistered.
    pub(super) fn is_stale(&self) -> bool {
        self.moved() & !CONDEMNED != 0
    }

    #[inline(always)]
    fn moved(&self) -> u64 {
        // SAFETY: a protocol word of the mapping. Acquire: pairs with the release in `regions::register`.
        unsafe { self.word.as_ref() }.load(Acquire) ^ self.generation
    }

    /// 0 if `len` bytes may be copied.
    #[inline(always)]
    fn objection(&self, len: usize) -> u64 {
        self.moved() | (self.len ^ len) as u64
    }

    /// 0 if it is one word of `width` bytes that may be accessed.
    #[inline(always)]
    fn word_objection(&self, width: usize) -> u64 {
        if width == 8 {
            // SAFETY: a protocol word of the mapping, or a static. Acquire: as in `moved`.
            unsafe { self.word8.as_ref() }.load(Acquire) ^ self.generation
        } else {
            self.objection(width) | (self.start.addr().get() & (width - 1)) as u64
        }
    }

    /// The word's bits (acquire), zero-extended. `width` is 4 or 8.
    #[inline(always)]
    pub(super) fn load(&self, width: usize) -> Option<u64> {
        if self.word_objection(width) != 0 {
            return None;
        }
        // SAFETY: `width` aligned bytes, all checked above.
        Some(unsafe {
            if width == 4 { access::load4(self.start.as_ptr()).into() } else { access::load8(self.start.as_ptr()) }
        })
    }

    /// Store a word's low bits (release) and ring. `width` is 4 or 8.
    #[inline(always)]
    pub(super) fn store(&self, width: usize, bits: u64) -> Option<()> {
        self.store_silently(width, bits)?;
        self.ring();
        Some(())
    }

    /// [`Piece::store`] without ringing.
    #[inline(always)]
    pub(super) fn store_silently(&self, width: usize, bits: u64) -> Option<()> {
        if self.word_objection(width) != 0 {
            return None;
        }
        // SAFETY: `width` aligned bytes, all checked above.
        unsafe {
            if width == 4 {
                access::store4(self.start.as_ptr(), bits as u32);
            } else {
                access::store8(self.start.as_ptr(), bits);
            }
        }
        Some(())
    }

    /// Read-modify-write of a 4-byte word (acquire and release), and ring.
    #[inline(always)]
    pub(super) fn rmw4(&self, amo: Amo<u32>) -> Option<u32> {
        if self.word_objection(4) != 0 {
            return None;
        }
        // SAFETY: 4 aligned bytes, all checked above.
        let old = unsafe { access::rmw4(self.start.as_ptr(), amo) };
        self.ring();
        Some(old)
    }

    /// Read-modify-write of an 8-byte word (acquire and release), and ring.
    #[inline(always)]
    pub(super) fn rmw8(&self, amo: Amo<u64>) -> Option<u64> {
        if self.word_objection(8) != 0 {
            return None;
        }
        // SAFETY: 8 aligned bytes, all checked above.
        let old = unsafe { access::rmw8(self.start.as_ptr(), amo) };
        self.ring();
        Some(old)
    }

    /// Whether [`Piece::copy_in`] of `len` bytes is possible now.
    #[inline(always)]
    pub(super) fn admits(&self, len: usize) -> bool {
        self.objection(len) == 0
    }

    /// Fill the piece from `bytes`, which must be as long. The caller rings afterwards.
    #[inline(always)]
    pub(super) fn copy_in(&self, bytes: &[u8]) -> Option<()> {
        if self.objection(bytes.len()) != 0 {
            return None;
        }
        // SAFETY: both sides have `bytes.len()` bytes, checked above.
        unsafe { access::copy_in(self.start.as_ptr(), bytes.as_ptr(), bytes.len()) };
        Some(())
    }

    /// Fill `bytes`, which must be as long, from the piece.
    #[inline(always)]
    pub(super) fn copy_out(&self, bytes: &mut [u8]) -> Option<()> {
        if self.objection(bytes.len()) != 0 {
            return None;
        }
        // SAFETY: both sides have `bytes.len()` bytes, checked above.
        unsafe { access::copy_out(bytes.as_mut_ptr(), self.start.as_ptr(), bytes.len()) };
        Some(())
    }

    /// Fill the piece from another one, which must be as long. `None` may be the fault of either. The caller
    /// rings afterwards.
    #[inline(always)]
    pub(super) fn copy_from<N: Clone + Deref<Target = Mapping>>(&self, from: &Piece<N>) -> Option<()> {
        if self.objection(from.len) | from.objection(from.len) != 0 {
            return None;
        }
        // SAFETY: both sides have `from.len` bytes, checked above.
        unsafe { access::copy_between(self.start.as_ptr(), from.start.as_ptr(), from.len) };
        Some(())
    }

    /// Wake the segment's rank if it is parked and waits for what was written to the piece: P2 and P3.
    #[inline(always)]
    pub(super) fn ring(&self) {
        // SAFETY: `mapping` has this base and outlives the borrow.
        let bell = unsafe { bell_at(self.base) };
        if let Some(seen) = doorbell::parked(&bell) {
            self.wake(seen);
        }
    }

    /// The same, if it waits for that or for notices.
    #[inline(always)]
    pub(super) fn ring_with_notice(&self) {
        // SAFETY: as in `ring`.
        let bell = unsafe { bell_at(self.base) };
        if let Some(seen) = doorbell::parked(&bell) {
            self.wake_with_notice(seen);
        }
    }

    /// Out of line, so that the short path keeps what it has in registers.
    #[cold]
    #[inline(never)]
    fn wake(&self, seen: doorbell::Parked) {
        doorbell::wake(&self.mapping.bell(), seen, |bits| self.concerns(bits));
    }

    /// As [`Piece::wake`], for notices too.
    #[cold]
    #[inline(never)]
    fn wake_with_notice(&self, seen: doorbell::Parked) {
        doorbell::wake(&self.mapping.bell(), seen, |bits| self.concerns(bits) || Watch::wants_notices(bits));
    }

    /// Whether writing the piece concerns a waiter with these bits.
    fn concerns(&self, bits: u64) -> bool {
        let start = self.offset() as u64;
        Watch::covers(bits, start, start.saturating_add(self.len as u64))
    }

    /// Offset of the first byte in the segment; without meaning outside of it.
    pub(super) fn offset(&self) -> usize {
        self.start.addr().get().wrapping_sub(self.base.addr().get())
    }

    /// Whether the piece starts at a multiple of `align` bytes.
    pub(super) fn is_aligned(&self, align: usize) -> bool {
        self.start.addr().get().is_multiple_of(align)
    }
}
