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
    time::Instant,
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
/// The longest time of fruitless network polls of a wait, in ns. A poll of a slow CPU or NIC takes
/// so long that the number of polls alone would occupy a CPU that other ranks, or the kernel's own
/// work on packets, may need.
const LONGEST: u64 = 2_000_000;

/// Hints about network polls, shared by the threads of a rank. They need no memory ordering: an
/// extra or a late poll does no harm.
#[derive(Debug)]
pub(super) struct ProgressPolicy {
    /// Number of network polls by the program's threads.
    polls_of_program: AtomicU64,
    /// Number of their fruitless polls since the last successful one.
    vain: AtomicU32,
    /// The time of the first network poll among those, in ns since `begun`, at least 1; 0 before it.
    first: AtomicU64,
    begun: Instant,
    /// Whether those threads leave polling to the progress thread.
    handed_over: AtomicBool,
    /// Whether they never do.
    never: AtomicBool,
    server: OnceLock<Thread>,
}

impl Default for ProgressPolicy {
    fn default() -> Self {
        Self {
            polls_of_program: AtomicU64::new(0),
            vain: AtomicU32::new(0),
            first: AtomicU64::new(0),
            begun: Instant::now(),
            handed_over: AtomicBool::new(false),
            never: AtomicBool::new(false),
            server: OnceLock::new(),
        }
    }
}

impl ProgressPolicy {
    /// Sets the progress thread.
    pub(super) fn serve_by(&self, thread: &Thread) {
        let _ = self.server.set(thread.clone());
    }

    /// Counts a poll of a wait that found nothing in memory. Returns whether to poll the network.
    pub(super) fn waits(&self) -> bool {
        self.polls(OWN_NODE, WAITS, || self.now())
    }

    /// Counts a poll for a result that the network brings. Returns whether to poll the network.
    pub(super) fn wants(&self) -> bool {
        self.polls(0, WANTS, || self.now())
    }

    /// Returns the time since this was created, in ns.
    fn now(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    fn polls(&self, patience: u32, most: u32, now: impl FnOnce() -> u64) -> bool {
        let vain = self.vain.load(Relaxed).saturating_add(1);
        self.vain.store(vain, Relaxed);
        if vain <= patience {
            return false;
        }
        if (vain > most || self.takes_too_long(now())) && !self.never.load(Relaxed) {
            if !self.handed_over.swap(true, Relaxed) {
                self.server.get().into_iter().for_each(Thread::unpark);
            }
            return false;
        }
        self.attend();
        true
    }

    /// Returns whether network polls have been fruitless for the longest time.
    fn takes_too_long(&self, now: u64) -> bool {
        let first = self.first.load(Relaxed);
        if first == 0 {
            self.first.store(now.max(1), Relaxed);
        }
        first > 0 && now.saturating_sub(first) > LONGEST
    }

    /// Records that a wait or an operation has completed.
    #[inline]
    pub(super) fn found(&self) {
        if self.vain.load(Relaxed) > 0 {
            self.vain.store(0, Relaxed);
            self.first.store(0, Relaxed);
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
        let waits = |now: u64| progress.polls(OWN_NODE, WAITS, || now);
        let polls = |times: u32| (0..times).filter(|_| waits(5)).count() as u32;
        assert_eq!((polls(OWN_NODE), progress.polls_of_program()), (0, 0));
        assert_eq!(polls(WAITS - OWN_NODE), WAITS - OWN_NODE);
        assert!(!progress.is_handed_over());
        assert!(polls(10) == 0 && progress.is_handed_over());
        progress.found();
        assert!(progress.is_handed_over(), "until it looks again");
        assert!(progress.wants() && !progress.is_handed_over());
        progress.found();
        // A poll takes so long that there are few of them.
        let now = |poll: u32| u64::from(poll) * LONGEST / 10;
        assert_eq!((0..OWN_NODE).filter(|poll| waits(now(*poll))).count(), 0);
        assert_eq!((OWN_NODE..2 * OWN_NODE).filter(|poll| waits(now(*poll))).count(), 11);
        assert!(progress.is_handed_over());
        progress.found();
        // A future that awaits memory and an operation: the second finds no time of earlier polls.
        assert!(!waits(now(900)) && progress.polls(0, WANTS, || now(901)));
    }
}
