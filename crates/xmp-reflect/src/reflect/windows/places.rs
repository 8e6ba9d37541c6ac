//! The layout of each node's part of the window.

#![deny(clippy::arithmetic_side_effects)]

use crate::plan::Plan;

/// The layout of one node's part of the window, in words.
pub(super) struct Places {
    /// For the k-th received piece, the first word of its room.
    pub(super) rooms: Vec<usize>,
    /// The number of pieces that are sent.
    pub(super) sends: usize,
    /// The size of the whole part.
    pub(super) words: usize,
}

impl Places {
    /// Words for READY come first, then those for END, then room.
    fn new(sends: usize, bytes: impl Iterator<Item = u64>) -> Self {
        let bytes: Vec<u64> = bytes.collect();
        // Words that no memory has lie beyond the end of every window.
        let mut words = sends.saturating_add(bytes.len());
        let room = |bytes: &u64| {
            let start = words;
            words = words.saturating_add(bytes.div_ceil(8) as usize);
            start
        };
        let rooms = bytes.iter().map(room).collect();
        Places { rooms, sends, words }
    }
}

/// The layout of a node's part of the window, computed from its pieces, by array.
pub(super) fn places_of(plans: &[(usize, Plan)]) -> Places {
    let bytes = plans.iter().flat_map(|(element, plan)| {
        plan.receives.iter().map(move |transfer| transfer.section.cells().saturating_mul(*element) as u64)
    });
    Places::new(plans.iter().map(|(_, plan)| plan.sends.len()).sum(), bytes)
}
