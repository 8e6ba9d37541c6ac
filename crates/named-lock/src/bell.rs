//! A rank's doorbell, by which whoever writes to the rank's part wakes its threads that are parked.
//!
//! The bell is one word: bit 0 says that somebody may be parked, the bits above count rings.
//! ```text
//! waiter                                   writer
//! W1  set bit 0, remember the word         P1  write the memory waited on
//! W2  heavy barrier                        P2  look at bit 0; if it is set: count a ring, which
//! W3  look at the memory again                 clears it, and wake all
//! W4  park while the word is as remembered
//! ```
//! P2 may overtake P1 on its processor, because the writer has no barrier; the waiter's heavy barrier,
//! `membarrier`, makes up for it: every processor that runs a process with this lock passes a barrier
//! between W1 and W3. Where the system has none, and in any case against words damaged by others,
//! parking is bounded ([`LONGEST`]), so a lost wake costs time and never correctness.

use crate::mapping::Mapping;
use core::{
    sync::atomic::Ordering::{Acquire, Relaxed, SeqCst},
    time::Duration,
};
use rustix::thread::{MembarrierCommand, futex, membarrier};

/// Bit 0.
const PARKED: u32 = 1;
/// The longest time to stay parked without looking; also how often those that wait look whether the
/// others live.
pub(crate) const LONGEST: Duration = Duration::from_millis(5);

/// Lets heavy barriers of other processes reach this one.
pub(crate) fn register_process() {
    // Without it wakes may be lost, which `LONGEST` bounds.
    let _ = membarrier(MembarrierCommand::RegisterGlobalExpedited);
}

/// The word that a waiter remembers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket(u32);

/// W1 and W2. The caller then looks at what it waits for, and parks.
pub(crate) fn prepare(map: &Mapping, rank: usize) -> Ticket {
    let ticket = map.bell(rank).fetch_or(PARKED, SeqCst) | PARKED;
    // As in `register_process`.
    let _ = membarrier(MembarrierCommand::GlobalExpedited);
    Ticket(ticket)
}

/// W4, for `longest` at most.
pub(crate) fn park(map: &Mapping, rank: usize, Ticket(ticket): Ticket, longest: Duration) {
    let longest = futex::Timespec { tv_sec: 0, tv_nsec: longest.min(LONGEST).subsec_nanos().into() };
    // Whatever the outcome (woken, changed, interrupted, timed out), the waiter looks again.
    let _ = futex::wait(map.bell(rank), futex::Flags::empty(), ticket, Some(&longest));
}

/// P2.
pub(crate) fn ring(map: &Mapping, rank: usize) {
    let bell = map.bell(rank);
    let seen = bell.load(Acquire);
    if seen & PARKED != 0 && bell.compare_exchange(seen, seen.wrapping_add(1), SeqCst, Relaxed).is_ok() {
        // This can fail only for addresses that are not a futex.
        let _ = futex::wake(bell, futex::Flags::empty(), i32::MAX as u32);
    }
}
