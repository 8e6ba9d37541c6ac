//! The layout of each node's part of the window.

use crate::plan::Plan;

/// Where things are in one node's part of the window, in words.
pub(super) struct Places {
    /// Of the k-th piece that is received: the first word of its room.
    pub(super) rooms: Vec<usize>,
    /// The number of pieces that are sent.
    pub(super) sends: usize,
    /// The words of the whole part.
    pub(super) words: usize,
}

impl Places {
    /// Words for READY come first, then those for END, then room.
    fn new(sends: usize, bytes: impl Iterator<Item = u64>) -> Self {
        let bytes: Vec<u64> = bytes.collect();
        let mut words = sends + bytes.len();
        let room = |bytes: &u64| {
            let start = words;
            words += bytes.div_ceil(8) as usize;
            start
        };
        let rooms = bytes.iter().map(room).collect();
        Places { rooms, sends, words }
    }
}

/// The layout of a node's part of the window, computed from its pieces, by array.
pub(super) fn places_of(plans: &[(usize, Plan)]) -> Places {
    let bytes = plans.iter().flat_map(|(element, plan)| {
        plan.receives.iter().map(move |transfer| (transfer.section.cells() * element) as u64)
    });
    Places::new(plans.iter().map(|(_, plan)| plan.sends.len()).sum(), bytes)
}
