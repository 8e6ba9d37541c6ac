//! DecLock's queue-notify lock, CQL (Zhang, Cheng, Chen, Wei and Chen: DecLock: A Case of Decoupled
//! Locking for Disaggregated Memory, arXiv 2505.17641, 2025).
//!
//! # The published protocol
//! At the home are a header of one word (head of the queue, participants, writers among them) and a
//! ring of entries, a participant's at its position modulo the ring's length.
//! * *To acquire*: one fetch-add counts a participant, and tells its position. It is inside if it is
//!   the only one, or if it reads and there is no writer. Otherwise it puts its entry into the ring
//!   and waits for a message.
//! * *To release*: one fetch-add takes the head off, and in the same batch the ring is read. A
//!   writer then tells the next writer, or all readers up to the next writer, at once and without
//!   the home. A reader tells the writer that is next, if it is the last of its group.
//! * An entry carries its position's turn of the ring, so that a reader of the ring sees whether it
//!   has been written yet; it reads again if not.
//!
//! Header, order of the queue, batch and messages are from the paper and its artifact
//! (`github.com/dracit7/declock`, read for facts).
//!
//! # What differs here
//! * *No level of nodes.* The paper's lock has a lock inside each node in front of this one, by which
//!   a node's clients pass it on among themselves up to a bound set by timestamps; so this is what
//!   the artifact calls CQL without cohorts. All clients meet in one queue.
//! * *The ring has an entry for each rank* (rounded up to a power of two), so that it never
//!   overflows and is never reset. The artifact's has 512 entries without cohorts, 32 with, all of
//!   which it reads at each release. Here a release reads in its batch the 32 entries after its own
//!   position (fewer at the ring's end), and more of them only when it needs more.
//! * *Who is last of a group of readers.* Readers that are let in at once write no entry, so a reader
//!   that leaves may find nothing at the next position, where a reader is inside or a writer's entry
//!   on its way. The artifact then counts writers in the whole ring until it has found as many as
//!   the header says. Here a writer that finds no other one in the queue says so in its entry
//!   (*alone*), and the search ends at that entry. A reader whose own position is still to be taken
//!   off need not look at all.
//! * *Entries of 8 bytes*, with the whole position, instead of 4 with a version of 15 to 19 bits. In
//!   jobs of 524,288 ranks and more the header leaves 24 bits for the head: 16 turns of the ring.
//!   An entry that is 15 turns old could then be taken for a later one. (The published version
//!   field has the same limit.)
//! * *Messages are puts* of one word into the receiver's memory, where it waits. The artifact sends
//!   them over reliable connections.
//! * *Left out*: resets (overflow, crashes) and their bit in the header, timestamps.
//!
//! # Operations
//! Free: an atomic to acquire; an atomic and a get, at the same time, to release. In a queue: one
//! put of the entry more at the home, and one put to each that is let in.
//!
//! # Why it is right
//! *Order.* Positions are given out by one word; whoever leaves takes off the first, so that a group
//! of readers is over when as many have left as it had, whichever they are. A reader is inside at
//! once only if nobody in the queue writes, and then all before it read. A writer that leaves is the
//! first, and lets in the group that follows: those that came before its fetch-add. Readers that
//! come after it while no writer waits are inside by themselves.
//! *Who tells the next writer.* Of a group of readers up to position `b`, the one whose fetch-add
//! finds the head at `b`, and no other. It must know whether `b + 1` writes. If the writer before
//! that one was still in the queue when it came, all between them found a writer, wrote entries, and
//! that writer saw them before it let anybody of the group in: the entry is there. Otherwise it was
//! alone, says so, and all after it write entries. So either the entry is found, or an entry that
//! says *alone* farther on, which shows that a reader is at `b + 1`, or both are still on their way.
//! An entry one turn later shows that somebody took `b + 1` off, which only readers do unbidden.
//! *Entries are written again* only by those that wait a turn later, and a waiting rank's put has
//! arrived before anybody could let it in: somebody has read it.

mod acquire;
mod layout;
mod release;

use super::lock::{PeerLock, Protocol, Seat};
use layout::Layout;
use rdma_fabric::{LocalWord, RemoteWord};
use rma_lock::{Fairness, LockError, Result};

/// DecLock's queue-notify lock.
pub type DecLock = PeerLock<Dec>;

/// Where a waiting rank is told that it is inside.
const GRANT: u64 = 0;

/// A rank's side of a [`DecLock`].
#[derive(Debug)]
pub struct Dec {
    seat: Seat,
    layout: Layout,
    header: RemoteWord<u64>,
    grant: LocalWord<u64>,
}

/// What a holder of a [`DecLock`] remembers.
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

    fn new(seat: Seat) -> Result<Self> {
        let ranks = seat.fabric.ranks() as u32;
        if ranks > layout::RANKS {
            return Err(LockError::TooManyRanks { ranks, most: layout::RANKS });
        }
        Ok(Dec { layout: Layout::of(ranks), header: seat.at_home(0)?, grant: seat.own(GRANT)?, seat })
    }

    fn seat(&self) -> &Seat {
        &self.seat
    }

    async fn acquire(&self, exclusive: bool) -> Result<Held> {
        self.enter(exclusive).await
    }

    async fn release(&self, held: Held) -> Result<()> {
        self.leave(held).await
    }
}
