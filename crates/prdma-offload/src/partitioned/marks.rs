//! The marks of the partitions that this member sends, and calls that may be dropped while they
//! post partitions.

use crate::PrdmaError;
use core::sync::atomic::{AtomicU8, Ordering};
use std::sync::OnceLock;

/// Not marked in this iteration.
const IDLE: u8 = 0;
/// Reserved by a call that marks several partitions at once.
const RESERVED: u8 = 1;
/// Marked: the call that marked it must post it.
const READY: u8 = 2;

/// One mark for each partition, by slot and partition. Tasks of the rank race for them.
pub(super) struct ReadyPartitions(Box<[AtomicU8]>);

impl ReadyPartitions {
    pub(super) fn new(many: usize) -> Self {
        ReadyPartitions((0..many).map(|_| AtomicU8::new(IDLE)).collect())
    }

    /// Unmarks all partitions for the next iteration.
    pub(super) fn clear(&mut self) {
        self.0.iter_mut().for_each(|mark| *mark.get_mut() = IDLE);
    }

    fn step(&self, at: usize, from: u8, to: u8) -> bool {
        // The thread that sends the partition sees all writes before the mark.
        self.0[at].compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Marks all partitions of the range, or none.
    ///
    /// # Errors
    /// The first partition that was already marked.
    pub(super) fn mark(&self, range: core::ops::Range<usize>) -> Result<(), usize> {
        if let Some(taken) = range.clone().find(|at| !self.step(*at, IDLE, RESERVED)) {
            for kept in range.start..taken {
                self.0[kept].store(IDLE, Ordering::Release);
            }
            return Err(taken);
        }
        range.for_each(|at| self.0[at].store(READY, Ordering::Release));
        Ok(())
    }

    /// Returns whether a partition has not been marked.
    pub(super) fn is_idle(&self, at: usize) -> bool {
        self.0[at].load(Ordering::Relaxed) <= RESERVED
    }
}

/// Held while a call posts partitions; dropping it breaks the request.
pub(super) struct BreakOnDrop<'a> {
    broken: &'a OnceLock<PrdmaError>,
    half: Option<PrdmaError>,
}

impl<'a> BreakOnDrop<'a> {
    /// Starts a call that breaks the request with `half` if it does not
    /// [finish](BreakOnDrop::finish).
    pub(super) fn new(broken: &'a OnceLock<PrdmaError>, half: PrdmaError) -> Self {
        BreakOnDrop { broken, half: Some(half) }
    }

    pub(super) fn finish(mut self) {
        self.half = None;
    }
}

impl Drop for BreakOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(half) = self.half.take() {
            let _ = self.broken.set(half);
        }
    }
}
