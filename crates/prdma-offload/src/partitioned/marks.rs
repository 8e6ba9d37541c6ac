//! Which partitions are marked that this member sends.

use core::sync::atomic::{AtomicU8, Ordering};

/// Not marked in this iteration.
const IDLE: u8 = 0;
/// Kept by a call that marks several at once.
const KEPT: u8 = 1;
/// Marked: it is the call's that did so to see it off.
const MARKED: u8 = 2;

/// One for each partition, by slot and partition. Tasks of the rank race for them.
pub(super) struct Marks(Box<[AtomicU8]>);

impl Marks {
    pub(super) fn new(many: usize) -> Self {
        Marks((0..many).map(|_| AtomicU8::new(IDLE)).collect())
    }

    /// For the next iteration.
    pub(super) fn clear(&mut self) {
        self.0.iter_mut().for_each(|mark| *mark.get_mut() = IDLE);
    }

    fn step(&self, at: usize, from: u8, to: u8) -> bool {
        // Whoever sends it sees what was written before it was marked.
        self.0[at].compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Mark all of them, or none: then the one that was marked before.
    pub(super) fn mark(&self, range: core::ops::Range<usize>) -> Result<(), usize> {
        if let Some(taken) = range.clone().find(|at| !self.step(*at, IDLE, KEPT)) {
            for kept in range.start..taken {
                self.0[kept].store(IDLE, Ordering::Release);
            }
            return Err(taken);
        }
        range.for_each(|at| self.0[at].store(MARKED, Ordering::Release));
        Ok(())
    }

    /// Whether it has not been marked.
    pub(super) fn is_idle(&self, at: usize) -> bool {
        self.0[at].load(Ordering::Relaxed) <= KEPT
    }
}
