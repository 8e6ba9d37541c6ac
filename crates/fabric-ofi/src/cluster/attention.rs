//! Who looks at the network: the program's own threads while they wait, or the one that serves.
//!
//! A waiting program finds things soonest if it looks by itself, and what its node's ranks write needs
//! no look at the network at all. So a wait first watches memory alone, then looks as well, and at last
//! hands over to the thread that serves, and parks.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
    },
    thread::Thread,
};

/// Fruitless polls of a wait before the first look at the network: what comes from the own node is
/// sooner there.
const OWN_NODE: u32 = 128;
/// Fruitless polls of a wait before the thread that serves takes over; fewer than before an executor
/// parks.
const WAITS: u32 = OWN_NODE + 1000;
/// Fruitless polls before it takes over, where this rank has something under way that brings what is
/// polled for.
const WANTS: u32 = 4000;

/// What the threads of a rank tell each other about their looks. It is advice, which takes no
/// ordering: a look too many or too late does no harm.
#[derive(Debug, Default)]
pub(super) struct Attention {
    /// Looks of the program's threads.
    looks: AtomicU64,
    /// Their fruitless polls since the last fruitful one.
    vain: AtomicU32,
    /// Whether they leave all to the thread that serves.
    handed_over: AtomicBool,
    /// Whether they never do.
    never: AtomicBool,
    server: OnceLock<Thread>,
}

impl Attention {
    /// Introduces the thread that serves.
    pub(super) fn serve_by(&self, thread: &Thread) {
        let _ = self.server.set(thread.clone());
    }

    /// Notes a poll of a wait that has found nothing in memory. Returns whether to look at the network.
    pub(super) fn waits(&self) -> bool {
        self.polls(OWN_NODE, WAITS)
    }

    /// Notes a poll for something that comes from the network. Returns whether to look there.
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

    /// Notes that a wait or an operation is over.
    #[inline]
    pub(super) fn found(&self) {
        if self.vain.load(Relaxed) > 0 {
            self.vain.store(0, Relaxed);
        }
    }

    /// Notes that a thread of the program looks.
    pub(super) fn attend(&self) {
        // Several threads may lose counts, which does not matter.
        self.looks.store(self.looks.load(Relaxed).wrapping_add(1), Relaxed);
        if self.handed_over.load(Relaxed) {
            self.handed_over.store(false, Relaxed);
        }
    }

    /// Returns a number that grows with each look of the program's threads.
    pub(super) fn looks(&self) -> u64 {
        self.looks.load(Relaxed)
    }

    /// Returns whether the program's threads look no more.
    pub(super) fn is_handed_over(&self) -> bool {
        self.handed_over.load(Relaxed)
    }

    /// Lets the program's threads look, and nobody else, until what it returns is dropped.
    #[cfg(test)]
    pub(super) fn keep(&self) -> Kept<'_> {
        self.never.store(true, Relaxed);
        self.handed_over.store(false, Relaxed);
        Kept(self)
    }

    /// Returns whether nobody else is to look.
    pub(super) fn is_kept(&self) -> bool {
        self.never.load(Relaxed)
    }
}

/// Nobody but the program's threads looks as long as there is this.
#[cfg(test)]
pub(super) struct Kept<'a>(&'a Attention);

#[cfg(test)]
impl Drop for Kept<'_> {
    fn drop(&mut self) {
        self.0.never.store(false, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_watches_then_looks_then_hands_over() {
        let attention = Attention::default();
        let polls = |times: u32| (0..times).filter(|_| attention.waits()).count() as u32;
        assert_eq!((polls(OWN_NODE), attention.looks()), (0, 0));
        assert_eq!(polls(WAITS - OWN_NODE), WAITS - OWN_NODE);
        assert!(!attention.is_handed_over());
        assert!(polls(10) == 0 && attention.is_handed_over());
        attention.found();
        assert!(attention.is_handed_over(), "until it looks again");
        assert!(attention.wants() && !attention.is_handed_over());
    }
}
