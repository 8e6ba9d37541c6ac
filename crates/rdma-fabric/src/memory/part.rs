//! Parts of resolved memory that borrow from the whole.
//!
//! Resolving reads the owner's table, and an independent pointer counts as an owner of the value
//! kept by its place. A part does neither: a program that walks through a region pays only for the
//! comparison of bounds.
//!
//! # Safety
//! A part is a bitwise copy of the whole's place whose reference to the keep-alive is not counted.
//! It is never dropped, never returned by value, and does not outlive the whole; a clone of it is
//! counted like any other.

#![allow(unsafe_code)]

use super::{LocalSpan, LocalWord, Place, RemoteAddr, RemoteSpan, RemoteWord};
use crate::{AtomicWord, FabricError, Pod, Result};
use core::{
    fmt,
    marker::PhantomData,
    mem::ManuallyDrop,
    ops::{Deref, Range},
    ptr,
};

/// A word or span inside a resolved span, which it borrows. It dereferences to the pointer that
/// [`Fabric`](crate::Fabric)'s operations take; a clone of that pointer is independent.
pub struct Part<'a, P> {
    /// Uses the whole's keep-alive without counting as its owner.
    pointer: ManuallyDrop<P>,
    whole: PhantomData<&'a Place>,
}

impl<P> Deref for Part<'_, P> {
    type Target = P;

    #[inline(always)]
    fn deref(&self) -> &P {
        &self.pointer
    }
}

impl<P: fmt::Debug> fmt::Debug for Part<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Returns the result of `make` for `len` bytes of `whole`, which start `offset` bytes into it and
/// at a multiple of `align`. `make` drops nothing and does not panic.
#[inline(always)]
fn part<P>(
    whole: &Place,
    offset: usize,
    len: usize,
    align: usize,
    make: impl FnOnce(Place) -> P,
) -> Result<Part<'_, P>> {
    if !whole.contains(offset, len) {
        return Err(outside(whole, offset, len));
    }
    // SAFETY: valid for reads; the copy moves through `narrowed` and `make` into a `ManuallyDrop`,
    // so its reference to the keep-alive is never given up. The whole keeps the keep-alive as long
    // as it is borrowed, and the part borrows it.
    let pointer = ManuallyDrop::new(unsafe { ptr::read(whole) }.narrowed(offset, len));
    if !pointer.is_aligned(align) {
        return Err(FabricError::misaligned(pointer.addr(), align));
    }
    let pointer = ManuallyDrop::new(make(ManuallyDrop::into_inner(pointer)));
    Ok(Part { pointer, whole: PhantomData })
}

#[cold]
#[inline(never)]
fn outside(whole: &Place, offset: usize, len: usize) -> FabricError {
    let all = whole.addr();
    let addr = RemoteAddr { offset: all.offset.saturating_add(offset as u64), ..all };
    FabricError::out_of_bounds(addr, len as u64, all.offset + whole.len() as u64)
}

macro_rules! parts {
    ($span:ident, $word:ident) => {
        impl<T: Pod> $span<T> {
            /// Returns the elements in `range`, which borrow this span. [`Self::slice`] returns
            /// independent elements.
            ///
            /// # Errors
            /// [`FabricError::OutOfBounds`] if `range` is not inside.
            #[inline(always)]
            pub fn part(&self, range: Range<usize>) -> Result<Part<'_, $span<T>>> {
                self.part_as(range.start.saturating_mul(size_of::<T>()), range.end.wrapping_sub(range.start))
            }

            /// Returns `elements` elements of any type that start `offset` bytes into this span,
            /// which they borrow.
            ///
            /// # Errors
            /// [`FabricError::OutOfBounds`], [`FabricError::Misaligned`].
            #[inline(always)]
            pub fn part_as<U: Pod>(&self, offset: usize, elements: usize) -> Result<Part<'_, $span<U>>> {
                let bytes = elements.saturating_mul(size_of::<U>());
                part(self.place(), offset, bytes, align_of::<U>(), |place| $span::new(place, elements))
            }

            /// Returns the word that starts `offset` bytes into this span, which it borrows.
            ///
            /// # Errors
            /// [`FabricError::OutOfBounds`], [`FabricError::Misaligned`].
            #[inline(always)]
            pub fn word_at<W: AtomicWord>(&self, offset: usize) -> Result<Part<'_, $word<W>>> {
                part(self.place(), offset, W::BYTES, W::BYTES, $word::new)
            }
        }
    };
}
parts!(RemoteSpan, RemoteWord);
parts!(LocalSpan, LocalWord);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Rank, RegionKey,
        provider::{KeepAlive, Place},
    };
    use std::sync::Arc;

    fn span(kept: &Arc<()>) -> RemoteSpan<u8> {
        let region = RegionKey { index: 3, generation: 1 };
        let addr = RemoteAddr { rank: Rank::new(7), region, offset: 12 };
        RemoteSpan::new(Place::remote(addr, 64, KeepAlive::new(kept.clone())), 64)
    }

    #[test]
    fn a_part_is_where_it_says_and_counts_no_owner() {
        let kept = Arc::new(());
        let whole = span(&kept);
        let word = whole.word_at::<u64>(28).unwrap();
        assert_eq!((word.rank(), word.addr().offset, Arc::strong_count(&kept)), (Rank::new(7), 40, 2));
        let inner = whole.part(8..24).unwrap();
        assert_eq!((inner.len(), inner.addr().offset), (16, 20));
        let innermost = inner.part_as::<u32>(4, 3).unwrap();
        assert_eq!((innermost.len(), innermost.place().len(), innermost.addr().offset), (3, 12, 24));
        // All of them share one keep-alive; a clone alone keeps it alive.
        let alone: RemoteWord<u64> = RemoteWord::clone(&word);
        drop(whole);
        assert_eq!((alone.addr().offset, Arc::strong_count(&kept)), (40, 2));
        drop(alone);
        assert_eq!(Arc::strong_count(&kept), 1);
    }

    #[test]
    #[allow(clippy::reversed_empty_ranges)]
    fn bounds_and_alignment_are_checked() {
        let whole = span(&Arc::new(()));
        for (offset, aligned) in [(57, true), (64, true), (usize::MAX, true), (8, false)] {
            let refused = whole.word_at::<u64>(offset).expect_err("not a word").to_string();
            let named = refused.contains("rank 7") && refused.contains("region 3.1");
            assert!(named && refused.contains("aligned") != aligned, "{refused}");
        }
        assert!(
            whole.part(core::ops::Range { start: 8, end: 4 }).is_err()
                && whole.part(0..65).is_err()
                && whole.part_as::<u64>(0, usize::MAX).is_err()
        );
        assert_eq!(whole.part(64..64).unwrap().len(), 0);
    }
}
