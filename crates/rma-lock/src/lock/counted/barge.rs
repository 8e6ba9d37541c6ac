//! Barging: a running writer takes a free lock by one compare-and-swap, although others wait.
//!
//! At each hand-over, a queue that passes the lock on in order of arrival waits for a rank that may
//! not be running: with more ranks than CPUs that costs a context switch each time. So a writer
//! first tries to enter ahead of the queue. The first rank of the queue, its head, is woken once,
//! finds that it was passed, and records this in the count word ([`super::scheme::NEXT`]); from
//! then on no writer passes it. A rank that has passed heads [`PASSES`] times joins the queue
//! itself, so the number of times that each rank passes waiting ones is bounded.

use super::{
    Core, CountedLock, Scheme, Steps,
    fast::{FastResult, Found},
    guard::Writing,
    scheme::{ASLEEP, NEXT, WRITER_ACTIVE, WRITER_INTERESTED, is_queued},
    steps::At,
};
use crate::lock::queue::Walk;
use core::{
    fmt,
    sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
};
use rdma_fabric::{Amo, Time};
use std::sync::Arc;

/// The number of times that a rank passes heads before it joins the queue. A smaller number admits
/// waiting ranks sooner, and costs a context switch each time.
const PASSES: u32 = 1 << 14;

/// The number of times that a rank checks a lock that is taken, if it can access the home's memory
/// directly, before it joins the queue.
pub(super) const SPIN_LIMIT: u8 = 32;

/// A rank's cached state of a lock that it barges into. Losing it costs an operation.
#[derive(Default)]
pub(super) struct Seen {
    /// The value of the count word after its last release.
    left: AtomicU64,
    /// The number of heads that it has passed since it last joined the queue.
    passed: AtomicU32,
}

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ", left {:#x}, passed {}", self.left.load(Relaxed), self.passed.load(Relaxed))
    }
}

impl Seen {
    pub(super) fn leave(&self, left: u64) {
        self.left.store(left, Relaxed);
    }

    /// Returns the likely current value of the count word; `None` if this rank has to join the
    /// queue: it has handed the lock over, or has passed others [`PASSES`] times.
    #[inline(always)]
    fn expected(&self) -> Option<u64> {
        let left = self.left.load(Relaxed);
        if left & WRITER_ACTIVE == 0 && self.passed.load(Relaxed) < PASSES { Some(left) } else { self.line_up() }
    }

    #[cold]
    #[inline(never)]
    fn line_up(&self) -> Option<u64> {
        self.left.store(0, Relaxed);
        self.passed.store(0, Relaxed);
        None
    }

    /// Records that this rank has barged in; `word` contains the head that it has passed, if any.
    #[inline(always)]
    pub(super) fn enter(&self, word: u64) {
        if word & WRITER_INTERESTED != 0 {
            self.passed.store(self.passed.load(Relaxed) + 1, Relaxed);
        }
    }
}

/// Continues an acquisition with B1, where the count word was last seen as `word`; in the queue, if
/// `word` is `None`.
#[cold]
#[inline(never)]
fn write_slow(core: &Arc<Core>, tries: bool, word: Option<u64>, found: Found, deadline: Time) -> FastResult {
    let steps = word.map_or(Steps::line_up(), |word| Steps::barge(tries, word));
    Walk::<Core>::from(steps, found, deadline).run(core)
}

/// Continues a release, with XB if its operation was posted.
#[cold]
#[inline(never)]
fn leave_slow(core: &Arc<Core>, held: Writing, at: At, found: Found) -> FastResult {
    let mut steps = Steps { at, ..Steps::release_barging(held.word()) };
    if at == At::Flush && core.ordered_everywhere {
        core.table.begin_leave(&mut steps);
    }
    Walk::<Core>::from(steps, found, Time::MAX).run(core)
}

impl<S: Scheme> CountedLock<S> {
    /// B1.
    #[inline(always)]
    pub(super) fn barge_fast(&self, tries: bool, deadline: Time) -> Result<Writing, FastResult> {
        let core = &self.core;
        let expected = if tries { Some(0) } else { core.seen.expected() };
        let (Some(word), true) = (expected, core.is_fast() && core.broken.is_whole()) else {
            return Err(write_slow(core, tries, expected, Err(None), deadline));
        };
        match core.atomic_now(&core.count, Amo::CompareSwap { expected: word, new: word | WRITER_ACTIVE }) {
            Ok(found) if found == word => {
                core.seen.enter(word);
                Ok(Writing::barged(word | WRITER_ACTIVE))
            }
            found => Err(write_slow(core, tries, Some(word), found, deadline)),
        }
    }

    /// XB, if there is no head to wake.
    #[inline(always)]
    pub(super) fn leave_barged(&self, held: Writing) -> FastResult {
        let (core, word) = (&self.core, held.word());
        if !core.is_fast() || is_queued(word) || word & (ASLEEP | NEXT) != 0 {
            // If a successor is about to link itself, the lock is handed to it, which costs less
            // than leaving the queue before it has done so.
            if core.is_fast()
                && is_queued(word)
                && let Ok(writers) = core.writers()
            {
                core.is_followed(held.node_in_word(), &writers.tail);
            }
            return leave_slow(core, held, At::Flush, Err(None));
        }
        let left = word & !WRITER_ACTIVE;
        match core.atomic_now(&core.count, Amo::CompareSwap { expected: word, new: left }) {
            Ok(found) if found == word => {
                core.seen.leave(left);
                Ok(Ok(None))
            }
            found => leave_slow(core, held, At::XB, found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD_WAITS: u64 = 5 << 32 | WRITER_INTERESTED;

    #[test]
    fn a_rank_passes_others_so_often_and_then_lines_up() {
        let seen = Seen::default();
        for _ in 0..2 {
            for _ in 0..PASSES {
                assert_eq!(seen.expected(), Some(0));
                seen.enter(HEAD_WAITS);
            }
            assert_eq!(seen.expected(), None);
        }
    }

    #[test]
    fn entering_where_nobody_waits_passes_nobody() {
        let seen = Seen::default();
        for _ in 0..=PASSES {
            seen.enter(WRITER_ACTIVE);
        }
        assert_eq!(seen.expected(), Some(0));
    }

    #[test]
    fn a_rank_that_has_handed_the_lock_over_lines_up_once() {
        let seen = Seen::default();
        seen.leave(5 << 32 | WRITER_ACTIVE);
        assert_eq!(seen.expected(), None);
        assert_eq!(seen.expected(), Some(0));
        seen.leave(HEAD_WAITS);
        assert_eq!(seen.expected(), Some(HEAD_WAITS));
    }
}
