//! The doorbell, by which a rank that writes another rank's memory wakes it if it is parked.
//!
//! The doorbell is two words. In the first, bit 0 is set while a thread may be parked, and the bits
//! above count rings. The second is the *watch*: the memory that the waiter waits for, so that
//! other writes need no system call.
//!
//! ```text
//! waiter                              poster
//! W0  set the watch                   P1  write the memory waited on
//! W1  set bit 0 (RMW), remember word  P2  light barrier (the compiler only)
//! W2  heavy barrier                   P3  check bit 0; if set, the watch; if that is
//! W3  check the memory again              what was written: count a ring, clear bit 0, wake
//! W4  park while the word is as remembered
//! W5  if no other thread is between W0 and W5, clear bit 0
//! ```
//! This is the store-buffer race: P1/P3 against W0, W1/W3. A wake-up is lost only if P3 misses W0
//! or W1 *and* W3 misses P1. A barrier on both sides forbids that; because posting is much more
//! frequent than parking, the poster has none and the waiter pays for both: the *heavy barrier* is
//! `membarrier(GLOBAL_EXPEDITED)`, after which every CPU that runs a rank has executed a barrier.
//! If a poster's P3 preceded it, its P1 did too and W3 sees it; otherwise P3 sees W0 and W1.
//! Read-modify-writes on x86-64 are barriers by themselves.
//!
//! Parking is bounded in time ([`longest_park`]), for systems without a heavy barrier and against
//! words damaged by other ranks. A waiter that wakes checks again, so the bound affects only
//! latency, never correctness.
//!
//! Bit 0 stays set as long as another thread of the rank may be parked on the same doorbell; the
//! last one clears it, since otherwise every later write to the segment would check the watch. A
//! poster that has seen it set may then ring for nothing, or not at all: a thread that prepares
//! afterwards checks the memory again. While several threads are parked, the watch is
//! [`Watch::Any`].

use core::{
    sync::atomic::{
        AtomicU32, AtomicU64,
        Ordering::{Acquire, Relaxed, SeqCst},
        compiler_fence,
    },
    time::Duration,
};

pub(crate) use system::register_process;

/// The event that a parked waiter waits for. Changes of ranks' states end every wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Watch {
    /// Any write to the segment.
    Any,
    /// Nothing in the segment: time, or a change of state.
    #[default]
    Nothing,
    /// A notice.
    Notice,
    /// A word of at most 8 bytes at this offset in the segment.
    Word(usize),
}

impl Watch {
    /// Returns the watch as encoded in the segment.
    pub(crate) fn to_bits(self) -> u64 {
        match self {
            Watch::Any => 0,
            Watch::Nothing => 1,
            Watch::Notice => 2,
            // Words that can be waited for are never in a segment's first line.
            Watch::Word(at) => at as u64,
        }
    }

    /// Returns whether writing bytes `start..end` of the segment concerns a waiter with these bits.
    pub(crate) fn covers(bits: u64, start: u64, end: u64) -> bool {
        bits == Watch::Any.to_bits() || (bits < end && start < bits.saturating_add(8))
    }

    /// Returns whether a notice concerns a waiter with these bits.
    pub(crate) fn wants_notices(bits: u64) -> bool {
        bits == Watch::Notice.to_bits() || bits == Watch::Any.to_bits()
    }

    /// Returns the watch of a waiter for `self` and `other`.
    pub(crate) fn and(self, other: Watch) -> Watch {
        match (self, other) {
            (Watch::Nothing, only) | (only, Watch::Nothing) => only,
            (a, b) if a == b => a,
            _ => Watch::Any,
        }
    }
}

const PARKED: u32 = 1;

/// The operations that the protocol needs of two words and the operating system. The tests
/// implement it for loom's words.
pub(crate) trait Doorbell {
    fn set_watch(&self, bits: u64);
    fn watch(&self) -> u64;
    fn look(&self) -> u32;
    /// Sets bit 0 and returns the resulting word.
    fn set_parked(&self) -> u32;
    /// Clears bit 0.
    fn clear_parked(&self);
    /// Makes every ticket stale, and leaves bit 0 unchanged.
    fn outdate(&self);
    /// Adds one if the word is still `seen`; this clears bit 0 and counts the ring.
    fn count_ring(&self, seen: u32) -> bool;
    fn light_barrier(&self);
    fn heavy_barrier(&self);
    /// Blocks while the word is `expected`, for at most `longest`. May return early.
    fn park(&self, expected: u32, longest: Duration);
    fn wake_all(&self);
}

/// Executes W0 to W2. The caller then checks the memory it waits for, and parks with the returned
/// ticket.
pub(crate) fn prepare(doorbell: &impl Doorbell, watch: Watch) -> Ticket {
    doorbell.set_watch(watch.to_bits());
    let ticket = doorbell.set_parked();
    doorbell.heavy_barrier();
    Ticket(ticket)
}

/// The word that a waiter remembers between [`prepare`] and [`park`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket(u32);

/// Does W4: parks.
pub(crate) fn park(doorbell: &impl Doorbell, ticket: Ticket, longest: Duration) {
    doorbell.park(ticket.0, longest);
}

/// Executes W5, after which no ticket is left.
pub(crate) fn leave(doorbell: &impl Doorbell) {
    doorbell.clear_parked();
}

/// Returns whether the doorbell rang since [`prepare`].
pub(crate) fn was_rung(doorbell: &impl Doorbell, ticket: Ticket) -> bool {
    doorbell.look() != ticket.0
}

/// Executes P2 and P3. `hits` returns whether the write concerns a waiter with these bits.
#[inline(always)]
pub(crate) fn ring(doorbell: &impl Doorbell, hits: impl FnOnce(u64) -> bool) {
    if let Some(seen) = parked(doorbell) {
        wake(doorbell, seen, hits);
    }
}

