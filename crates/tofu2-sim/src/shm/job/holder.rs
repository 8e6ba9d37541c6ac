//! Which process a rank is: the first that asks, for good.

use super::Control;
use crate::shm::memory::layout;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};

/// Whether a process has become a rank, and what the rank's end is to be. It changes at most once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Holder {
    /// No process yet.
    Nobody = 0,
    /// A process that says when it has come to its end: one that ends before is lost. Whether or
    /// not it is still running.
    Somebody = 1,
    /// No process, now or ever: the command that was started as the rank has ended.
    Closed = 2,
    /// A guest ([`crate::shm::attach_guest`]), whether or not it is still running. It has come to
    /// its end when it exits with code 0.
    Guest = 3,
}

impl Control {
    /// Makes this process `rank`, for good, unless another process is or was: `Somebody` or a
    /// `Guest`. Returns whether it now is.
    pub(crate) fn take(&self, rank: usize, process: Holder) -> bool {
        let holder = self.card(rank, layout::CARD_HOLDER);
        holder.compare_exchange(Holder::Nobody as u64, process as u64, SeqCst, Relaxed).is_ok()
    }

    /// Prevents any further process from becoming `rank`.
    pub(crate) fn close(&self, rank: usize) {
        let holder = self.card(rank, layout::CARD_HOLDER);
        let _ = holder.compare_exchange(Holder::Nobody as u64, Holder::Closed as u64, SeqCst, Relaxed);
    }

    /// Returns whether the process that is or was `rank` is a guest.
    pub(crate) fn is_guest(&self, rank: usize) -> bool {
        self.card(rank, layout::CARD_HOLDER).load(SeqCst) == Holder::Guest as u64
    }
}
