//! One rank's part of a window, except for its lock: the members' memory, and the words by which
//! they notify each other of their progress.

use super::{
    epochs::{EpochKind, OpenEpochs},
    error::{WindowError, WindowResult},
    fence::MemberBarrier,
    in_flight::InFlightTable,
};
use core::{
    any::Any,
    ops::Range,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};
use rdma_fabric::{
    Fabric, FabricError, GroupMemory, LocalWord, Rank, RegionKey, RemoteAddr, RemoteWord, Result, provider::Boxed,
};
use std::sync::{Arc, Mutex};

pub(super) struct Core {
    pub(super) fabric: Fabric,
    pub(super) memory: WindowMemory,
    pub(super) words: Words,
    pub(super) barrier: MemberBarrier,
    pub(super) in_flight: InFlightTable,
    pub(super) open: OpenEpochs,
    /// Members that were notified of an exposure and have not completed, as far as this rank knows.
    pub(super) exposed: Mutex<Vec<Rank>>,
    /// Whether puts from registered memory may still read it.
    pub(super) reads_registered: AtomicBool,
}

impl Core {
    /// Waits until all operations of this rank at `rank`, or at all ranks if `None`, are visible
    /// there.
    pub(super) async fn flush(&self, rank: Option<Rank>) -> Result<()> {
        let quiesced = self.in_flight.quiesce(&self.fabric, rank).await;
        let flushed = match rank {
            Some(rank) => self.fabric.flush(rank).await,
            None => {
                self.reads_registered.store(false, Relaxed);
                self.fabric.flush_all().await
            }
        };
        quiesced.and(flushed)
    }

    /// Waits until the buffers of this rank's operations at `rank`, or at all ranks if `None`, may
    /// be reused.
    pub(super) async fn flush_local(&self, rank: Option<Rank>) -> Result<()> {
        match self.reads_registered.load(Relaxed) {
            true => self.flush(rank).await,
            false => self.in_flight.quiesce(&self.fabric, rank).await,
        }
    }

    /// Flushes to all ranks, then joins the barrier of the members even if the flush failed,
    /// because they wait for this rank.
    pub(super) fn fence(&self) -> Boxed<'_, WindowResult<()>> {
        Box::pin(async move {
            let flushed = self.flush(None).await;
            self.meet().await?;
            Ok(flushed?)
        })
    }

    /// Waits until every member has arrived.
    ///
    /// # Errors
    /// [`WindowError::EpochOpen`] if another task of this rank is in the barrier: the two tasks
    /// would use the same barrier, while members whose tasks call one after the other wait for two.
    pub(super) async fn meet(&self) -> WindowResult<()> {
        let _met = self.open.begin(EpochKind::Barrier, false)?;
        Ok(self.barrier.meet(&self.fabric, &self.words).await?)
    }

    /// Drives unfinished operations in the background.
    pub(super) fn finish_slow(self: &Arc<Self>) {
        if !self.in_flight.is_idle() {
            let owner = self.clone();
            self.fabric.detach(async move { drop(owner.in_flight.quiesce(&owner.fabric, None).await) });
        }
    }
}

/// A member's part, as other members access it.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemberPart {
    pub(super) key: RegionKey,
    pub(super) elements: u64,
}

/// The elements at each member.
pub(super) struct WindowMemory {
    /// The memory, or another memory of the group; it determines the members' numbers.
    pub(super) members: GroupMemory,
    /// The size of an element in bytes.
    pub(super) element: usize,
    pub(super) parts: Parts,
}

pub(super) enum Parts {
    /// The same number of elements at each member.
    Allocated { elements: usize },
    /// The memory that each member contributed, by the member's number. `mine` owns this rank's
    /// memory: a `Registered` of its elements, or the value that was passed with a key.
    Attached { mine: Box<dyn Any + Send + Sync>, parts: Box<[MemberPart]> },
}

