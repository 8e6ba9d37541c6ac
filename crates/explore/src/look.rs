//! Waiting futures, and whether what they heard is still so.
//!
//! A rank rests where all that it waits for was looked at in one moment. If a future heard that it has to wait, and another one did something in the same poll, the
//! first has to look again: what it waits for may have come meanwhile.

use crate::session::Session;
use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

/// Futures that have heard in this poll that they have to wait, and whether something was done since.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    next: u32,
    stale: BTreeMap<u32, bool>,
}

impl Looks {
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
}

/// One future that may wait.
#[derive(Debug)]
pub(crate) struct Look {
    session: Rc<Session>,
    number: u32,
}

impl Look {
    pub(crate) fn new(session: &Rc<Session>) -> Self {
        let looks: &RefCell<Looks> = &session.looks;
        let mut looks = looks.borrow_mut();
        looks.next += 1;
        Look { session: session.clone(), number: looks.next }
    }

    /// The last answer was not what it waits for.
    pub(crate) fn not_ready(&self) {
        self.session.not_ready();
        self.session.looks.borrow_mut().stale.insert(self.number, false);
    }
}

impl Drop for Look {
    fn drop(&mut self) {
        self.session.looks.borrow_mut().stale.remove(&self.number);
    }
}
