//! The pieces of a heap that are registered one by one.
//!
//! A rank's allocator takes symmetric regions from the start of the heap and other regions from its
//! end. Pieces therefore grow from both ends: the first has [`FIRST`] bytes, the second as many,
//! each later one twice as many as the one before. The registered bytes are at most twice the bytes
//! that the regions extend over, or one [`FIRST`] at each end. Boundaries are multiples of 64 from
//! the heap's start, so no word is in two pieces.

use core::ops::Range;

/// Number of bytes of the piece at each end of a heap.
pub(super) const FIRST: usize = 256 << 10;

/// The pieces of a heap of this number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pieces {
    len: usize,
}

impl Pieces {
    pub(super) fn new(len: usize) -> Self {
        Self { len }
    }

    /// Returns the first byte of the upper half.
    fn middle(self) -> usize {
        self.len / 2 / 64 * 64
    }

    /// Returns the piece that contains a byte of the heap.
    pub(super) fn of(self, at: usize) -> Range<usize> {
        let (middle, len) = (self.middle(), self.len);
        if at < middle {
            let Range { start, end } = from_end(at);
            start..end.min(middle)
        } else {
            let Range { start, end } = from_end((len - 1).saturating_sub(at));
            len.saturating_sub(end).max(middle)..len.saturating_sub(start)
        }
    }

    /// Returns the pieces that contain any of these bytes of the heap, in order.
    pub(super) fn with_any(self, bytes: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let end = bytes.end.min(self.len);
        let mut next = bytes.start;
        core::iter::from_fn(move || {
            let piece = (next < end).then(|| self.of(next))?;
            next = piece.end;
            Some(piece)
        })
    }
}

/// Returns the piece that contains the byte at this distance from an end, as distances.
fn from_end(distance: usize) -> Range<usize> {
    match (distance / FIRST).checked_ilog2() {
        None => 0..FIRST,
        Some(doubled) => {
            let start = FIRST << doubled;
            start..start.saturating_mul(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn they_double_from_both_ends() {
        let pieces = Pieces::new(16 * FIRST);
        let ends: Vec<usize> = pieces.with_any(0..16 * FIRST).map(|piece| piece.end / FIRST).collect();
        assert_eq!(ends, [1, 2, 4, 8, 12, 14, 15, 16]);
        assert_eq!(pieces.with_any(FIRST..FIRST).count(), 0);
        assert!(Pieces::new(640).with_any(0..640).eq([0..320, 320..640]), "a short heap");
    }

    proptest! {
        #[test]
        fn each_byte_is_in_one_piece_and_words_are_whole(grains in 1_usize..1 << 30, at: usize, len in 0_usize..1 << 24) {
            let all = grains * 64;
            let (pieces, at) = (Pieces::new(all), at % all);
            let piece = pieces.of(at);
            prop_assert!(piece.contains(&at) && piece.end <= all);
            prop_assert!(piece.start.is_multiple_of(64) && piece.end.is_multiple_of(64));
            prop_assert_eq!(pieces.of(piece.start), piece.clone());
            prop_assert_eq!(pieces.of(piece.end - 1), piece.clone());
            let extent = (piece.end - piece.start).max(FIRST);
            prop_assert!(extent <= 2 * at.min(all - 1 - at).max(FIRST), "at most twice the distance");
            let end = (at + len).min(all);
            let found: Vec<_> = pieces.with_any(at..end).collect();
            prop_assert!(found.windows(2).all(|two| two[0].end == two[1].start));
            if let (Some(first), Some(last)) = (found.first(), found.last()) {
                prop_assert!(first.contains(&at) && last.contains(&(end - 1)));
            } else {
                prop_assert_eq!(len, 0);
            }
        }
    }
}
