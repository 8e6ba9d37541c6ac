//! Mutated steps of the locks with queues, each by a [`Mutant`] of the fabric.
//!
//! The lock must be the job's first symmetric region.

mod counted;
mod fair;
mod words;

pub use words::assert_idle;
pub(super) use words::{in_lock, lock_words, wake_word, word};

use counted::Counted;
use explore::mutant::{Mutant, mutated};
use fair::Fair;
use rdma_fabric::{Amo, Fabric, Rank, RemoteAddr};
use rma_lock::locks::LockKind;
use words::{PASSED, next_word, wakes};

/// One step of a lock with queues that is mutated, or executed in a different way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuedMutant {
    /// No mutant: the wrapper itself must have no effect.
    Nothing,
    /// R4 always finds the writer still registered.
    NoSecondLook,
    /// A part of R2 and W1 comes after R3 and W2: the node's next word is cleared when its rank may
    /// already have a successor.
    LateInitialisation,
    /// W3 and X5 do not flush.
    HeadNotFlushed,
    /// X1 as printed (the head is cleared on leaving), but not flushed.
    HeadClearedUnflushed,
    /// X2 happens only with X6, after X3; without a successor, before X4's swap.
    LeaveMergedWithInterest,
    /// U2, W5 and X7 treat the comparison as successful.
    ComparisonIgnored,
    /// A writer that tries to enter a free lock with one compare-and-swap treats it as successful.
    ShortcutIgnored,
    /// A writer that hands over with one compare-and-swap treats it as successful.
    HandOverIgnored,
    /// A head in the count word is not written.
    HeadNotNamed,
    /// A head in the count word is not removed again.
    HeadKept,
    /// A reader that finds a writer registered stays counted while it waits.
    StaysCounted,
    /// The first waiting reader does not announce that readers wait.
    NobodyTold,
    /// The announcement that readers wait is withdrawn after the stack was taken.
    ToldTooLate,
    /// U2, W5 and X7 give up if readers have begun to wait in the meantime.
    OneComparison,
    /// F4 sees no readers.
    ReadersIgnored,
    /// A reader that is inside, or admitted, is not counted.
    NotCounted,
    /// A reader that leaves does not identify the writer that comes next.
    NotSaid,
    /// G4 is left out.
    NotTakenBack,
    /// The last reader to leave, finding no registered writer, checks again later and admits the
    /// writer that it finds: the lock as printed.
    LateLook,
    /// A reader that is inside does not mark its node.
    NotInside,
    /// A reader does not see that its predecessor is inside.
    InsideIgnored,
    /// A reader treats a predecessor that waits as one that is inside.
    BlockedTakenForInside,
    /// The release does not flush the data.
    DataNotFlushed,
    /// A reader's release begins its flush but does not await it.
    FlushNotAwaited,
    /// U1 stores the value that a lone reader would leave instead of subtracting.
    StoreForSubtract,
    /// X3 never takes the stack of waiting readers.
    NoSweep,
    /// X3 comes after the next writer was registered, with X6; without a successor, after X4.
    SweepAfterRegistration,
    /// U3 and X7 wake the writer that this rank registered last instead of the head.
    RememberedNext,
    /// X4 assumes that the tail is still its own.
    TailIgnored,
    /// W6 does not see the mark of a writer that has left.
    MarkIgnored,
    /// X4 leaves no mark for a successor that has yet to arrive.
    NoMark,
    /// A node with the mark is reused before the successor has arrived.
    MarkNotAwaited,
    /// A rank that wakes a waiter treats one that gave up as woken, and does not act on its behalf.
    AbandonedTakenForWoken,
    /// A rank that acts on behalf of a waiter that gave up makes the node reusable before it has
    /// read the successor.
    ReadyTooEarly,
    /// The remaining work of a dropped future is not executed: its reader stays counted, and its
    /// node blocked.
    DroppedAndForgotten,
    /// W4, X6 and X2 as printed: an `or` and an `and`. This is not an error but the same lock with
    /// other operations.
    FlagsAsPrinted,
    /// X3 as printed: the stack is taken although no reader is counted. This is not an error but
    /// the same lock with one more operation.
    SweepAsPrinted,
}

/// Inserts a [`QueuedMutant`] between one rank's fabric and its lock.
pub fn queued_mutant(fabric: Fabric, lock: LockKind, mutant: QueuedMutant) -> Fabric {
    let protocol = match lock {
        LockKind::Fair => Protocol::Fair(Fair::new(mutant)),
        _ => Protocol::Counted(Counted::new(mutant)),
    };
    mutated(fabric, MutatedQueue { mutant, protocol })
}

/// A [`QueuedMutant`] at one rank: the part that all locks with queues share, and the part of the
/// lock at hand.
#[derive(Debug)]
struct MutatedQueue {
    mutant: QueuedMutant,
    protocol: Protocol,
}

#[derive(Debug)]
enum Protocol {
    Counted(Counted),
    Fair(Fair),
}

impl MutatedQueue {
    fn is(&self, mutant: QueuedMutant) -> bool {
        self.mutant == mutant
    }
}

