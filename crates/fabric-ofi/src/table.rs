//! Operations under way: a fixed number of slots, found again by index, and tokens for them.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

/// What an operation under way is known by to whoever posted it.
///
/// [`crate::Endpoint::wait`] and [`crate::Endpoint::test`] ask for its result, as often as they
/// like. Dropping it does not cancel the operation, which holds its memory until it is over.
#[derive(Debug)]
#[must_use = "without it nobody learns whether the operation succeeded; `drop` says that nobody wants to"]
pub struct Token {
    dropped: Arc<[AtomicU32]>,
    index: usize,
    use_number: u32,
}

impl Drop for Token {
    fn drop(&mut self) {
        // Relaxed: nothing is handed over; the table frees the slot whenever it finds this.
        self.dropped[self.index].store(self.use_number, Ordering::Relaxed);
    }
}

#[derive(Debug)]
enum State<H, O> {
    Free,
    InFlight(H),
    Over(O),
}

#[derive(Debug)]
struct Slot<H, O> {
    state: State<H, O>,
    /// Counts the operations that had the slot; never 0 in a token.
    use_number: u32,
}

/// The slots of an endpoint. `H` is what an operation holds while it is under way, `O` how it
/// ended.
#[derive(Debug)]
pub(crate) struct Table<H, O> {
    slots: Vec<Slot<H, O>>,
    free: Vec<usize>,
    /// For each slot the number of the last use whose token was dropped.
    dropped: Arc<[AtomicU32]>,
}

impl<H, O> Table<H, O> {
    /// Returns `len` free slots.
    pub(crate) fn new(len: usize) -> Self {
        Self {
            slots: (0..len).map(|_| Slot { state: State::Free, use_number: 0 }).collect(),
            free: (0..len).rev().collect(),
            dropped: (0..len).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns a free slot, which stays free until [`Table::start`]; none if all are taken.
    pub(crate) fn vacancy(&mut self) -> Option<usize> {
        if self.free.is_empty() {
            for index in 0..self.slots.len() {
                if matches!(self.slots[index].state, State::Over(_)) && self.is_dropped(index) {
                    self.release(index);
                }
            }
        }
        self.free.last().copied()
    }

    /// Takes the slot that [`Table::vacancy`] has just returned for an operation that was posted.
    pub(crate) fn start(&mut self, held: H) -> Option<Token> {
        let index = self.free.pop()?;
        let slot = &mut self.slots[index];
        slot.use_number = slot.use_number.checked_add(1).unwrap_or(1);
        slot.state = State::InFlight(held);
        Some(Token { dropped: self.dropped.clone(), index, use_number: slot.use_number })
    }

    /// Notes how the operation in a slot ended, and drops what it held; returns whether there was
    /// one.
    pub(crate) fn finish(&mut self, index: usize, outcome: impl FnOnce(&H) -> O) -> bool {
        let dropped = self.is_dropped(index);
        let Some(Slot { state, .. }) = self.slots.get_mut(index) else { return false };
        let State::InFlight(held) = state else { return false };
        *state = State::Over(outcome(held));
        if dropped {
            self.release(index);
        }
        true
    }

    /// Returns whether a token is of this table.
    pub(crate) fn knows(&self, token: &Token) -> bool {
        Arc::ptr_eq(&self.dropped, &token.dropped)
    }

    /// Returns how the operation of one of its tokens ended, if it is over.
    pub(crate) fn outcome(&self, token: &Token) -> Option<&O> {
        match &self.slots[token.index].state {
            State::Over(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// Returns what operations under way hold.
    pub(crate) fn held(&self) -> impl Iterator<Item = &H> {
        self.slots.iter().filter_map(|slot| match &slot.state {
            State::InFlight(held) => Some(held),
            _ => None,
        })
    }

    fn is_dropped(&self, index: usize) -> bool {
        self.slots.get(index).is_some_and(|slot| self.dropped[index].load(Ordering::Relaxed) == slot.use_number)
    }

    fn release(&mut self, index: usize) {
        self.slots[index].state = State::Free;
        self.free.push(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_free_again_when_its_operation_is_over_and_its_token_dropped() {
        let mut table = Table::<&str, u64>::new(2);
        let (first, second) = (table.start("a").unwrap(), table.start("b").unwrap());
        assert_eq!(table.vacancy(), None);
        assert_eq!(table.outcome(&first), None);
        assert!(table.finish(0, |_| 7));
        assert_eq!(table.outcome(&first), Some(&7));
        assert_eq!(table.vacancy(), None, "its token is there");
        drop(first);
        assert_eq!(table.vacancy(), Some(0));
        drop(second);
        assert_eq!(table.held().count(), 1, "dropping a token cancels nothing");
        assert!(table.finish(1, |_| 8));
        assert_eq!(table.held().count(), 0);
    }

    #[test]
    fn nothing_ends_twice_and_no_unknown_slot_ends() {
        let mut table = Table::<(), u64>::new(1);
        assert!(!table.finish(0, |_| 1));
        assert!(!table.finish(9, |_| 1));
        let token = table.start(()).unwrap();
        assert!(table.start(()).is_none());
        assert!(table.finish(0, |_| 1));
        assert!(!table.finish(0, |_| 2));
        assert_eq!(table.outcome(&token), Some(&1));
        assert!(!Table::<(), u64>::new(1).knows(&token));
    }

    #[test]
    fn a_token_of_an_earlier_use_frees_nothing() {
        let mut table = Table::<u8, u64>::new(1);
        drop(table.start(1).unwrap());
        assert!(table.finish(0, |_| 1));
        let token = table.start(2).unwrap();
        assert!(table.finish(0, |_| 2));
        assert_eq!(table.vacancy(), None);
        assert_eq!(table.outcome(&token), Some(&2));
    }
}
