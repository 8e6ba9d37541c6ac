//! Checked pieces of shared memory, through which the operations of ranks move all bytes.
//!
//! # Safety
//! `start..start + len` lies in the heap of the mapping that the piece keeps, or is memory
//! guaranteed by the caller of [`Mapping::outside`]; `base` is that mapping's, and `word` one of
//! its protocol words. [`Piece::new`] is called only in this file, by functions that check this.
//! [`Piece::part`] checks against the piece. Offsets that come from shared memory are checked
//! there, so nothing a peer writes leads outside.

#![allow(unsafe_code)]

use super::{Mapping, parking::doorbell_at};
use crate::{
    memory::{layout, regions::CONDEMNED},
    waiting::doorbell::{self, Watch},
};
use core::{
    ops::Deref,
    ptr::NonNull,
    sync::atomic::{
        AtomicU64,
        Ordering::{Acquire, Relaxed},
    },
};
use rdma_fabric::{
    Amo, Blocks, RemoteAddr, access,
    provider::{KeepAlive, Place},
};
use std::sync::Arc;

/// A generation that does not occur.
const NEVER: u64 = u64::MAX;

/// The word that is checked if a piece is not one 8-byte word: no piece has its value as
/// generation.
static UNFIT: AtomicU64 = AtomicU64::new(NEVER - 1);

/// Some bytes of a segment's heap, together with the protocol word that shows whether they may
/// still be used.
///
/// All methods that move bytes return `None`, and move nothing, if the generation has moved, the
/// segment's rank is lost ([`crate::memory::regions::condemn`]), or the length or alignment is
/// not the requested one. Length and alignment are known when the piece is created, so an access to
/// an 8-byte word costs one comparison.
///
/// `M` keeps the mapping alive: an owner, or a borrow for short-lived pieces.
#[derive(Clone, Debug)]
pub(crate) struct Piece<M = Arc<Mapping>> {
    /// `len` bytes of the heap of `mapping`, or those passed to [`Mapping::outside`].
    start: NonNull<u8>,
    /// `word` if the piece is one aligned 8-byte word, else [`UNFIT`].
    word8: NonNull<AtomicU64>,
    /// The value that the word must hold: 32 bits, or [`NEVER`]; never the value of [`UNFIT`].
    generation: u64,
    /// First byte of `mapping`, a segment.
    base: NonNull<u8>,
    len: usize,
    /// The protocol word of `mapping` that must hold `generation`.
    word: NonNull<AtomicU64>,
    /// Keeps the memory alive.
    mapping: M,
}

// SAFETY: the pointers lead into `mapping`, which is `Send` and `Sync` and lives as long as the
// piece, and to a static.
unsafe impl Send for Piece {}
// SAFETY: as for `Send`.
unsafe impl Sync for Piece {}

impl Mapping {
    /// Returns a piece of memory outside the segment, valid as long as the protocol word at
    /// `generation_at` holds `generation`.
    ///
    /// # Safety
    /// Whenever a method of the piece that moves bytes is called, the memory exists and is accessed
    /// through [`access`] only.
    pub(crate) unsafe fn outside(
        self: &Arc<Self>,
        start: NonNull<u8>,
        len: usize,
        generation_at: usize,
        generation: u32,
    ) -> Piece {
        let word = NonNull::from(self.word(generation_at));
        Piece::new(self.clone(), self.base, start, len, word, generation.into())
    }

    /// Returns the piece of `len` bytes at `offset` of the heap, valid as long as the protocol word
    /// at `generation_at` holds `generation`. `None` if it is not inside.
    pub(crate) fn piece(
        self: &Arc<Self>,
        offset: usize,
        len: usize,
        generation_at: usize,
        generation: u32,
    ) -> Option<Piece> {
        let start = self.heap_bytes(offset, len)?;
        let word = NonNull::from(self.word(generation_at));
        Some(Piece::new(self.clone(), self.base, start, len, word, generation.into()))
    }

    /// Returns the piece of the `len` bytes from `start` on, borrowing the mapping. `None` if they
    /// are not inside the heap.
    #[inline]
    pub(crate) fn piece_from(
        &self,
        start: NonNull<u8>,
        len: usize,
        generation_at: usize,
        generation: u64,
    ) -> Option<Piece<&Mapping>> {
        let offset = start.addr().get().checked_sub(self.base.addr().get() + self.heap_at)?;
        self.borrowed_piece(offset, len, generation_at, generation)
    }