/// The word in which a poster saw that a thread may be parked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parked(u32);

/// Executes P2 and checks bit 0.
#[inline(always)]
pub(crate) fn parked(doorbell: &impl Doorbell) -> Option<Parked> {
    doorbell.light_barrier();
    let seen = doorbell.look();
    (seen & PARKED != 0).then_some(Parked(seen))
}

/// Executes the rest of P3: wakes the threads.
#[cold]
pub(crate) fn wake(doorbell: &impl Doorbell, Parked(seen): Parked, hits: impl FnOnce(u64) -> bool) {
    // If this fails, another poster rings, which wakes every thread that this ring would wake.
    if hits(doorbell.watch()) && doorbell.count_ring(seen) {
        doorbell.wake_all();
    }
}

/// Wakes all threads on behalf of a dead rank. It may have died after counting a ring, which clears
/// bit 0, and before waking any thread; so this makes the system call in any case.
pub(crate) fn wake_surely(doorbell: &impl Doorbell) {
    ring(doorbell, |_| true);
    doorbell.wake_all();
}

/// Wakes all threads, including those that park with the ticket of a thread that has left since. A
/// poster whose ring this prevents wrote earlier, so every thread woken here sees the write.
pub(crate) fn kick(doorbell: &impl Doorbell) {
    doorbell.outdate();
    doorbell.wake_all();
}

/// The doorbell of a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DoorbellWords<'a> {
    pub(crate) doorbell: &'a AtomicU32,
    pub(crate) watch: &'a AtomicU64,
}

impl Doorbell for DoorbellWords<'_> {
    fn set_watch(&self, bits: u64) {
        self.watch.store(bits, Relaxed);
    }

    fn watch(&self) -> u64 {
        self.watch.load(Relaxed)
    }

    #[inline(always)]
    fn look(&self) -> u32 {
        // Acquire: pairs with the read-modify-write in `set_parked`, for the watch.
        self.doorbell.load(Acquire)
    }

    fn set_parked(&self) -> u32 {
        self.doorbell.fetch_or(PARKED, SeqCst) | PARKED
    }

    fn clear_parked(&self) {
        self.doorbell.fetch_and(!PARKED, SeqCst);
    }

    fn outdate(&self) {
        self.doorbell.fetch_add(2, SeqCst);
    }

    fn count_ring(&self, seen: u32) -> bool {
        self.doorbell.compare_exchange(seen, seen.wrapping_add(1), SeqCst, Relaxed).is_ok()
    }

    #[inline(always)]
    fn light_barrier(&self) {
        compiler_fence(SeqCst);
    }

    fn heavy_barrier(&self) {
        system::heavy_barrier();
    }

    fn park(&self, expected: u32, longest: Duration) {
        if self.doorbell.load(Acquire) == expected {
            system::park(self.doorbell, expected, longest);
        }
    }

    fn wake_all(&self) {
        system::wake_all(self.doorbell);
    }
}

/// Returns the longest time that a rank stays parked without checking; with a heavy barrier, this
/// is only a safety net.
pub(crate) fn longest_park(heavy_barrier: bool) -> Duration {
    if heavy_barrier { Duration::from_millis(10) } else { Duration::from_millis(1) }
}

#[cfg(all(target_os = "linux", not(miri)))]
mod system {
    use core::{
        sync::atomic::{AtomicU32, Ordering::SeqCst, fence},
        time::Duration,
    };
    use rustix::thread::{MembarrierCommand, futex, membarrier};

    /// Registers this process for heavy barriers of any process. Returns whether that succeeded.
    pub(crate) fn register_process() -> bool {
        membarrier(MembarrierCommand::RegisterGlobalExpedited).is_ok()
    }

    pub(crate) fn heavy_barrier() {
        fence(SeqCst);
        // Refused by the kernel: `NO_HEAVY_BARRIER` is set and parking is short.
        let _ = membarrier(MembarrierCommand::GlobalExpedited);
    }

    pub(crate) fn park(doorbell: &AtomicU32, expected: u32, longest: Duration) {
        let longest = futex::Timespec {
            tv_sec: longest.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: longest.subsec_nanos().into(),
        };
        // Regardless of the outcome (woken, changed, interrupted, timed out), the waiter checks
        // again.
        let _ = futex::wait(doorbell, futex::Flags::empty(), expected, Some(&longest));
    }

    pub(crate) fn wake_all(doorbell: &AtomicU32) {
        // This can fail only for addresses that are not a futex.
        let _ = futex::wake(doorbell, futex::Flags::empty(), i32::MAX as u32);
    }
}

/// Without futexes, ranks are threads of one process, and one parking lot serves them all.
#[cfg(not(all(target_os = "linux", not(miri))))]
mod system {
    use core::{
        sync::atomic::{AtomicU32, Ordering::SeqCst, fence},
        time::Duration,
    };
    use std::sync::{Condvar, Mutex, PoisonError};

    static LOT: Mutex<()> = Mutex::new(());
    static BELLS: Condvar = Condvar::new();

    pub(crate) fn register_process() -> bool {
        false
    }

    pub(crate) fn heavy_barrier() {
        fence(SeqCst);
    }

    pub(crate) fn park(doorbell: &AtomicU32, expected: u32, longest: Duration) {
        let lot = LOT.lock().unwrap_or_else(PoisonError::into_inner);
        if doorbell.load(SeqCst) == expected {
            let _woken = BELLS.wait_timeout(lot, longest).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(crate) fn wake_all(_: &AtomicU32) {
        let _lot = LOT.lock().unwrap_or_else(PoisonError::into_inner);
        BELLS.notify_all();
    }
}

#[cfg(all(test, not(miri)))]
mod model;
#[cfg(test)]
mod tests;
