//! Decides which threads poll the network: those of the program while they wait, or the progress
//! thread.
//!
//! A waiting program sees completions soonest if it polls itself, and writes by ranks of the same
//! node require no network poll at all. A wait therefore first checks only memory, then polls the
//! network as well, and finally parks and leaves polling to the progress thread.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
    },
    thread::Thread,
};

/// Fruitless polls of a wait before its first poll of the network: writes from the same node arrive
/// sooner.
const OWN_NODE: u32 = 128;
/// Fruitless polls of a wait before the progress thread takes over; fewer than before an executor
/// parks.
const WAITS: u32 = OWN_NODE + 1000;
/// Fruitless polls before the progress thread takes over, if an operation in flight of this rank
/// brings the result that is polled for.
const WANTS: u32 = 4000;

/// Hints about network polls, shared by the threads of a rank. They need no memory ordering: an
/// extra or a late poll does no harm.
#[derive(Debug, Default)]
pub(super) struct ProgressPolicy {
    /// Number of network polls by the program's threads.
    polls_of_program: AtomicU64,
    /// Number of their fruitless polls since the last successful one.
    vain: AtomicU32,
    /// Whether those threads leave polling to the progress thread.
    handed_over: AtomicBool,
    /// Whether they never do.
    never: AtomicBool,
    server: OnceLock<Thread>,
}

impl ProgressPolicy {
    /// Sets the progress thread.
    pub(super) fn serve_by(&self, thread: &Thread) {
        let _ = self.server.set(thread.clone());
    }

    /// Counts a poll of a wait that found nothing in memory. Returns whether to poll the network.
    pub(super) fn waits(&self) -> bool {
        self.polls(OWN_NODE, WAITS)
    }

    /// Counts a poll for a result that the network brings. Returns whether to poll the network.
    pub(super) fn wants(&self) -> bool {
        self.polls(0, WANTS)
    }

    fn polls(&self, patience: u32, most: u32) -> bool {
        let vain = self.vain.load(Relaxed).saturating_add(1);
        self.vain.store(vain, Relaxed);
        if vain <= patience {
            return false;
        }
        if vain > most && !self.never.load(Relaxed) {
            if !self.handed_over.swap(true, Relaxed) {
                self.server.get().into_iter().for_each(Thread::unpark);
            }
            return false;
        }
        self.attend();
        true
    }

    /// Records that a wait or an operation has completed.
    #[inline]
    pub(super) fn found(&self) {
        if self.vain.load(Relaxed) > 0 {
            self.vain.store(0, Relaxed);
        }
    }

    /// Records that a thread of the program polls the network.
    pub(super) fn attend(&self) {
        // Concurrent updates may lose counts, which does no harm.
        self.polls_of_program.store(self.polls_of_program.load(Relaxed).wrapping_add(1), Relaxed);
        if self.handed_over.load(Relaxed) {
            self.handed_over.store(false, Relaxed);
        }
    }

    /// Returns a number that grows with each network poll of the program's threads.
    pub(super) fn polls_of_program(&self) -> u64 {
        self.polls_of_program.load(Relaxed)
    }

    /// Returns whether the program's threads have handed over to the progress thread.
    pub(super) fn is_handed_over(&self) -> bool {
        self.handed_over.load(Relaxed)
    }

    /// Lets only the program's threads poll the network, until the returned guard is dropped.
    #[cfg(test)]
    pub(super) fn keep(&self) -> ProgressHold<'_> {
        self.never.store(true, Relaxed);
        self.handed_over.store(false, Relaxed);
        ProgressHold(self)
    }

    /// Returns whether only the program's threads may poll the network.
    pub(super) fn is_kept(&self) -> bool {
        self.never.load(Relaxed)
    }
}

/// While this guard exists, only the program's threads poll the network.
#[cfg(test)]
pub(super) struct ProgressHold<'a>(&'a ProgressPolicy);

#[cfg(test)]
impl Drop for ProgressHold<'_> {
    fn drop(&mut self) {
        self.0.never.store(false, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_watches_then_looks_then_hands_over() {
        let progress = ProgressPolicy::default();
        let polls = |times: u32| (0..times).filter(|_| progress.waits()).count() as u32;
        assert_eq!((polls(OWN_NODE), progress.polls_of_program()), (0, 0));
        assert_eq!(polls(WAITS - OWN_NODE), WAITS - OWN_NODE);
        assert!(!progress.is_handed_over());
        assert!(polls(10) == 0 && progress.is_handed_over());
        progress.found();
        assert!(progress.is_handed_over(), "until it looks again");
        assert!(progress.wants() && !progress.is_handed_over());
    }
}