    /// Returns the piece that [`Mapping::piece`] returns, but borrows the mapping.
    #[inline(always)]
    pub(crate) fn borrowed_piece(
        &self,
        offset: usize,
        len: usize,
        generation_at: usize,
        generation: u64,
    ) -> Option<Piece<&Mapping>> {
        let start = self.heap_bytes(offset, len)?;
        let word = NonNull::from(self.word(generation_at));
        Some(Piece::new(self, self.base, start, len, word, generation))
    }
}

impl Piece<&Mapping> {
    /// Returns the piece as the place that operations are given; `None` unless `keep_alive` holds
    /// this piece's mapping.
    #[inline]
    pub(crate) fn place(&self, addr: RemoteAddr, keep_alive: &KeepAlive) -> Option<Place> {
        keep_alive.get::<Arc<Mapping>>().filter(|kept| core::ptr::eq(&***kept, self.mapping))?;
        (u64::from(addr.region.generation) == self.generation).then_some(())?;
        let doorbell = NonNull::from(self.mapping.doorbell().doorbell);
        // SAFETY: the piece's invariants hold as long as the mapping is kept, and the keep-alive
        // keeps it. Whenever the word holds the generation, the bytes belong to a registered region
        // and are accessed through `access` only.
        Some(unsafe { Place::mapped(self.start, self.len, self.word, doorbell, addr, keep_alive.clone()) })
    }
}

impl Piece {
    /// Returns the same piece, borrowing the mapping.
    #[inline(always)]
    pub(crate) fn borrowed(&self) -> Piece<&Mapping> {
        let Piece { start, word8, generation, base, len, word, ref mapping } = *self;
        Piece { start, word8, generation, base, len, word, mapping }
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
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the `len` bytes from `offset` on.
    pub(crate) fn part(&self, offset: usize, len: usize) -> Option<Self> {
        offset.checked_add(len).filter(|&end| end <= self.len)?;
        // SAFETY: inside the piece, by the check.
        let start = unsafe { self.start.add(offset) };
        Some(Piece::new(self.mapping.clone(), self.base, start, len, self.word, self.generation))
    }

    /// Returns whether the segment's rank is lost.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost() != 0
    }

    /// Returns the value of the segment's [`layout::LOST`].
    pub(crate) fn lost(&self) -> u64 {
        // SAFETY: a protocol word of the mapping, aligned like `base`.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(layout::LOST).cast()) }.load(Relaxed)
    }

    /// Returns whether the region was deregistered.
    pub(crate) fn is_stale(&self) -> bool {
        self.moved() & !CONDEMNED != 0
    }

    #[inline(always)]
    fn moved(&self) -> u64 {
        // SAFETY: a protocol word of the mapping. Acquire: pairs with the release in
        // `regions::register`.
        unsafe { self.word.as_ref() }.load(Acquire) ^ self.generation
    }

    /// Returns 0 if the piece is `len` bytes long and may be copied.
    #[inline(always)]
    fn objection(&self, len: usize) -> u64 {
        self.moved() | (self.len ^ len) as u64
    }

    /// Returns 0 if the piece is one aligned word of `width` bytes that may be accessed.
    #[inline(always)]
    fn word_objection(&self, width: usize) -> u64 {
        if width == 8 {
            // SAFETY: a protocol word of the mapping, or a static. Acquire: as in `moved`.
            unsafe { self.word8.as_ref() }.load(Acquire) ^ self.generation
        } else {
            self.objection(width) | (self.start.addr().get() & (width - 1)) as u64
        }
    }

    /// Stores a word's low bits (release), without ringing. `width` is 4 or 8.
    #[inline(always)]
    pub(crate) fn store_silently(&self, width: usize, bits: u64) -> Option<()> {
        if self.word_objection(width) != 0 {
            return None;
        }
        // SAFETY: `width` aligned bytes, all checked above.
        unsafe { access::store(self.start.as_ptr(), width, bits) };
        Some(())
    }

    /// Applies `amo` to a word (acquire and release), without ringing, and returns the previous
    /// value. `width` is 4 or 8.
    #[inline(always)]
    pub(crate) fn modify(&self, width: usize, amo: Amo<u64>) -> Option<u64> {
        if self.word_objection(width) != 0 {
            return None;
        }
        // SAFETY: `width` aligned bytes, all checked above.
        Some(unsafe { access::rmw(self.start.as_ptr(), width, amo) })
    }