/// Returns the range of `len` elements starting at `at`.
pub(super) fn range(at: usize, len: usize) -> Range<usize> {
    at..at.saturating_add(len)
}

impl WindowMemory {
    /// Returns the address of a member's part, and its number of elements.
    pub(super) fn part(&self, rank: Rank) -> Result<(RemoteAddr, usize)> {
        let members = &self.members;
        // For memory of the whole job, the call of `at` below would accept any rank.
        let number = members.number(rank).ok_or(FabricError::NotInGroup { rank, members: members.members() })?;
        match &self.parts {
            Parts::Allocated { elements } => Ok((members.at(rank, 0)?, *elements)),
            Parts::Attached { parts, .. } => {
                let MemberPart { key, elements } = parts[number];
                Ok((RemoteAddr { rank, region: key, offset: 0 }, elements as usize))
            }
        }
    }

    /// Checks that a member has these elements.
    pub(super) fn check(&self, rank: Rank, elements: &Range<usize>) -> Result<()> {
        let (addr, len) = self.part(rank)?;
        if elements.start <= elements.end && elements.end <= len {
            return Ok(());
        }
        let bytes = |elements: usize| (elements as u64).saturating_mul(self.element as u64);
        let start = RemoteAddr { rank, offset: addr.offset.saturating_add(bytes(elements.start)), ..addr };
        Err(FabricError::out_of_bounds(
            start,
            bytes(elements.end.saturating_sub(elements.start)),
            addr.offset + bytes(len),
        ))
    }
}

/// Windows with more members have no words for post and start, which need two words for each pair.
const MOST_POSTING: usize = 1024;

const WORD: usize = 8;

/// The meaning of a word.
#[derive(Clone, Copy, Debug)]
pub(super) enum Word {
    /// The number of fences that the member 2^k places before the owner has reached.
    Reached(u32),
    /// Whether this member exposes its memory to the owner.
    Posted(usize),
    /// Whether this member has completed its accesses to the owner's memory.
    Completed(usize),
}

/// The words by which members notify each other of their progress, in [`Words::bytes`] at each
/// member. Only one member writes each word, by a put; only the owner reads or clears it.
pub(super) struct Words {
    memory: GroupMemory,
}

/// Returns the number of rounds in which `members` members all reach each other by doubling.
pub(super) fn rounds(members: usize) -> u32 {
    members.next_power_of_two().trailing_zeros()
}

impl Words {
    pub(super) fn bytes(members: usize) -> usize {
        let pairs = if members <= MOST_POSTING { 2 * members } else { 0 };
        (rounds(members) as usize + pairs) * WORD
    }

    pub(super) fn new(memory: GroupMemory) -> Self {
        Words { memory }
    }

    pub(super) fn memory(&self) -> &GroupMemory {
        &self.memory
    }

    fn offset(&self, word: Word) -> u64 {
        let rounds = rounds(self.memory.members()) as usize;
        let number = match word {
            Word::Reached(round) => round as usize,
            Word::Posted(member) => rounds + 2 * member,
            Word::Completed(member) => rounds + 2 * member + 1,
        };
        (number * WORD) as u64
    }

    pub(super) fn own(&self, fabric: &Fabric, word: Word) -> Result<LocalWord<u64>> {
        fabric.local_word(self.memory.at(fabric.rank(), self.offset(word))?)
    }

    pub(super) fn theirs(&self, fabric: &Fabric, rank: Rank, word: Word) -> Result<RemoteWord<u64>> {
        fabric.remote_word(self.memory.at(rank, self.offset(word))?)
    }

    /// Returns a member's number, for the words of post and start.
    pub(super) fn number(&self, rank: Rank) -> WindowResult<usize> {
        let members = self.memory.members();
        if members > MOST_POSTING {
            return Err(WindowError::TooManyMembers { members, limit: MOST_POSTING });
        }
        let outside = FabricError::NotInGroup { rank, members };
        self.memory.number(rank).ok_or_else(|| outside.into())
    }
}
