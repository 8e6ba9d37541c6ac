//! What dropped futures still owe: futures without an owner, polled whenever their rank is resumed.
//!
//! They are not part of a rank's state, so that ranks that never detach any cost nothing.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    future::Future,
    pin::Pin,
};

pub(super) type Rest = Pin<Box<dyn Future<Output = ()>>>;

/// The detached futures of all ranks.
#[derive(Default)]
pub(super) struct Detached {
    /// By rank, in the order detached. Never borrowed while one of them runs or is dropped.
    by_rank: RefCell<BTreeMap<u32, Vec<Rest>>>,
    /// The run is over: nobody polls any more.
    closed: Cell<bool>,
}

impl Detached {
    pub(super) fn add(&self, rank: u32, rest: Rest) {
        if !self.closed.get() {
            self.by_rank.borrow_mut().entry(rank).or_default().push(rest);
        }
    }

    /// Whether any rank has some.
    #[inline]
    pub(super) fn any(&self) -> bool {
        !self.by_rank.borrow().is_empty()
    }

    pub(super) fn has(&self, rank: u32) -> bool {
        self.by_rank.borrow().contains_key(&rank)
    }

    /// Takes a rank's, to poll them.
    pub(super) fn take(&self, rank: u32) -> Vec<Rest> {
        self.by_rank.borrow_mut().remove(&rank).unwrap_or_default()
    }

    /// Gives back those that are not over. None were added since they were taken.
    pub(super) fn keep(&self, rank: u32, rest: Vec<Rest>) {
        if !rest.is_empty() {
            self.by_rank.borrow_mut().insert(rank, rest);
        }
    }

    /// Drops all, and from now on whatever is added.
    pub(super) fn close(&self) {
        self.closed.set(true);
        // Out of the borrow first: dropping them may detach more.
        let all = self.by_rank.take();
        drop(all);
    }
}
