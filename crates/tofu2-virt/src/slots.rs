//! Tables of values in reusable slots.

use super::huge_pages::in_huge_pages;

/// Marks the end of a list of slots.
pub(super) const NONE: u32 = u32::MAX;

/// A value that can be kept in a [`Slots`] table.
pub(super) trait Slotted {
    /// The next slot in the list of this one: the free list, or a list of the table's user.
    fn next(&mut self) -> &mut u32;

    /// Takes over the slot's state from its previous value.
    #[inline]
    fn succeed(&mut self, _before: &Self) {}
}

/// Values in slots. Freed slots are reused, the most recently freed first.
#[derive(Debug)]
pub(super) struct Slots<T> {
    slots: Vec<T>,
    free: u32,
}

impl<T: Slotted> Slots<T> {
    pub(super) fn new() -> Self {
        Slots { slots: Vec::new(), free: NONE }
    }

    /// Creates a table that does not move before it has more than `many` slots.
    pub(super) fn with_room(many: u32) -> Self {
        let mut slots = Vec::new();
        // If there is no such room, the table grows when it has to.
        if slots.try_reserve_exact(many as usize).is_ok() {
            in_huge_pages(&mut slots);
        }
        Slots { slots, free: NONE }
    }

    /// Puts a value into a slot. Returns the slot.
    #[inline]
    pub(super) fn insert(&mut self, mut value: T) -> u32 {
        let slot = self.free;
        if slot == NONE {
            self.slots.push(value);
            return self.slots.len() as u32 - 1;
        }
        let there = &mut self.slots[slot as usize];
        self.free = *there.next();
        value.succeed(there);
        *there = value;
        slot
    }

    /// Frees a slot. Its value stays there until another replaces it.
    #[inline]
    pub(super) fn free(&mut self, slot: u32) -> &mut T {
        let there = &mut self.slots[slot as usize];
        *there.next() = self.free;
        self.free = slot;
        there
    }

    #[inline]
    pub(super) fn get(&self, slot: u32) -> &T {
        &self.slots[slot as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: u32) -> &mut T {
        &mut self.slots[slot as usize]
    }

    /// Returns the value of a slot, if it ever had one.
    #[inline]
    pub(super) fn find(&mut self, slot: u32) -> Option<&mut T> {
        self.slots.get_mut(slot as usize)
    }

    /// Returns the peak size of the table in bytes, without memory to which its values point.
    pub(super) fn peak_bytes(&self) -> usize {
        self.slots.len() * size_of::<T>()
    }
}
