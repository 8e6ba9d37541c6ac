//! Where a queue's words stand in its extent, and the queue as any rank sees it.
//!
//! ```text
//! | config, tags, stop | stage, started, scheduled, claim | TCQ tail | MRQ tail, seen | MRQ head | MRQ | claims | TOQ | TCQ |
//! ```
//! Each of the first five has a cache line. Whoever advances a queue mostly goes on to execute its commands, so that what it needs for both comes with
//! one line; an owner that waits looks at other lines only. The MRQ has records of 64 bytes and a word
//! for each in `claims`; TOQ and TCQ have slots of 32 bytes, and only session queues have them: commands of the others never
//! leave their poster.
//!
//! What is read here was written by others: it is copied once and checked, and every index is taken modulo its ring.

mod finding;
mod slots;

use super::{
    claim,
    geometry::{Geometry, Stop},
    mrq,
};
use crate::control_queue::stadd;
use crate::shm::{layout, mapping::Mapping, word::Word};
use core::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed},
};
use rdma_fabric::{
    Rank, RegionKey,
    control_queue::{QueueError, QueueId, QueueMode},
};

pub(super) use finding::directory_at;
pub(super) use slots::Entry;

/// Words of a cache line.
const LINE: usize = layout::CACHE_LINE / 8;
/// [`Geometry::to_bits`].
pub(super) const CONFIG: usize = 0;
/// The region key of the table of tags.
pub(super) const TAGS: usize = 1;
/// Why the queue has stopped, [`Stop`]; 0 while it has not.
const STOP: usize = 2;
/// Next slot to be executed, and how far its command is: [`claim`].
const STAGE: usize = LINE;
/// Number of entries ever written to the TCQ.
const TCQ_TAIL: usize = 2 * LINE;
/// Slots before this may be executed as far as the poster is concerned.
const STARTED: usize = LINE + 1;
/// Sum of all advances and the initial offset.
pub(super) const SCHEDULED: usize = LINE + 2;
/// Who executes.
const CLAIM: usize = LINE + 3;
const MRQ_TAIL: usize = 3 * LINE;
const MRQ_SEEN: usize = 3 * LINE + 1;
const MRQ_HEAD: usize = 4 * LINE;
/// First record of the MRQ.
pub(super) const MRQ: usize = 5 * LINE;

/// An open queue in its owner's segment.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) id: QueueId,
    pub(super) segment: &'a Mapping,
    pub(super) geometry: Geometry,
    /// Of its words: until it is closed.
    pub(super) key: RegionKey,
    /// As long as the geometry says.
    words: &'a [AtomicU64],
    /// [`TAG_BYTES`] long.
    tags: &'a [AtomicU64],
}

impl<'a> View<'a> {
    #[inline]
    pub(super) fn owner(&self) -> Rank {
        self.id.rank()
    }

    #[inline]
    pub(super) fn is_session(&self) -> bool {
        self.geometry.mode == QueueMode::Session
    }

    pub(super) fn corrupt(&self, what: &'static str) -> QueueError {
        QueueError::Corrupt { queue: self.id, what }
    }

    pub(super) fn word(&self, at: usize) -> &'a AtomicU64 {
        &self.words[at]
    }

    /// The words of place `place` in the table of tags.
    #[inline(always)]
    pub(super) fn tag(&self, place: usize) -> (&'a AtomicU64, &'a AtomicU64) {
        let at = place % stadd::PLACES * 2;
        (&self.tags[at], &self.tags[at + 1])
    }

    /// What decides who executes, and what.
    #[inline]
    pub(super) fn turns(&self) -> claim::Words<'a, AtomicU64> {
        claim::Words {
            claim: &self.words[CLAIM],
            stage: &self.words[STAGE],
            started: &self.words[STARTED],
            scheduled: &self.words[SCHEDULED],
            depth: self.geometry.depth,
        }
    }

    /// A turn will be taken soon: a hint.
    #[inline(always)]
    pub(super) fn expect_turn(&self) {
        Word::expect_store(&self.words[STAGE]);
    }

    #[inline(always)]
    pub(super) fn mrq(&self) -> mrq::Ring<'a, AtomicU64> {
        let (records, claims) =
            self.words[MRQ..self.geometry.toq()].split_at(self.geometry.mrq_depth as usize * mrq::RECORD);
        mrq::Ring {
            tail: &self.words[MRQ_TAIL],
            seen: &self.words[MRQ_SEEN],
            head: &self.words[MRQ_HEAD],
            records: records.as_chunks().0,
            claims,
        }
    }

    /// Why it has stopped.
    #[inline]
    pub(super) fn stopped(&self) -> Option<Stop> {
        // Acquire: pairs with the exchange in `stop`.
        Stop::from_bits(self.words[STOP].load(Acquire))
    }

    /// Whether it has not stopped.
    #[inline(always)]
    pub(super) fn is_going(&self) -> bool {
        // Acquire: as in `stopped`.
        self.words[STOP].load(Acquire) == 0
    }

    /// What it is made of, as its words say: [`Geometry::to_bits`] and the region key of the table of tags.
    #[inline(always)]
    pub(super) fn made_of(&self) -> (u64, u64) {
        (self.words[CONFIG].load(Relaxed), self.words[TAGS].load(Relaxed))
    }

    /// Stop it; the first reason counts. Its owner learns of it when it polls.
    #[cold]
    pub(super) fn stop(&self, why: Stop) {
        let _ = self.words[STOP].compare_exchange(0, why.to_bits(), AcqRel, Relaxed);
        self.segment.ring_for_notice();
    }

    /// The error that a stopped queue reports.
    pub(super) fn stop_error(&self, why: Stop) -> QueueError {
        let queue = self.id;
        match why {
            Stop::CreditOverrun => {
                let turns = self.turns();
                let (read, scheduled) = (turns.read(), turns.scheduled.load(Acquire));
                QueueError::CreditOverrun { queue, read, scheduled, depth: self.geometry.depth }
            }
            Stop::MrqOverflow => QueueError::MrqOverflow { queue, depth: self.geometry.mrq_depth },
            Stop::Corrupt(what) => self.corrupt(what),
            Stop::Closed => QueueError::NotOpen(queue),
        }
    }
}
