//! Operations in flight: a fixed number of slots with an index.

/// The slots of an endpoint. `H` is the state of an operation in flight.
#[derive(Debug)]
pub(crate) struct Slots<H> {
    held: Vec<Option<H>>,
    free: Vec<usize>,
}

impl<H> Slots<H> {
    /// Returns `len` free slots.
    pub(crate) fn new(len: usize) -> Self {
        Self { held: (0..len).map(|_| None).collect(), free: (0..len).rev().collect() }
    }

    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    /// Returns a free slot, which stays free until [`Slots::start`]; `None` if all are in use.
    pub(crate) fn vacancy(&self) -> Option<usize> {
        self.free.last().copied()
    }

    /// Assigns the slot that [`Slots::vacancy`] has just returned to a posted operation.
    pub(crate) fn start(&mut self, held: H) {
        if let Some(index) = self.free.pop() {
            self.held[index] = Some(held);
        }
    }

    /// Frees a slot, and returns the state of its operation; `None` if it has none.
    pub(crate) fn finish(&mut self, index: usize) -> Option<H> {
        let held = self.held.get_mut(index)?.take()?;
        self.free.push(index);
        Some(held)
    }

    /// Returns the states of all operations in flight.
    pub(crate) fn held(&self) -> impl Iterator<Item = &H> {
        self.held.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_free_again_when_its_operation_is_over() {
        let mut slots = Slots::new(2);
        assert_eq!(slots.vacancy(), Some(0));
        slots.start("a");
        assert_eq!(slots.vacancy(), Some(1));
        slots.start("b");
        assert_eq!((slots.vacancy(), slots.held().count()), (None, 2));
        assert_eq!(slots.finish(0), Some("a"));
        assert_eq!((slots.vacancy(), slots.held().count()), (Some(0), 1));
    }

    #[test]
    fn nothing_ends_twice_and_no_unknown_slot_ends() {
        let mut slots = Slots::new(1);
        assert_eq!(slots.finish(0), None);
        assert_eq!(slots.finish(9), None);
        slots.start(7);
        assert_eq!(slots.finish(0), Some(7));
        assert_eq!(slots.finish(0), None);
        assert_eq!(slots.len(), 1);
    }
}
