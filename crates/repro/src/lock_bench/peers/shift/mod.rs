//! ShiftLock (Gao, Wang and Shu: ShiftLock: Mitigate One-sided RDMA Lock Contention via Handover,
//! FAST 2025), over 8-byte atomics.
//!
//! # The published protocol
//! An entry of 16 bytes: mode, number of readers, tail of the writers' queue; number of releases.
//! * *Writers* are an MCS queue. A masked swap of the tail tells who was last. Who finds somebody
//!   sends it `Successor` and waits for `Handover` (it is inside) or `ModeChanged` (readers are),
//!   without a look at the entry. Who finds nobody waits until the releases have grown by the number
//!   of readers there were, polling them.
//! * *Readers* count themselves with one fetch-add. If the tail is empty they are inside, otherwise
//!   they poll the entry until the mode has changed. They uncount themselves, and count a release,
//!   with one fetch-add.
//! * A writer *leaves* by a masked compare-and-swap that empties the tail, changes the mode and
//!   counts a release; that fails if it has a successor. Then it hands over by message, unless it is
//!   the 16th writer in a row: then it changes the mode, counts a release and sends `ModeChanged`
//!   with the releases to wait for: its own, and one of each reader there was.
//!
//! Order, messages and the bound of 16 are from the paper and its artifact
//! (`github.com/thustorage/shiftlock`, read for facts), which also has the rule that the release of
//! the last writer changes the mode.
//!
//! # What differs here
//! * *Two words instead of one.* The fabric's atomics have 8 bytes and no masks: a swap of the tail
//!   can't leave the rest alone. So the tail is one word, and the state another, in which the
//!   queue's first writer *announces* itself, because readers can't see the tail any more. That
//!   costs the first writer a second atomic (swap, add) and the last one a second (compare-and-swap,
//!   add); all others cost what they did: a writer behind another one atomic, a hand-over one put, a
//!   change of mode one atomic and one put, a reader one atomic and one.
//! * *Messages are puts* of one word into the waiting rank's memory, where it waits. The artifact
//!   sends them over dynamically connected transport.
//! * *Two bits of mode.* Between the two atomics of a leaving writer, the next one may come, find
//!   the tail empty and announce itself: then two are announced. It waits for the other's release
//!   like for a reader's. A reader that comes now enters after both, two modes on.
//! * *Polling without a pause*, as the artifact does unless told otherwise.
//! * *Left out*: leases, resets and recovery; the artifact's two attempts with a plain
//!   compare-and-swap before a writer queues, which need mode, readers and tail in one word.
//!
//! # Why it is right
//! *Writers exclude each other*: the queue's order, and one `Handover` or `ModeChanged` for each
//! link; who finds the tail empty while a leaving writer is still announced waits for its release.
//! *Readers and writers*: a reader is counted before it looks. If no writer is announced, every
//! later writer counts it among those to wait for. If one is, it enters after as many changes of
//! mode as there were writers announced; the writer that comes after the last of these changes sees
//! it counted, in the value of its announcement or of the change itself, and lets the mode stand
//! until it has left. So the mode can't run away from a reader that polls slowly, and releases reach
//! the number a writer waits for exactly when the last of those it counted has left, because those
//! that it did not count wait for it. *Words are used again* safely: a rank's successor word is
//! written once between its swap and the end of its release, its grant word once between its link
//! and its entry, and it empties both.

mod reader;
mod state;
mod writer;

use super::lock::{PeerLock, Protocol, Seat};
use rdma_fabric::{LocalWord, RemoteWord};
use rma_lock::{Fairness, LockError, Result};
use state::Mode;

/// ShiftLock.
pub type ShiftLock = PeerLock<Shift>;

const TAIL: u64 = 0;
const STATE: u64 = 1;
/// Where a predecessor learns who comes next.
const SUCCESSOR: u64 = 0;
/// Where a waiting writer is told that it is inside, or that readers are.
const GRANT: u64 = 1;

/// Writers in a row, after whom readers get in.
const IN_A_ROW: u32 = 16;

/// A rank's side of a [`ShiftLock`].
#[derive(Debug)]
pub struct Shift {
    seat: Seat,
    tail: RemoteWord<u64>,
    state: RemoteWord<u64>,
    successor: LocalWord<u64>,
    grant: LocalWord<u64>,
}

/// What a holder of a [`ShiftLock`] remembers.
#[derive(Clone, Copy, Debug)]
pub enum Held {
    /// Nothing.
    Shared,
    /// Its mode, and how many writers were inside before it since readers last were.
    #[allow(private_interfaces, reason = "nobody outside looks into it")]
    Exclusive(Turn),
}

#[derive(Clone, Copy, Debug)]
struct Turn {
    mode: Mode,
    in_a_row: u32,
}

impl Protocol for Shift {
    type Held = Held;

    const NAME: &'static str = "ShiftLock";
    // The nearest word there is: readers' turn comes after 16 writers, or when none waits.
    const FAIRNESS: Fairness = Fairness::Alternating;
    const HOME_WORDS: usize = 2;

    fn new(seat: Seat) -> Result<Self> {
        let ranks = seat.fabric.ranks() as u32;
        if ranks > state::RANKS {
            return Err(LockError::TooManyRanks { ranks, most: state::RANKS });
        }
        Ok(Shift {
            tail: seat.at_home(TAIL)?,
            state: seat.at_home(STATE)?,
            successor: seat.own(SUCCESSOR)?,
            grant: seat.own(GRANT)?,
            seat,
        })
    }

    fn seat(&self) -> &Seat {
        &self.seat
    }

    async fn acquire(&self, exclusive: bool) -> Result<Held> {
        if exclusive {
            return Ok(Held::Exclusive(self.enter_to_write().await?));
        }
        self.enter_to_read().await?;
        Ok(Held::Shared)
    }

    async fn release(&self, held: Held) -> Result<()> {
        match held {
            Held::Shared => self.leave_from_reading().await,
            Held::Exclusive(turn) => self.leave_from_writing(turn).await,
        }
    }
}
