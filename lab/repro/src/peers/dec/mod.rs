//! DecLock's queue-notify lock, CQL (Zhang, Cheng, Chen, Wei and Chen: DecLock: A Case of Decoupled
//! Locking for Disaggregated Memory, arXiv 2505.17641, 2025).
//!
//! # The published protocol
//! The home stores a header of one word (head of the queue, number of participants, number of
//! writers among them) and a ring of entries. A participant's entry is at its position modulo the
//! ring's length.
//! * *To acquire*: one fetch-add counts a participant and returns its position. The participant is
//!   inside if it is the only one, or if it is a reader and there is no writer. Otherwise it puts
//!   its entry into the ring and waits for a message.
//! * *To release*: one fetch-add takes the head off, and the same batch reads the ring. A writer
//!   then notifies the next writer, or all readers up to the next writer, directly and without the
//!   home. A reader notifies the next writer, if it is the last of its group.
//! * An entry contains its position's turn of the ring, so that a reader of the ring sees whether
//!   the entry has been written yet; if not, it reads again.
//!
//! Header, order of the queue, batch and messages are from the paper and its artifact
//! (`github.com/dracit7/declock`, read for facts).
//!
//! # Differences
//! * *No node level.* The paper's lock puts a lock inside each node in front of this one, by which
//!   the clients of a node pass the lock on among themselves up to a bound set by timestamps. So
//!   this is the variant that the artifact calls CQL without cohorts: all clients share one queue.
//! * *The ring has an entry for each rank* (rounded up to a power of two), so that it never
//!   overflows and is never reset. The artifact's ring has 512 entries without cohorts and 32 with
//!   them, all of which it reads at each release. Here the batch of a release reads the 32 entries
//!   after its own position (fewer at the ring's end), and further entries are read only on demand.
//! * *The last of a group of readers.* Readers that are admitted immediately write no entry. So a
//!   leaving reader may find no entry at the next position, either because a reader is inside there
//!   or because a writer's entry is in transit. The artifact then counts writers in the whole ring
//!   until it has found the number stored in the header. Here a writer that finds no other writer
//!   in the queue records that in its entry (*alone*), and the search ends at that entry. A reader
//!   whose own position has not been taken off yet need not search at all.
//! * *Entries of 8 bytes*, with the whole position, instead of 4 bytes with a version of 15 to 19
//!   bits. In jobs of 524,288 ranks and more the header leaves 24 bits for the head: 16 turns of
//!   the ring. An entry that is 15 turns old could then be mistaken for a later one. (The published
//!   version field has the same limit.)
//! * *Messages are puts* of one word into the receiver's memory, where the receiver waits. The
//!   artifact sends them over reliable connections.
//! * *Left out*: resets (overflow, crashes) and their bit in the header, timestamps.
//!
//! # Operations
//! Uncontended: one atomic to acquire; one atomic and one get, concurrently, to release. In a
//! queue: additionally one put of the entry to the home, and one put to each participant that is
//! admitted.
//!
//! # Correctness
//! *Order.* One word assigns the positions; each leaving participant takes the first position off
//! the queue. So a group of readers has left completely when as many participants have left as the
//! group had readers, regardless of their order. A reader is admitted immediately only if there is
//! no writer in the queue, and then all participants before it are readers. A leaving writer is the
//! first participant, and admits the group that follows: those that arrived before its fetch-add.
//! Readers that arrive later while no writer waits are inside by themselves.
//!
//! *Notifying the next writer.* In a group of readers up to position `b`, this is the task of the
//! one whose fetch-add finds the head at `b`, and of no other. It must determine whether the
//! participant at `b + 1` is a writer. Consider the next writer in the queue. If an earlier writer
//! was still in the queue when the next one arrived, all participants between them found a writer
//! and wrote entries, and the earlier writer saw those entries before it admitted any participant
//! of the group, so the entry of `b + 1` is there. Otherwise the next writer was alone, its entry
//! records that, and all participants after it write entries. So the search finds either the entry
//! of `b + 1`, or an *alone* entry farther on, which shows that a reader is at `b + 1`; or both are
//! still in transit. An entry that is one turn later shows that a participant has taken `b + 1`
//! off, which only readers do without a notification.
//!
//! *Entries are overwritten* only by participants that wait a turn later, and the put of a waiting
//! participant has arrived before another participant can admit it, since the latter has read the
//! entry.

mod acquire;
mod layout;
mod release;

use super::lock::{PeerLock, Protocol, RankState};
use layout::Layout;
use rdma_fabric::{LocalWord, RemoteWord};
use rma_lock::{Fairness, LockError, Result};

/// DecLock's queue-notify lock.
pub type DecLock = PeerLock<Dec>;

/// The word in which a waiting rank receives its admission.
const GRANT: u64 = 0;

/// A rank's side of a [`DecLock`].
#[derive(Debug)]
pub struct Dec {
    rank_state: RankState,
    layout: Layout,
    header: RemoteWord<u64>,
    grant: LocalWord<u64>,
}

/// The state of a holder of a [`DecLock`].
#[derive(Clone, Copy, Debug)]
pub struct Held {
    position: u64,
    exclusive: bool,
}

impl Protocol for Dec {
    type Held = Held;

    const NAME: &'static str = "DecLock (CQL)";
    const FAIRNESS: Fairness = Fairness::Fifo;
    const HOME_WORDS: usize = 1;

    fn words_at_home(ranks: usize) -> usize {
        Layout::of(u32::try_from(ranks).unwrap_or(layout::RANKS)).entries() as usize
    }

    fn new(rank_state: RankState) -> Result<Self> {
        let ranks = rank_state.fabric.ranks() as u32;
        if ranks > layout::RANKS {
            return Err(LockError::TooManyRanks { ranks, most: layout::RANKS });
        }
        Ok(Dec { layout: Layout::of(ranks), header: rank_state.at_home(0)?, grant: rank_state.own(GRANT)?, rank_state })
    }

    fn rank_state(&self) -> &RankState {
        &self.rank_state
    }

    async fn acquire(&self, exclusive: bool) -> Result<Held> {
        self.enter(exclusive).await
    }

    async fn release(&self, held: Held) -> Result<()> {
        self.leave(held).await
    }
}
