//! What dropped futures still owe. Operations are over when they are posted, so it is done on the spot.

use core::task::{Context, Waker};
use rdma_fabric::{Rank, provider::Leftover};

/// Run `rest` to its end, which one poll reaches.
#[inline]
pub(super) fn run(rank: Rank, rest: Leftover<'_>) {
    if rest.poll_once(&mut Context::from_waker(Waker::noop())).is_pending() {
        unfinished(rank);
    }
}

#[cold]
fn unfinished(rank: Rank) {
    eprintln!("onesided: {rank} detached a future that waits for others; it was dropped unfinished");
    // Not while unwinding: that would end the process.
    debug_assert!(std::thread::panicking(), "a detached future waits for others");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_detached_is_over_at_once() {
        let over = std::rc::Rc::new(std::cell::Cell::new(false));
        let there = over.clone();
        run(Rank::new(0), Leftover::new(&mut Some(async move { there.set(true) })));
        assert!(over.get());
    }

    #[test]
    #[cfg_attr(debug_assertions, should_panic = "waits for others")]
    fn what_waits_is_reported() {
        run(Rank::new(0), Leftover::new(&mut Some(core::future::pending())));
    }
}
