//! A rank's doorbell: a writer to the rank's part of the file rings it to wake the rank's parked
//! threads.
//!
//! The doorbell is one word: bit 0 is set if threads may be parked; the bits above count rings.
//! ```text
//! waiter                                   writer
//! W1  set bit 0, remember the word         P1  write the memory waited on
//! W2  heavy barrier                        P2  check bit 0; if it is set: count a ring, which
//! W3  check the memory again                    clears it, and wake all
//! W4  park while the word is as remembered
//! ```
//! P2 may overtake P1 on its processor, because the writer issues no barrier. The waiter's heavy
//! barrier, `membarrier`, compensates for that: every processor that runs a process with this lock
//! passes a barrier between W1 and W3. Parking is bounded ([`LONGEST`]), so a lost wake-up costs
//! time but never correctness; wake-ups can be lost if the system has no `membarrier`, or if
//! another process damages the words.

use crate::mapping::Mapping;
use core::{
    sync::atomic::Ordering::{Acquire, Relaxed, SeqCst},
    time::Duration,
};
use rustix::thread::{MembarrierCommand, futex, membarrier};

/// Bit 0: threads may be parked.
const PARKED: u32 = 1;
/// The longest time to stay parked without checking again; also the interval at which waiting
/// processes check whether the others are alive.
pub(crate) const LONGEST: Duration = Duration::from_millis(5);

/// Registers this process for the heavy barriers of other processes.
pub(crate) fn register_process() {
    // If this fails, wake-ups may be lost; `LONGEST` bounds the delay.
    let _ = membarrier(MembarrierCommand::RegisterGlobalExpedited);
}

/// The word that a waiter remembers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket(u32);

/// W1 and W2. The caller then checks its condition, and parks.
pub(crate) fn prepare(map: &Mapping, rank: usize) -> Ticket {
    let ticket = map.doorbell(rank).fetch_or(PARKED, SeqCst) | PARKED;
    // As in `register_process`.
    let _ = membarrier(MembarrierCommand::GlobalExpedited);
    Ticket(ticket)
}

/// W4, for `longest` at most.
pub(crate) fn park(map: &Mapping, rank: usize, Ticket(ticket): Ticket, longest: Duration) {
    let longest = futex::Timespec { tv_sec: 0, tv_nsec: longest.min(LONGEST).subsec_nanos().into() };
    // Regardless of the result (woken, changed, interrupted, timed out), the waiter checks its
    // condition again.
    let _ = futex::wait(map.doorbell(rank), futex::Flags::empty(), ticket, Some(&longest));
}

/// P2.
pub(crate) fn ring(map: &Mapping, rank: usize) {
    let doorbell = map.doorbell(rank);
    let seen = doorbell.load(Acquire);
    if seen & PARKED != 0 && doorbell.compare_exchange(seen, seen.wrapping_add(1), SeqCst, Relaxed).is_ok() {
        // This fails only for addresses that are not a futex.
        let _ = futex::wake(doorbell, futex::Flags::empty(), i32::MAX as u32);
    }
}
