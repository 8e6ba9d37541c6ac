//! Waiting futures, and whether what they heard is still so.
//!
//! A rank rests where all that it waits for was looked at in one moment. If a future heard that it has to wait, and another one did something in the same poll, the
//! first has to look again: what it waits for may have come meanwhile.

use crate::{act::Slot, session::Session};
use std::collections::BTreeMap;

/// Names a future that waits, and is not 0: for its own operation, by that, or for something else.
pub(crate) type Waiter = u64;

/// Waiters below wait for an operation.
const OTHERS: Waiter = 1 << Slot::BITS;

/// Who waits for an operation.
pub(crate) fn waiter_for(slot: Slot) -> Waiter {
    Waiter::from(slot) + 1
}

/// The operation that `waiter` waits for.
pub(crate) fn waits_for(waiter: Waiter) -> Slot {
    (waiter - 1) as Slot
}

/// Futures that have heard in this poll that they have to wait, and whether something was done since.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    made: u64,
    stale: BTreeMap<Waiter, bool>,
}

impl Looks {
    /// A future that waits for none of its operations.
    pub(crate) fn next(&mut self) -> Waiter {
        self.made += 1;
        OTHERS + self.made
    }

    /// A new poll begins.
    pub(crate) fn clear(&mut self) {
        self.stale.clear();
    }

    /// Something is done.
    pub(crate) fn age(&mut self) {
        self.stale.values_mut().for_each(|stale| *stale = true);
    }

    /// Whether somebody has to look again.
    pub(crate) fn are_stale(&self) -> bool {
        self.stale.values().any(|stale| *stale)
    }

    /// It waits no more.
    pub(crate) fn end(&mut self, waiter: Waiter) {
        self.stale.remove(&waiter);
    }
}

impl Session {
    /// The last answer was not what `waiter` waits for.
    pub(crate) fn has_to_wait(&self, waiter: Waiter) {
        self.not_ready();
        self.looks.borrow_mut().stale.insert(waiter, false);
    }
}
