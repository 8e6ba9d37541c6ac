//! A node's words.
//!
//! The gate: `departures:24 | epoch:15 | closed:1 | readers:24`. `readers` counts the readers
//! inside and the waiting ones. `departures` wraps at the top of the word. Only the one writer
//! changes the epoch, and it allows for the wrapping of the epoch.
//!
//! The limit: `writer + 1:32 | departures:24`, the number of departures that the writer that closed
//! the gate waits for. An older limit stays in place: it is not waited for, or it has been reached,
//! so comparing with it is harmless.

use crate::{LockError, lock::holder_limit::limit_bits_of};
use core::fmt;
use rdma_fabric::{Amo, Rank};

const FIELD: u32 = 24;
const MASK: u64 = (1 << FIELD) - 1;
const CLOSED: u64 = 1 << FIELD;
const EPOCH_AT: u32 = FIELD + 1;
const EPOCHS: u64 = 1 << 15;
const DEPARTED: u64 = 1 << 40;
/// The number of readers that a gate counts: a quarter of its field.
const MOST: u64 = 1 << (FIELD - 2);
const OVER_LIMIT: u64 = limit_bits_of(MOST, MASK, 1);

/// I1.
pub(super) const ARRIVE: Amo<u64> = Amo::Add(1);
/// I7.
pub(super) const DEPART: Amo<u64> = Amo::Add(DEPARTED - 1);
/// G1. The gate is known to be open.
pub(super) const CLOSE: Amo<u64> = Amo::Add(CLOSED);

/// The value of a gate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Gate(pub(super) u64);

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.is_closed() { "closed" } else { "open" };
        write!(f, "{state}, {} readers, epoch {}, {} departures", self.readers(), self.epoch(), self.departures())
    }
}

impl Gate {
    pub(super) fn readers(self) -> u64 {
        self.0 & MASK
    }

    /// Returns whether a reader that found this value is inside.
    #[inline(always)]
    pub(super) fn admits(self) -> bool {
        self.0 & (CLOSED | OVER_LIMIT) == 0
    }

    /// Returns whether the number of counted readers has reached the limit.
    pub(super) fn is_over_limit(self) -> bool {
        self.0 & OVER_LIMIT != 0
    }

    #[inline(always)]
    pub(super) fn is_closed(self) -> bool {
        self.0 & CLOSED != 0
    }

    pub(super) fn epoch(self) -> u64 {
        self.0 >> EPOCH_AT & (EPOCHS - 1)
    }

    pub(super) fn departures(self) -> u64 {
        self.0 >> 40
    }

    /// G5, if this is the gate's value before it was closed: opens it in the next epoch.
    pub(super) fn reopening(self) -> Amo<u64> {
        let next = (self.epoch() + 1) % EPOCHS;
        let (now, then) = (self.epoch() << EPOCH_AT, next << EPOCH_AT);
        Amo::Add(then.wrapping_sub(now).wrapping_sub(CLOSED))
    }
}

/// Returns the error of a reader beyond the limit.
#[cold]
pub(super) fn refusal() -> LockError {
    LockError::TooManyHolders { most: MOST as u32 }
}

/// The value of a limit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Limit(pub(super) u64);

impl Limit {
    /// Returns the limit that is reached when all readers counted in `gate`, the value before
    /// closing, have departed.
    pub(super) fn after(gate: Gate, writer: Rank) -> Self {
        Limit((u64::from(writer.number()) + 1) << FIELD | (gate.departures() + gate.readers()) & MASK)
    }

    /// Returns whether the limit is reached with this number of departures.
    pub(super) fn is(self, departures: u64) -> bool {
        self.0 & MASK == departures & MASK
    }

    /// Returns the writer that waits for the limit; `None` if no writer has waited yet.
    pub(super) fn writer(self) -> Option<u64> {
        (self.0 >> FIELD).checked_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(gate: u64, amo: Amo<u64>) -> u64 {
        match amo {
            Amo::Add(add) => gate.wrapping_add(add),
            _ => unreachable!("gates are only added to"),
        }
    }

    #[test]
    fn counts_and_epochs_wrap_without_touching_each_other() {
        let full = Gate(MASK << 40 | (EPOCHS - 1) << EPOCH_AT | 3);
        let closed = Gate(apply(full.0, CLOSE));
        assert_eq!((closed.readers(), closed.is_closed(), closed.epoch()), (3, true, EPOCHS - 1));
        let departed = Gate(apply(closed.0, DEPART));
        assert_eq!((departed.readers(), departed.departures(), departed.epoch()), (2, 0, EPOCHS - 1));
        let open = Gate(apply(departed.0, full.reopening()));
        assert_eq!((open.readers(), open.is_closed(), open.epoch(), open.departures()), (2, false, 0, 0));
        let limit = Limit::after(full, Rank::new(u32::MAX - 1));
        assert_eq!((limit.is(2), limit.is(3), limit.writer()), (true, false, Some(u64::from(u32::MAX) - 1)));
    }
}