    /// Returns whether [`Piece::copy_in`] of `len` bytes is possible now.
    #[inline(always)]
    pub(crate) fn admits(&self, len: usize) -> bool {
        self.objection(len) == 0
    }

    /// Fills the piece from `bytes`, which must have its length. The caller rings afterwards.
    #[inline(always)]
    pub(crate) fn copy_in(&self, bytes: &[u8]) -> Option<()> {
        if self.objection(bytes.len()) != 0 {
            return None;
        }
        // SAFETY: both sides have `bytes.len()` bytes, checked above.
        unsafe { access::copy_in(self.start.as_ptr(), bytes.as_ptr(), bytes.len()) };
        Some(())
    }

    /// Fills `bytes`, which must have the piece's length, from the piece.
    #[inline(always)]
    pub(crate) fn copy_out(&self, bytes: &mut [u8]) -> Option<()> {
        if self.objection(bytes.len()) != 0 {
            return None;
        }
        // SAFETY: both sides have `bytes.len()` bytes, checked above.
        unsafe { access::copy_out(bytes.as_mut_ptr(), self.start.as_ptr(), bytes.len()) };
        Some(())
    }

    /// Fills the piece from another one, which must have the same length. `None` may be due to
    /// either. The caller rings afterwards.
    #[inline(always)]
    pub(crate) fn copy_from<N: Clone + Deref<Target = Mapping>>(&self, from: &Piece<N>) -> Option<()> {
        if self.objection(from.len) | from.objection(from.len) != 0 {
            return None;
        }
        // SAFETY: both sides have `from.len` bytes, checked above.
        unsafe { access::copy_between(self.start.as_ptr(), from.start.as_ptr(), from.len) };
        Some(())
    }

    /// Fills blocks of `len` bytes, which extend over the whole piece, from those of another one,
    /// which are laid out in the same way. `None` may be due to either. The caller rings
    /// afterwards.
    pub(crate) fn copy_blocks_from<N: Clone + Deref<Target = Mapping>>(
        &self,
        from: &Piece<N>,
        len: usize,
        blocks: Blocks,
    ) -> Option<()> {
        let extent = blocks.extent(len)?;
        if self.objection(extent) | from.objection(extent) != 0 {
            return None;
        }
        let (to, from, count) = (self.start.as_ptr(), from.start.as_ptr(), blocks.count as usize);
        for at in (0..count).map(|block| block * blocks.stride as usize) {
            // SAFETY: both sides have `extent` bytes, checked above, and no block ends behind them.
            unsafe { access::copy_one_of(to.wrapping_add(at), from.wrapping_add(at), len, len.saturating_mul(count)) };
        }
        Some(())
    }

    /// Wakes the segment's rank if it is parked and waits for bytes of the piece, which were
    /// written: P2 and P3.
    #[inline(always)]
    pub(crate) fn ring(&self) {
        // SAFETY: `mapping` has this base and outlives the borrow.
        let doorbell = unsafe { doorbell_at(self.base) };
        if let Some(seen) = doorbell::parked(&doorbell) {
            self.wake(seen);
        }
    }

    /// Wakes the segment's rank if it is parked and waits for notices, or for bytes of the piece.
    #[inline(always)]
    pub(crate) fn ring_with_notice(&self) {
        self.mapping.ring_with_notice(self.start, self.len);
    }

    /// Rings on the slow path, out of line, so that the fast path keeps its values in registers.
    #[cold]
    #[inline(never)]
    fn wake(&self, seen: doorbell::Parked) {
        doorbell::wake(&self.mapping.doorbell(), seen, |bits| self.concerns(bits));
    }

    /// Returns whether writing the piece concerns a waiter with these bits.
    fn concerns(&self, bits: u64) -> bool {
        let start = self.offset() as u64;
        Watch::covers(bits, start, start.saturating_add(self.len as u64))
    }

    /// Returns the offset of the first byte in the segment; meaningless for memory outside it.
    pub(crate) fn offset(&self) -> usize {
        self.start.addr().get().wrapping_sub(self.base.addr().get())
    }

    /// Returns whether the piece starts at a multiple of `align` bytes.
    pub(crate) fn is_aligned(&self, align: usize) -> bool {
        self.start.addr().get().is_multiple_of(align)
    }
}
