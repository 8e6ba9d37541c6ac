//! ShiftLock (Gao, Wang and Shu: ShiftLock: Mitigate One-sided RDMA Lock Contention via Handover,
//! FAST 2025), over 8-byte atomics.
//!
//! # The published protocol
//! The lock is an entry of 16 bytes: mode, number of readers, tail of the writers' queue; number of
//! releases.
//! * *Writers* form an MCS queue. A masked swap of the tail returns the predecessor. A writer with
//!   a predecessor sends it `Successor` and waits for `Handover` (it is inside) or `ModeChanged`
//!   (readers are), without reading the entry. A writer without a predecessor polls the releases
//!   until they have grown by the number of readers that it found.
//! * *Readers* count themselves with one fetch-add. If the tail is empty they are inside, otherwise
//!   they poll the entry until the mode has changed. They uncount themselves, and count a release,
//!   with one fetch-add.
//! * A writer *leaves* by a masked compare-and-swap that empties the tail, changes the mode and
//!   counts a release; it fails if the writer has a successor. Then the writer hands over by
//!   message, unless it is the 16th writer in a row: in that case it changes the mode, counts a
//!   release and sends `ModeChanged` with the number of releases to wait for: its own, and one of
//!   each counted reader.
//!
//! Order, messages and the bound of 16 are from the paper and its artifact
//! (`github.com/thustorage/shiftlock`, read for facts), which also contains the rule that the
//! release of the last writer changes the mode.
//!
//! # Differences
//! * *Two words instead of one.* The fabric's atomics have 8 bytes and no masks, so a swap of the
//!   tail can't leave the other fields unchanged. Therefore the tail is one word and the state
//!   another, in which the queue's first writer *announces* itself, because readers no longer see
//!   the tail. That costs the first writer a second atomic (swap, add) and the last one a second
//!   (compare-and-swap, add). The other costs are unchanged: one atomic for a writer with a
//!   predecessor, one put for a hand-over, one atomic and one put for a change of mode, one atomic
//!   each for a reader's arrival and release.
//! * *Messages are puts* of one word into the waiting rank's memory, where it waits. The artifact
//!   sends them over dynamically connected transport.
//! * *Two bits of mode.* Between the two atomics of a leaving writer, the next writer may arrive,
//!   find the tail empty and announce itself: then two are announced. The new writer waits for the
//!   release of the other one in the same way as for a reader's. A reader that arrives now enters
//!   after both, two modes later.
//! * *Polling without a pause*, as the artifact does by default.
//! * *Left out*: leases, resets and recovery; the artifact's two attempts with a plain
//!   compare-and-swap before a writer queues, which need mode, readers and tail in one word.
//!
//! # Correctness
//! *Writers exclude each other* by the queue's order and one `Handover` or `ModeChanged` for each
//! link. A writer that finds the tail empty while a leaving writer is still announced waits for the
//! release of the latter.
//!
//! *Readers and writers*: a reader is counted before it examines the state. If no writer is
//! announced, every later writer waits for this reader, among others. If a writer is announced, the
//! reader enters after as many changes of mode as there were announced writers. The writer that
//! follows the last of these changes sees the reader counted, in the value of its announcement or
//! of the change itself, and does not change the mode until the reader has left. So the mode can't
//! overtake a reader that polls slowly. The releases reach the number that a writer waits for
//! exactly when the last of the ranks that it counted has left, because the ranks that it did not
//! count wait for it.
//!
//! *Words are reused* safely: a rank's successor word is written once between its swap and the end
//! of its release, its grant word once between its link and its entry, and it empties both.

mod reader;
mod state;
mod writer;

use super::lock::{PeerLock, Protocol, RankState};
use rdma_fabric::{LocalWord, RemoteWord};
use rma_lock::{Fairness, LockError, Result};
use state::Mode;

/// ShiftLock.
pub type ShiftLock = PeerLock<Shift>;

const TAIL: u64 = 0;
const STATE: u64 = 1;
/// The word in which a predecessor receives its successor.
const SUCCESSOR: u64 = 0;
/// The word in which a waiting writer receives the message that it is inside, or that readers are.
const GRANT: u64 = 1;

/// The number of consecutive writers after which readers are admitted.
const IN_A_ROW: u32 = 16;

/// A rank's side of a [`ShiftLock`].
#[derive(Debug)]
pub struct Shift {
    rank_state: RankState,
    tail: RemoteWord<u64>,
    state: RemoteWord<u64>,
    successor: LocalWord<u64>,
    grant: LocalWord<u64>,
}

/// The state of a holder of a [`ShiftLock`].
#[derive(Clone, Copy, Debug)]
pub enum Held {
    /// Nothing.
    Shared,
    /// Its mode, and the number of writers that were inside before it since the last readers.
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
    // The closest value: the readers' turn comes after 16 writers, or when no writer waits.
    const FAIRNESS: Fairness = Fairness::Alternating;
    const HOME_WORDS: usize = 2;

    fn new(rank_state: RankState) -> Result<Self> {
        let ranks = rank_state.fabric.ranks() as u32;
        if ranks > state::RANKS {
            return Err(LockError::TooManyRanks { ranks, most: state::RANKS });
        }
        Ok(Shift {
            tail: rank_state.at_home(TAIL)?,
            state: rank_state.at_home(STATE)?,
            successor: rank_state.own(SUCCESSOR)?,
            grant: rank_state.own(GRANT)?,
            rank_state,
        })
    }

    fn rank_state(&self) -> &RankState {
        &self.rank_state
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
