//! The process of each rank: the first that asks, permanently.

use super::Control;
use crate::memory::layout;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};

/// Whether a process has become a rank, and how the rank leaves. It changes at most once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Holder {
    /// No process yet.
    Nobody = 0,
    /// A process that reports when it leaves; if it ends before, the rank is lost. Whether or not
    /// it is still running.
    Somebody = 1,
    /// No process, now or ever: the command that was started as the rank has ended.
    Closed = 2,
    /// An attached process ([`crate::attach_process`]), whether or not it is still running. It
    /// leaves by exiting with code 0.
    Attached = 3,
}

impl Control {
    /// Makes this process `rank`, permanently, as `Somebody` or as `Attached`, unless another
    /// process is or was that rank. Returns whether it now is.
    pub(crate) fn take(&self, rank: usize, process: Holder) -> bool {
        let holder = self.control_record(rank, layout::RECORD_HOLDER);
        holder.compare_exchange(Holder::Nobody as u64, process as u64, SeqCst, Relaxed).is_ok()
    }

    /// Prevents any further process from becoming `rank`.
    pub(crate) fn close(&self, rank: usize) {
        let holder = self.control_record(rank, layout::RECORD_HOLDER);
        let _ = holder.compare_exchange(Holder::Nobody as u64, Holder::Closed as u64, SeqCst, Relaxed);
    }

    /// Returns whether the process that is or was `rank` is an attached process.
    pub(crate) fn is_attached_process(&self, rank: usize) -> bool {
        self.control_record(rank, layout::RECORD_HOLDER).load(SeqCst) == Holder::Attached as u64
    }
}
