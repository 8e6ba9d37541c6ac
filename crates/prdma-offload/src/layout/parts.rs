//! Equal parts of a block.

use super::Layout;

impl Layout {
    /// What is cut into parts: counts of the outermost distance, or, if the bytes are contiguous, elements of so many bytes.
    pub(crate) fn divisible(&self, element: u64) -> u64 {
        self.dims().first().map_or(self.run / element.max(1), |(count, _)| *count)
    }

    /// Cut into so many `parts`, in order and of equal size; `None` if that doesn't go evenly.
    pub(crate) fn parts(&self, parts: u64, element: u64) -> Option<Vec<Layout>> {
        let many = self.divisible(element);
        if parts == 0 || !many.is_multiple_of(parts) {
            return None;
        }
        let each = many / parts;
        let part = |at: u64| match self.dims().split_first() {
            None => Layout::strided(self.offset + at * each * element, each * element, &[]),
            Some(((_, stride), inner)) => {
                let dims: Vec<_> = [(each, *stride)].into_iter().chain(inner.iter().copied()).collect();
                Layout::strided(self.offset + at * each * stride, self.run, &dims)
            }
        };
        (0..parts).map(|at| part(at).ok()).collect()
    }
}
