//! Lists of operations, linked through the operations: an operation is in one list at most.

use super::super::schedule::Op;

/// A first-in-first-out list: the last operation, whose link is the first.
#[derive(Clone, Copy, Debug)]
pub(super) struct List(u32);

impl List {
    pub(super) const EMPTY: List = List(u32::MAX);

    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.0 == u32::MAX
    }

    /// Returns the first operation.
    #[inline]
    pub(super) fn front(self, ops: &[Op]) -> Option<u32> {
        if self.is_empty() { None } else { Some(ops[self.0 as usize].link) }
    }

    #[inline]
    pub(super) fn push(&mut self, ops: &mut [Op], index: u32) {
        let first = self.front(ops).unwrap_or(index);
        ops[index as usize].link = first;
        if !self.is_empty() {
            ops[self.0 as usize].link = index;
        }
        self.0 = index;
    }

    #[inline]
    pub(super) fn pop(&mut self, ops: &mut [Op]) -> Option<u32> {
        let first = self.front(ops)?;
        if first == self.0 {
            *self = List::EMPTY;
        } else {
            ops[self.0 as usize].link = ops[first as usize].link;
        }
        Some(first)
    }
}
