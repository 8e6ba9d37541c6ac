//! How far each partition is that this member sends.

use core::sync::atomic::{AtomicU8, Ordering};

/// Not marked in this iteration.
const IDLE: u8 = 0;
/// Kept by a call that marks several at once.
const KEPT: u8 = 1;
/// Marked, and not sent.
const MARKED: u8 = 2;
/// Some call sends it.
const LEAVING: u8 = 3;
/// Posted, or put.
const SENT: u8 = 4;

/// One for each partition, by slot and partition. Tasks of the rank race for them: who wins a step makes it.
pub(super) struct Marks(Box<[AtomicU8]>);

impl Marks {
    pub(super) fn new(many: usize) -> Self {
        Marks((0..many).map(|_| AtomicU8::new(IDLE)).collect())
    }

    /// For the next iteration.
    pub(super) fn clear(&mut self) {
        self.0.iter_mut().for_each(|mark| *mark.get_mut() = IDLE);
    }

    /// What a call began that nobody holds any more is to be sent again.
    pub(super) fn reclaim(&mut self) {
        self.0.iter_mut().map(AtomicU8::get_mut).filter(|mark| **mark == LEAVING).for_each(|mark| *mark = MARKED);
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

    /// Whether it is marked and nobody sends it yet.
    pub(super) fn is_waiting(&self, at: usize) -> bool {
        self.0[at].load(Ordering::Relaxed) == MARKED
    }

    /// Take it to send it; `None` if it isn't marked or somebody else has taken it.
    pub(super) fn take(&self, at: usize) -> Option<Leaving<'_>> {
        self.step(at, MARKED, LEAVING).then_some(Leaving { marks: self, at, sent: false })
    }

    /// Whether it has not been marked.
    pub(super) fn is_idle(&self, at: usize) -> bool {
        self.0[at].load(Ordering::Relaxed) <= KEPT
    }

    pub(super) fn is_sent(&self, at: usize) -> bool {
        self.0[at].load(Ordering::Relaxed) == SENT
    }
}

/// A partition that a call sends; if the call is dropped, another may.
pub(super) struct Leaving<'a> {
    marks: &'a Marks,
    pub(super) at: usize,
    sent: bool,
}

impl Leaving<'_> {
    pub(super) fn sent(mut self) {
        self.sent = true;
    }
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.marks.0[self.at].store(if self.sent { SENT } else { MARKED }, Ordering::Release);
    }
}
