//! Windows: the parts of the heap that stand for parts of the program's address space.

use std::ops::Range;

/// A window. The byte at address `addresses.start + n` is byte `heap_at + n` of the heap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// Whole pages.
    pub(crate) addresses: Range<usize>,
    /// A multiple of the granularity of mappings.
    pub(crate) heap_at: usize,
}

impl Window {
    pub(crate) fn contains(&self, range: &Range<usize>) -> bool {
        self.addresses.start <= range.start && range.end <= self.addresses.end
    }

    pub(crate) fn overlaps(&self, range: &Range<usize>) -> bool {
        self.addresses.start < range.end && range.start < self.addresses.end
    }

    /// Returns the offset in the heap of the byte at `address`; `None` if it is not in the window.
    pub(crate) fn heap_of(&self, address: usize) -> Option<usize> {
        let ahead = address.checked_sub(self.addresses.start)?;
        (address < self.addresses.end).then(|| self.heap_at.checked_add(ahead)).flatten()
    }
}

/// Granularity of windows, in bytes: that of mappings.
const GRAIN: usize = crate::memory::layout::PAGE;

/// Returns the numbers of bytes to set aside on each side of registered pages, to be tried in this
/// order, in a heap of `heap` bytes. The program's addresses are in few neighbourhoods: its own
/// arrays, the two areas of `malloc`, the stack of each thread.
pub(crate) fn margins(heap: usize) -> impl Iterator<Item = usize> {
    [32, 256, 4096].into_iter().map(move |part| heap / part / GRAIN * GRAIN).chain([0])
}

/// Returns the addresses of a window around `pages`, with `margin` bytes on each side where no other
/// window is. No window overlaps `pages`.
pub(crate) fn around(pages: &Range<usize>, margin: usize, others: &[Window]) -> Range<usize> {
    let below = others.iter().map(|other| other.addresses.end).filter(|&end| end <= pages.start).max();
    let above = others.iter().map(|other| other.addresses.start).filter(|&start| start >= pages.end).min();
    // The first page of a process is never mapped.
    let start = pages.start.saturating_sub(margin).max(below.unwrap_or(0)).min(pages.start);
    let end = pages.end.saturating_add(margin).min(above.unwrap_or(usize::MAX)).max(pages.end);
    start..end
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 4096;

    #[test]
    fn a_window_surrounds_its_pages_and_touches_no_other() {
        let pages = 100 * PAGE..102 * PAGE;
        assert_eq!(around(&pages, 10 * PAGE, &[]), 90 * PAGE..112 * PAGE);
        let other = |pages: Range<usize>| Window { addresses: pages.start * PAGE..pages.end * PAGE, heap_at: 0 };
        let others = [other(10..95), other(102..200), other(300..301)];
        assert_eq!(around(&pages, 10 * PAGE, &others), 95 * PAGE..102 * PAGE);
        assert_eq!(around(&(0..PAGE), 10 * PAGE, &[]), 0..11 * PAGE);
    }

    #[test]
    fn addresses_have_one_place_in_the_heap() {
        let window = Window { addresses: 3 * PAGE..7 * PAGE, heap_at: 1 << 20 };
        assert_eq!(window.heap_of(3 * PAGE + 5), Some((1 << 20) + 5));
        assert_eq!([3 * PAGE - 1, 7 * PAGE].map(|at| window.heap_of(at)), [None, None]);
        assert!(window.contains(&(3 * PAGE..7 * PAGE)) && !window.contains(&(6 * PAGE..8 * PAGE)));
        assert!(window.overlaps(&(6 * PAGE..8 * PAGE)) && !window.overlaps(&(7 * PAGE..8 * PAGE)));
    }

    #[test]
    fn margins_shrink_to_nothing() {
        let margins: Vec<usize> = margins(256 << 20).collect();
        assert_eq!(margins, [8 << 20, 1 << 20, 65_536, 0]);
    }
}
