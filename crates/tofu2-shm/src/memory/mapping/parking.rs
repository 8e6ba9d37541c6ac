//! The doorbell of a segment: parking on it, and waking parked threads.
//!
//! # Safety
//! The doorbell is the only protocol word of 4 bytes. It is accessed only through [`doorbell_at`]:
//! [`Mapping::word`] and [`Mapping::words`] refuse it.

#![allow(unsafe_code)]

use super::Mapping;
use crate::{
    memory::layout,
    waiting::doorbell::{self, Watch},
};
use core::{
    ops::Range,
    ptr::NonNull,
    sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst},
    time::Duration,
};
use std::sync::{Arc, PoisonError};

impl Mapping {
    /// Returns the doorbell of a segment.
    #[inline(always)]
    pub(crate) fn doorbell(&self) -> doorbell::DoorbellWords<'_> {
        // SAFETY: both are protocol words of this mapping, for which each has room, and live as
        // long as it.
        unsafe { doorbell_at(self.base) }
    }

    /// Prepares the segment's rank to park on its doorbell: steps W0 to W2.
    pub(crate) fn prepare_park(self: &Arc<Self>, watch: Watch) -> Parking {
        let mut parked = self.parked.lock().unwrap_or_else(PoisonError::into_inner);
        *parked += 1;
        if *parked == 1 {
            self.show(1);
        }
        let watch = if *parked == 1 { watch } else { Watch::Any };
        Parking { ticket: doorbell::prepare(&self.doorbell(), watch), segment: self.clone() }
    }

    /// Makes the word at `at` of `other` show from now on whether any thread of the segment's rank
    /// is parked.
    pub(crate) fn show_parked_at(&self, other: Arc<Mapping>, at: usize) {
        // A segment belongs to one job, so this is set once.
        let _ = self.sign.set((other, at));
    }

    fn show(&self, parked: u64) {
        if let Some((other, at)) = self.sign.get() {
            // SeqCst: before the heavy barrier in `prepare`, with which it pairs as the watch does.
            other.word(*at).store(parked, SeqCst);
        }
    }

    /// Wakes the segment's rank if it is parked, regardless of the awaited event.
    pub(crate) fn ring(&self) {
        doorbell::ring(&self.doorbell(), |_| true);
    }

    /// Wakes the segment's rank if it is parked and waits for one of the `len` bytes from `start`
    /// on.
    pub(crate) fn ring_for(&self, start: NonNull<u8>, len: usize) {
        let start = start.addr().get().wrapping_sub(self.base.addr().get()) as u64;
        doorbell::ring(&self.doorbell(), |bits| Watch::covers(bits, start, start.saturating_add(len as u64)));
    }

    /// Wakes the segment's rank if it is parked and waits for one of these bytes of the heap.
    pub(crate) fn ring_for_heap(&self, bytes: Range<u64>) {
        let at = |offset: u64| offset.saturating_add(self.heap_at as u64);
        doorbell::ring(&self.doorbell(), |bits| Watch::covers(bits, at(bytes.start), at(bytes.end)));
    }

    /// Wakes the segment's rank if it is parked and waits for notices, or for one of the `len`
    /// bytes from `start` on.
    #[inline(always)]
    pub(crate) fn ring_with_notice(&self, start: NonNull<u8>, len: usize) {
        let doorbell = self.doorbell();
        if let Some(seen) = doorbell::parked(&doorbell) {
            let start = start.addr().get().wrapping_sub(self.base.addr().get()) as u64;
            self.wake_with_notice(seen, start, start.saturating_add(len as u64));
        }
    }

    /// Rings on the slow path, out of line, so that the fast path keeps its values in registers.
    #[cold]
    #[inline(never)]
    fn wake_with_notice(&self, seen: doorbell::Parked, start: u64, end: u64) {
        doorbell::wake(&self.doorbell(), seen, |bits| Watch::covers(bits, start, end) || Watch::wants_notices(bits));
    }

    /// Wakes all threads of the segment's rank, including one that parks on behalf of others that
    /// have left.
    pub(crate) fn kick(&self) {
        doorbell::kick(&self.doorbell());
    }

    /// Wakes the segment's rank even if a rank died halfway through ringing.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    pub(crate) fn wake_surely(&self) {
        doorbell::wake_surely(&self.doorbell());
    }

    /// Wakes the segment's rank if it is parked, even if it waits for any write.
    pub(crate) fn ring_for_anything(&self) {
        doorbell::ring(&self.doorbell(), |bits| bits == Watch::Any.to_bits());
    }

    /// Wakes the segment's rank if it is parked and waits for notices.
    pub(crate) fn ring_for_notice(&self) {
        doorbell::ring(&self.doorbell(), Watch::wants_notices);
    }

    /// Wakes the segment's rank if it is parked and waits for the protocol word at `at`.
    pub(crate) fn ring_for_word(&self, at: usize) {
        doorbell::ring(&self.doorbell(), |bits| Watch::covers(bits, at as u64, at as u64 + 8));
    }
}

/// A thread that is about to park on a segment's doorbell, or is parked on it.
#[derive(Debug)]
pub(crate) struct Parking {
    segment: Arc<Mapping>,
    ticket: doorbell::Ticket,
}

impl Parking {
    /// Parks for at most `longest`: step W4.
    pub(crate) fn park(&self, longest: Duration) {
        doorbell::park(&self.segment.doorbell(), self.ticket, longest);
    }

    pub(crate) fn ticket(&self) -> doorbell::Ticket {
        self.ticket
    }

    /// Returns whether the doorbell has rung since this parking was prepared.
    pub(crate) fn was_rung(&self) -> bool {
        doorbell::was_rung(&self.segment.doorbell(), self.ticket)
    }
}

impl Drop for Parking {
    fn drop(&mut self) {
        let mut parked = self.segment.parked.lock().unwrap_or_else(PoisonError::into_inner);
        *parked -= 1;
        if *parked == 0 {
            doorbell::leave(&self.segment.doorbell());
            self.segment.show(0);
        }
    }
}

/// Returns the doorbell of the segment that starts at `base`.
///
/// # Safety
/// `base` is the first byte of a mapping that outlives `'a`.
#[inline(always)]
pub(crate) unsafe fn doorbell_at<'a>(base: NonNull<u8>) -> doorbell::DoorbellWords<'a> {
    // SAFETY: protocol words, aligned because the base is, accessed as atomics of these widths
    // only: `word` refuses the doorbell.
    unsafe {
        doorbell::DoorbellWords {
            doorbell: AtomicU32::from_ptr(base.as_ptr().add(layout::DOORBELL).cast()),
            watch: AtomicU64::from_ptr(base.as_ptr().add(layout::WATCH).cast()),
        }
    }
}
