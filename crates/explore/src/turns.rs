//! The order of puts, if [`Caps::puts_in_order`](rdma_fabric::Caps::puts_in_order) is guaranteed:
//! the pieces of a put may arrive in any order, but after all pieces of its poster's earlier puts
//! to the same target.
//!
//! Each put in flight has a turn, 1 or 2, which differs from that of the put before it. The turn
//! distinguishes the pieces of the put that may arrive from those of later ones, as only the oldest
//! put arrives. The oldest one's turn is always 1, so that equal states look the same.

use crate::state::{Item, State};
use rdma_fabric::Rank;

impl State {
    /// Returns the turn of the put that `by` posts to `target` now.
    pub(crate) fn next_turn(&self, by: Rank, target: Rank) -> u8 {
        let mut before = self.items.iter().rev().filter(|item| item.is_put_of(by, target));
        before.next().map_or(1, |last| 3 - last.turn)
    }

    /// Returns whether the put at `place` may arrive: all earlier puts of its poster to the target
    /// have arrived.
    pub(crate) fn is_its_turn(&self, place: usize) -> bool {
        let Item { by, target, turn, .. } = self.items[place];
        turn == 0 || !self.items[..place].iter().any(|item| item.is_put_of(by, target) && item.turn != turn)
    }

    /// Records that a piece of a put by `by` to `target` has arrived, or can no longer arrive.
    pub(crate) fn take_turns(&mut self, by: Rank, target: Rank) {
        let oldest = self.items.iter().find(|item| item.is_put_of(by, target));
        if oldest.is_some_and(|put| put.turn == 2) {
            self.items.iter_mut().filter(|item| item.is_put_of(by, target)).for_each(|put| put.turn = 3 - put.turn);
        }
    }
}

impl Item {
    fn is_put_of(&self, by: Rank, target: Rank) -> bool {
        self.by == by && self.target == target && self.is_put()
    }
}
