//! Locks between processes without a fabric, to compare with those over one: a mutex and a queue
//! lock over futexes.

use super::{bare::Bare, lines};
use core::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use rustix::thread::futex;

/// A mutex between processes: 0 free, 1 taken, 2 taken and others may wait. If its holder dies,
/// the launcher ends the others.
#[derive(Debug)]
pub(crate) struct FutexMutex<'a>(pub(crate) &'a AtomicU32);

impl FutexMutex<'_> {
    #[inline]
    pub(crate) fn lock(&self) {
        // Acquire: pairs with the release in `unlock`; so does the swap below.
        if self.0.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
            while self.0.swap(2, Acquire) != 0 {
                // Woken, changed or interrupted: check again.
                let _ = futex::wait(self.0, futex::Flags::empty(), 2, None);
            }
        }
    }

    /// Takes the mutex if it is free.
    pub(crate) fn try_lock(&self) -> bool {
        self.0.compare_exchange(0, 1, Acquire, Relaxed).is_ok()
    }

    #[inline]
    pub(crate) fn unlock(&self) {
        if self.0.swap(0, Release) == 2 {
            // Fails only for addresses that are not futexes.
            let _ = futex::wake(self.0, futex::Flags::empty(), 1);
        }
    }
}

/// A mutex between up to 16 processes that is handed over in order of arrival: a queue lock (MCS)
/// whose waiters park, or spin.
#[derive(Debug)]
pub(crate) struct FutexQueue<'a> {
    bare: &'a Bare,
    me: usize,
    parks: bool,
}

impl<'a> FutexQueue<'a> {
    pub(crate) fn new(bare: &'a Bare, me: usize) -> Self {
        FutexQueue { bare, me, parks: true }
    }

    /// Returns a queue lock whose waiters spin, for jobs with a core for every rank.
    pub(crate) fn spinning(bare: &'a Bare, me: usize) -> Self {
        FutexQueue { bare, me, parks: false }
    }

    /// Returns the word with 1 + the rank that arrived last, or 0.
    fn tail(&self) -> &'a AtomicU64 {
        self.bare.word(lines::PARKING_TAIL)
    }

    /// Returns the word with 1 + the rank after `rank`, or 0.
    fn next(&self, rank: usize) -> &'a AtomicU64 {
        self.bare.word(lines::PARKING_NODES + rank)
    }

    /// Returns the word that is 1 while `rank` must wait.
    fn waits(&self, rank: usize) -> &'a AtomicU32 {
        self.bare.half(lines::PARKING_NODES + rank)
    }

    pub(crate) fn lock(&self) {
        let me = self.me as u64 + 1;
        self.next(self.me).store(0, Relaxed);
        self.waits(self.me).store(1, Relaxed);
        // Release: the node above is visible to the next rank. Acquire: so is the predecessor's
        // node to this rank.
        let before = self.tail().swap(me, AcqRel);
        if before != 0 {
            // Release: pairs with the acquire in `unlock`.
            self.next(before as usize - 1).store(me, Release);
            // Acquire: pairs with the release in `unlock`.
            while self.waits(self.me).load(Acquire) == 1 {
                if !self.parks {
                    core::hint::spin_loop();
                    continue;
                }
                // Woken, changed or interrupted: check again.
                let _ = futex::wait(self.waits(self.me), futex::Flags::empty(), 1, None);
            }
        }
    }

    pub(crate) fn unlock(&self) {
        let me = self.me as u64 + 1;
        let mut next = self.next(self.me).load(Acquire);
        if next == 0 {
            if self.tail().compare_exchange(me, 0, AcqRel, Relaxed).is_ok() {
                return;
            }
            // The next rank has arrived and is about to link itself.
            while next == 0 {
                if self.parks {
                    std::thread::yield_now();
                }
                next = self.next(self.me).load(Acquire);
            }
        }
        let waits = self.waits(next as usize - 1);
        waits.store(0, Release);
        if !self.parks {
            return;
        }
        // Fails only for addresses that are not futexes.
        let _ = futex::wake(waits, futex::Flags::empty(), 1);
    }
}
