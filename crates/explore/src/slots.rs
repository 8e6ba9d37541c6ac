//! Operations of a rank that somebody still holds: their numbers, and what is kept for their results.

use crate::{act::Slot, cell::Part};
use std::ops::Range;

/// The cells that a get reads, and which of its bytes each is.
pub(crate) type Parts = Vec<(Part, Range<usize>)>;

/// Which numbers are taken.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    taken: Vec<bool>,
    /// Of gets into bytes, by slot; empty for all else.
    parts: Vec<Parts>,
}

impl Slots {
    /// For an operation whose result is made of `parts`.
    pub(crate) fn take(&mut self, parts: Parts) -> Slot {
        let free = self.taken.iter().position(|taken| !taken).unwrap_or_else(|| {
            self.taken.push(false);
            self.parts.push(Parts::new());
            self.taken.len() - 1
        });
        (self.taken[free], self.parts[free]) = (true, parts);
        Slot::try_from(free).expect("fewer than 255 handles at a time")
    }

    /// Nobody holds the operation any more. What its result was to be made of.
    pub(crate) fn free(&mut self, slot: Slot) -> Parts {
        self.taken[usize::from(slot)] = false;
        std::mem::take(&mut self.parts[usize::from(slot)])
    }

    /// Whether any is taken.
    pub(crate) fn are_taken(&self) -> bool {
        self.taken.contains(&true)
    }

    /// Those up to the last that is taken.
    pub(crate) fn up_to_the_last(&self) -> Vec<bool> {
        let last = self.taken.iter().rposition(|taken| *taken);
        self.taken[..last.map_or(0, |last| last + 1)].to_vec()
    }
}