impl Mutant for MutatedQueue {
    fn flushes(&self, target: Option<Rank>) -> bool {
        match self.mutant {
            QueuedMutant::HeadNotFlushed => target.is_none(),
            // The fair lock flushes only data.
            QueuedMutant::DataNotFlushed => matches!(self.protocol, Protocol::Counted(_)) && target.is_some(),
            _ => true,
        }
    }

    fn awaits_flush(&self, _: Option<Rank>) -> bool {
        let reads = match &self.protocol {
            Protocol::Counted(counted) => counted.reads(),
            Protocol::Fair(fair) => fair.reads(),
        };
        !self.is(QueuedMutant::FlushNotAwaited) || !reads
    }

    fn waits(&self, addr: RemoteAddr) -> bool {
        !self.is(QueuedMutant::MarkNotAwaited) || !next_word(addr)
    }

    fn taken_for(&self, _: RemoteAddr, _: u64) -> u64 {
        0
    }

    /// Drops the put that makes the node reusable: it was already executed.
    fn put(&self, addr: RemoteAddr, bits: u64) -> Option<u64> {
        (!self.is(QueuedMutant::ReadyTooEarly) || !wake_word(addr)).then_some(bits)
    }

    fn detaches(&self) -> bool {
        !self.is(QueuedMutant::DroppedAndForgotten)
    }

    fn got(&self, addr: RemoteAddr, bits: u64) -> u64 {
        match &self.protocol {
            Protocol::Counted(counted) => counted.got(addr, bits),
            Protocol::Fair(fair) => fair.got(addr, bits),
        }
    }

    fn first(&self, addr: RemoteAddr, amo: Amo<u64>) -> Option<(RemoteAddr, Amo<u64>)> {
        match &self.protocol {
            Protocol::Counted(counted) => counted.first(addr, amo),
            Protocol::Fair(_) => None,
        }
    }

    fn puts(&self, addr: RemoteAddr, amo: Amo<u64>) -> Option<(RemoteAddr, u64)> {
        match &self.protocol {
            Protocol::Counted(counted) => counted.puts(addr, amo),
            Protocol::Fair(_) => None,
        }
    }

    fn atomic(&self, addr: RemoteAddr, amo: Amo<u64>) -> Amo<u64> {
        let done = match &self.protocol {
            Protocol::Counted(counted) => counted.atomic(addr, amo),
            Protocol::Fair(fair) => fair.atomic(addr, amo),
        };
        match amo {
            // Or(0) reads and leaves the value unchanged.
            Amo::CompareSwap { new: PASSED, .. } if self.is(QueuedMutant::NoMark) && next_word(addr) => Amo::Or(0),
            _ => done,
        }
    }

    fn continues(&self, addr: RemoteAddr, amo: Amo<u64>) -> bool {
        let continues = match &self.protocol {
            Protocol::Counted(counted) => counted.continues(addr, amo),
            Protocol::Fair(fair) => fair.continues(addr, amo),
        };
        continues || self.is(QueuedMutant::ReadyTooEarly) && wakes(addr, amo)
    }

    fn then(&self, addr: RemoteAddr, amo: Amo<u64>, old: u64) -> Option<(RemoteAddr, Amo<u64>)> {
        if self.is(QueuedMutant::ReadyTooEarly) {
            return words::ready(addr, old);
        }
        match &self.protocol {
            Protocol::Counted(counted) => counted.then(addr, amo, old),
            Protocol::Fair(_) => (old == fair::READER).then_some((addr, Amo::Or(0))),
        }
    }

    fn after(&self, addr: RemoteAddr, _: Amo<u64>, old: u64, found: u64) -> u64 {
        match &self.protocol {
            Protocol::Fair(_) if !wake_word(addr) => fair::after(old, found),
            _ => old,
        }
    }

    fn result(&self, addr: RemoteAddr, amo: Amo<u64>, old: u64) -> u64 {
        let tail = match &self.protocol {
            Protocol::Counted(_) => counted::TAIL,
            Protocol::Fair(_) => fair::TAIL,
        };
        match (self.mutant, amo) {
            (QueuedMutant::TailIgnored, Amo::CompareSwap { expected, new: 0 }) if word(addr, tail) => expected,
            (QueuedMutant::MarkIgnored, Amo::Swap(_)) if next_word(addr) && old == PASSED => 0,
            (QueuedMutant::AbandonedTakenForWoken, Amo::CompareSwap { expected, .. }) if wakes(addr, amo) => expected,
            _ => match &self.protocol {
                Protocol::Counted(counted) => counted.result(addr, amo, old),
                Protocol::Fair(fair) => fair.result(addr, amo, old),
            },
        }
    }

    fn late(&self, addr: RemoteAddr, bits: u64) -> bool {
        self.is(QueuedMutant::LateInitialisation) && next_word(addr) && bits == 0
    }

    fn sees_put(&self, addr: RemoteAddr, bits: u64) {
        if let Protocol::Counted(counted) = &self.protocol {
            counted.sees_put(addr, bits);
        }
    }
}
