//! Operations at an offset inside a span, executed directly or not at all, for callers that keep
//! one span for a whole region. Operations on individually resolved spans and words are in
//! [`operations`](super::operations).

use super::{Fabric, direct::put_now};
use crate::{
    Amo, AtomicWord, LocalSpan, Pod, RemoteSpan, RemoteWord, access,
    provider::{Place, Source},
};

impl Fabric {
    /// Returns the operations that complete before they return.
    #[inline(always)]
    pub fn direct(&self) -> Direct<'_> {
        Direct(self)
    }
}

/// Operations that complete before they return, where memory is mapped ([`Fabric::direct`]): for
/// protocols whose fast paths are compiled into their callers. Offsets are in bytes from the start
/// of a span.
#[derive(Clone, Copy, Debug)]
pub struct Direct<'a>(&'a Fabric);

impl Direct<'_> {
    /// Executes an atomic; returns `None`, without any effect, where only [`Fabric::atomic`] can.
    #[inline(always)]
    pub fn atomic<W: AtomicWord>(self, word: &RemoteWord<W>, amo: Amo<W>) -> Option<W> {
        let old = word.place().modify(W::BYTES, amo.to_bits())?;
        self.0.wake_if_parked(word.place());
        Some(W::from_bits(old))
    }

    /// Puts a word; returns `None`, without any effect, where only [`Fabric::put_word`] can.
    #[inline(always)]
    pub fn put_word<W: AtomicWord>(self, to: &RemoteWord<W>, value: W) -> Option<()> {
        to.place().store(W::BYTES, value.to_bits())?;
        self.0.wake_if_parked(to.place());
        Some(())
    }

    /// Puts a few elements of local registered memory; returns `None`, without any effect, where only
    /// [`Fabric::put`] can.
    #[inline(always)]
    pub fn put<T: Pod>(self, to: &RemoteSpan<T>, from: &LocalSpan<T>) -> Option<()> {
        put_now(self.0, to.place(), Source::Place(from.place())).then_some(())
    }

    /// Gets a word; returns `None` where only [`Fabric::get_word`] can.
    #[inline(always)]
    pub fn get_word<W: AtomicWord>(self, from: &RemoteWord<W>) -> Option<W> {
        from.place().load(W::BYTES).map(W::from_bits)
    }

    /// Executes an atomic directly; returns `None`, with no effect, if only [`Fabric::atomic`] can,
    /// or if the word is not inside, or not aligned.
    #[inline(always)]
    pub fn atomic_at<T: Pod, W: AtomicWord>(self, span: &RemoteSpan<T>, offset: usize, amo: Amo<W>) -> Option<W> {
        let old = span.place().modify_at(offset, W::BYTES, amo.to_bits())?;
        self.ring_inside(span.place(), offset, W::BYTES);
        Some(W::from_bits(old))
    }

    /// Executes an atomic directly, as [`Direct::atomic_at`] does, and puts the word's previous value at an offset in
    /// `to`, as [`Direct::put_word_at`] does. Returns `None`, with no effect, unless both are possible; otherwise,
    /// whether the region of `to` was still registered after the atomic, and the value was put.
    #[inline(always)]
    pub fn atomic_into_at<T: Pod, U: Pod, W: AtomicWord>(
        self,
        (word, offset): (&RemoteSpan<T>, usize),
        (to, to_offset): (&RemoteSpan<U>, usize),
        amo: Amo<W>,
    ) -> Option<bool> {
        let put = word.place().modify_into_at(offset, (to.place(), to_offset), W::BYTES, amo.to_bits())?;
        self.ring_inside(word.place(), offset, W::BYTES);
        self.ring_inside(to.place(), to_offset, W::BYTES);
        Some(put)
    }

    /// Puts a word directly; returns `None`, with no effect, where [`Direct::atomic_at`] would.
    #[inline(always)]
    pub fn put_word_at<T: Pod, W: AtomicWord>(self, span: &RemoteSpan<T>, offset: usize, value: W) -> Option<()> {
        span.place().store_at(offset, W::BYTES, value.to_bits())?;
        self.ring_inside(span.place(), offset, W::BYTES);
        Some(())
    }

    /// Gets a word directly; returns `None` where [`Direct::atomic_at`] would.
    #[inline(always)]
    pub fn get_word_at<T: Pod, W: AtomicWord>(self, span: &RemoteSpan<T>, offset: usize) -> Option<W> {
        span.place().load_at(offset, W::BYTES).map(W::from_bits)
    }

    /// Puts a few elements directly; returns `None`, with no effect, if only [`Fabric::put_slice`]
    /// can, or if they are not inside. [`Direct::barrier`] makes them visible.
    #[inline(always)]
    pub fn put_slice_at<T: Pod, U: Pod>(self, span: &RemoteSpan<T>, offset: usize, from: &[U]) -> Option<()> {
        span.place().copy_in_at(offset, bytemuck::cast_slice(from))?;
        self.ring_inside(span.place(), offset, size_of_val(from));
        Some(())
    }

    /// Gets a few elements directly; returns `None`, with the slice unchanged, if only
    /// [`Fabric::get_slice`] can, or if they are not inside.
    #[inline(always)]
    pub fn get_slice_at<T: Pod, U: Pod>(self, span: &RemoteSpan<T>, offset: usize, into: &mut [U]) -> Option<()> {
        span.place().copy_out_at(offset, bytemuck::cast_slice_mut(into))
    }

    /// Puts consecutive words, as [`Direct::put_word_at`] does, in their order.
    #[inline(always)]
    pub fn put_words_at<T: Pod, const N: usize>(self, span: &RemoteSpan<T>, at: usize, words: [u64; N]) -> Option<()> {
        span.place().store_words_at(at, words)?;
        self.ring_inside(span.place(), at, 8 * N);
        Some(())
    }

    /// Gets consecutive words, as [`Direct::get_word_at`] does.
    #[inline(always)]
    pub fn get_words_at<T: Pod, const N: usize>(self, span: &RemoteSpan<T>, at: usize) -> Option<[u64; N]> {
        span.place().load_words_at(at)
    }

    /// Loads consecutive words of local memory, each as [`Fabric::load`] does; returns `None` if
    /// only that method can, or if they are not inside.
    #[inline(always)]
    pub fn load_words_at<T: Pod, const N: usize>(self, span: &LocalSpan<T>, at: usize) -> Option<[u64; N]> {
        span.place().load_words_at(at)
    }

    /// Hints that bytes at this offset will soon be written, so that they may be prefetched into
    /// this CPU's cache. Does nothing where prefetching is not possible.
    #[inline(always)]
    pub fn expect_put_at<T: Pod>(self, span: &RemoteSpan<T>, offset: usize) {
        span.place().expect_store_at(offset);
    }

    /// Returns whether [`Direct::put_word_at`] is possible now.
    #[inline(always)]
    pub fn admits_word_at<T: Pod, W: AtomicWord>(self, span: &RemoteSpan<T>, offset: usize) -> bool {
        span.place().admits_word_at(offset, W::BYTES)
    }

    /// Copies a few bytes from one span to another directly; returns `None`, with no effect, if
    /// only [`Fabric::copy`] can, or if they are not inside. [`Direct::barrier`] makes them
    /// visible.
    #[inline(always)]
    pub fn copy_at<T: Pod, U: Pod>(
        self,
        (to, to_offset): (&RemoteSpan<T>, usize),
        (from, from_offset): (&RemoteSpan<U>, usize),
        bytes: usize,
    ) -> Option<()> {
        to.place().copy_at(to_offset, from.place(), from_offset, bytes)?;
        self.ring_inside(to.place(), to_offset, bytes);
        Some(())
    }

    /// Makes all direct puts of this thread visible. Puts posted by a provider need
    /// [`Fabric::flush`].
    #[inline(always)]
    pub fn barrier(self) {
        access::barrier();
    }

    #[inline(always)]
    fn ring_inside(self, place: &Place, offset: usize, bytes: usize) {
        if place.may_be_parked_at() {
            self.ring_part(place, offset, bytes);
        }
    }

    #[cold]
    #[inline(never)]
    fn ring_part(self, place: &Place, offset: usize, bytes: usize) {
        if let Some(part) = place.part(offset, bytes) {
            self.0.wake(&part);
        }
    }
}
