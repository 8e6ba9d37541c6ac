//! What dropped futures still owe, by rank.

use rdma_fabric::Rank;
use std::{cell::RefCell, fmt, future::Future, pin::Pin, task::Context};

type Rest = Pin<Box<dyn Future<Output = ()>>>;

/// The detached futures of all ranks of a job.
pub(crate) struct Detached {
    /// Not borrowed while one of them runs.
    by_rank: Vec<RefCell<Vec<Rest>>>,
}

impl fmt::Debug for Detached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Detached({} ranks)", self.by_rank.len())
    }
}

impl Detached {
    pub(crate) fn new(ranks: usize) -> Self {
        Detached { by_rank: (0..ranks).map(|_| RefCell::default()).collect() }
    }

    pub(crate) fn add(&self, rank: Rank, rest: Rest) {
        self.by_rank[rank.index()].borrow_mut().push(rest);
    }

    /// Poll a rank's, and what they detach. True if all are over.
    pub(crate) fn poll(&self, rank: Rank, cx: &mut Context<'_>) -> bool {
        let mine = &self.by_rank[rank.index()];
        let mut kept = Vec::new();
        loop {
            let batch = mine.take();
            if batch.is_empty() {
                break;
            }
            for mut rest in batch {
                if rest.as_mut().poll(cx).is_pending() {
                    kept.push(rest);
                }
            }
        }
        let over = kept.is_empty();
        mine.replace(kept);
        over
    }
}
