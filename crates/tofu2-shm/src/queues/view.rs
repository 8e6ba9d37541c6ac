//! Layout of a queue's words in its extent, and the queue as any rank sees it.
//!
//! ```text
//! | config, tags, stop | stage, started, scheduled, claim | TCQ tail | MRQ tail, seen | MRQ head | MRQ | claims | TOQ | TCQ |
//! ```
//! Each of the first five parts has its own cache line. A CPU that advances a queue needs the words
//! of its commands' progress too, to decide whether to execute them, so both are on one line. The
//! MRQ has records of 64 bytes and a word for each in `claims`. TOQ and TCQ have slots of 32 bytes,
//! and only session queues have them: commands of other queues never leave their poster.
//!
//! Other ranks write the words read here: each is copied once and checked, and every index is taken
//! modulo its ring.

mod slots;

use super::{
    claim,
    config::{Geometry, Stop, TAG_BYTES},
    mrq,
};
use crate::{
    job::Job,
    memory::{
        Mapping, layout,
        regions::{self, EntryError, RegionKind},
        word::Word,
    },
    queues::format::{ring, stadd},
};
use core::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed},
};
use rdma_fabric::{
    Rank, RegionKey,
    control_queue::{QueueError, QueueId, QueueMode},
};

pub(crate) use slots::TcqEntry;

/// Words of a cache line.
const LINE: usize = layout::CACHE_LINE / 8;
/// The geometry, as [`Geometry::to_bits`] packs it.
pub(crate) const CONFIG: usize = 0;
/// The region key of the table of tags.
pub(crate) const TAGS: usize = 1;
/// Why the queue has stopped ([`Stop`]), or 0 while it has not.
const STOP: usize = 2;
/// The next slot to be executed and the phase of its command ([`claim`]).
const STAGE: usize = LINE;
/// Position before which the poster lets slots be executed.
const STARTED: usize = LINE + 1;
/// Sum of all advances and the initial offset.
pub(crate) const SCHEDULED: usize = LINE + 2;
/// The rank that executes.
const CLAIM: usize = LINE + 3;
/// Number of entries ever written to the TCQ.
const TCQ_TAIL: usize = 2 * LINE;
const MRQ_TAIL: usize = 3 * LINE;
const MRQ_SEEN: usize = 3 * LINE + 1;
const MRQ_HEAD: usize = 4 * LINE;
/// First record of the MRQ.
pub(crate) const MRQ: usize = 5 * LINE;

/// An open queue in its owner's segment.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) id: QueueId,
    pub(crate) segment: &'a Mapping,
    pub(crate) geometry: Geometry,
    /// The key of the queue's words, until it is closed.
    pub(crate) key: RegionKey,
    /// As many words as the geometry specifies.
    words: &'a [AtomicU64],
    /// [`TAG_BYTES`] long.
    tags: &'a [AtomicU64],
}

impl<'a> View<'a> {
    #[inline]
    pub(crate) fn owner(&self) -> Rank {
        self.id.rank()
    }

    #[inline]
    pub(crate) fn is_session(&self) -> bool {
        self.geometry.mode == QueueMode::Session
    }

    pub(crate) fn corrupt(&self, what: &'static str) -> QueueError {
        QueueError::Corrupt { queue: self.id, what }
    }

    pub(crate) fn word(&self, at: usize) -> &'a AtomicU64 {
        &self.words[at]
    }

    /// Returns the two words at `place` in the table of tags.
    #[inline(always)]
    pub(crate) fn tag(&self, place: usize) -> (&'a AtomicU64, &'a AtomicU64) {
        let at = place % stadd::PLACES * 2;
        (&self.tags[at], &self.tags[at + 1])
    }

    /// Returns the words that determine the executing rank and the commands to execute.
    #[inline]
    pub(crate) fn turns(&self) -> claim::ClaimWords<'a, AtomicU64> {
        claim::ClaimWords {
            claim: &self.words[CLAIM],
            stage: &self.words[STAGE],
            started: &self.words[STARTED],
            scheduled: &self.words[SCHEDULED],
            depth: self.geometry.depth,
        }
    }

    /// Hints that a turn will be taken soon.
    #[inline(always)]
    pub(crate) fn expect_turn(&self) {
        Word::expect_store(&self.words[STAGE]);
    }

    #[inline(always)]
    pub(crate) fn mrq(&self) -> mrq::Mrq<'a, AtomicU64> {
        let (records, claims) =
            self.words[MRQ..self.geometry.toq()].split_at(self.geometry.mrq_depth as usize * mrq::RECORD);
        mrq::Mrq {
            tail: &self.words[MRQ_TAIL],
            seen: &self.words[MRQ_SEEN],
            head: &self.words[MRQ_HEAD],
            records: records.as_chunks().0,
            claims,
        }
    }

    /// Returns why the queue has stopped, if it has.
    #[inline]
    pub(crate) fn stopped(&self) -> Option<Stop> {
        // Acquire: pairs with the exchange in `stop`.
        Stop::from_bits(self.words[STOP].load(Acquire))
    }

    /// Returns whether the queue has not stopped.
    #[inline(always)]
    pub(crate) fn is_going(&self) -> bool {
        // Acquire: as in `stopped`.
        self.words[STOP].load(Acquire) == 0
    }

    /// Returns whether the queue's rank is lost.
    #[inline(always)]
    pub(crate) fn is_lost(&self) -> bool {
        self.segment.word(layout::LOST).load(Relaxed) != 0
    }

    /// Returns the queue's configuration as stored in its words: [`Geometry::to_bits`] and the
    /// region key of the table of tags.
    #[inline(always)]
    pub(crate) fn made_of(&self) -> (u64, u64) {
        (self.words[CONFIG].load(Relaxed), self.words[TAGS].load(Relaxed))
    }

    /// Stops the queue; the first reason is kept. Its owner is notified on the next poll.
    #[cold]
    pub(crate) fn stop(&self, why: Stop) {
        let _ = self.words[STOP].compare_exchange(0, why.to_bits(), AcqRel, Relaxed);
        self.segment.ring_for_notice();
    }

    /// Stops the queue, which was advanced to `scheduled`, if its credit has passed its ring. Returns
    /// whether it did.
    #[cold]
    #[inline(never)]
    pub(crate) fn stops_by_overrun(&self, scheduled: u64) -> bool {
        // The read pointer is read after the advance, so that the value is never too old.
        let is_overrun = ring::is_overrun(self.begun(), scheduled, self.geometry.depth);
        if is_overrun {
            self.stop(Stop::CreditOverrun);
        }
        is_overrun
    }

    /// Returns the error that a stopped queue reports.
    pub(crate) fn stop_error(&self, why: Stop) -> QueueError {
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

// ----- finding an open queue, as any rank or its owner -----

/// Returns the offset of `id`'s entry in the directory of its rank; `None` for ids that exceed the
/// directory.
pub(crate) fn directory_at(id: QueueId) -> Option<usize> {
    let (engine, number, context) = (usize::from(id.engine()), usize::from(id.number()), usize::from(id.context()));
    let fits = engine < layout::QUEUE_ENGINES && number < layout::QUEUE_NUMBERS && context < layout::QUEUE_CONTEXTS;
    let index = (engine * layout::QUEUE_NUMBERS + number) * layout::QUEUE_CONTEXTS + context;
    fits.then_some(layout::QUEUES + index * 8)
}

impl<'a> View<'a> {
    /// Returns the queue that is open as `id`, on this node.
    ///
    /// # Errors
    /// [`QueueError::NotOpen`], [`QueueError::PeerLost`], [`QueueError::Corrupt`].
    #[inline]
    pub(crate) fn find(job: &'a Job, id: QueueId) -> Result<Self, QueueError> {
        let not_open = QueueError::NotOpen(id);
        if job.is_remote(id.rank()) {
            return Err(not_open);
        }
        let segment = job.segment(id.rank()).map_err(|_| not_open)?;
        if job.is_lost(id.rank()) {
            return Err(QueueError::PeerLost(id));
        }
        let at = directory_at(id).ok_or(not_open)?;
        // Acquire: pairs with the release in `publish`.
        match segment.word(at).load(Acquire) {
            0 => Err(not_open),
            bits => Self::at(segment, id, RegionKey::from_bits(bits)),
        }
    }

    #[inline]
    fn at(segment: &'a Mapping, id: QueueId, key: RegionKey) -> Result<Self, QueueError> {
        let words = Self::extent(segment, id, key, "the directory of queues")?;
        let corrupt = |what| QueueError::Corrupt { queue: id, what };
        let word = |at: usize| words.get(at).map(|word| word.load(Relaxed)).ok_or(corrupt("its words"));
        let geometry = Geometry::from_bits(word(CONFIG)?).ok_or(corrupt("its words"))?;
        let tags = Self::extent(segment, id, RegionKey::from_bits(word(TAGS)?), "its words")?;
        if words.len() * 8 != geometry.bytes() || tags.len() * 8 != TAG_BYTES {
            return Err(corrupt("its words"));
        }
        Ok(View { id, segment, geometry, key, words, tags })
    }

    /// Returns the words registered under `key`; `what` describes where the key was read.
    #[inline]
    fn extent(
        segment: &'a Mapping,
        id: QueueId,
        key: RegionKey,
        what: &'static str,
    ) -> Result<&'a [AtomicU64], QueueError> {
        let corrupt = QueueError::Corrupt { queue: id, what };
        match regions::copy(segment, key) {
            Ok((offset, len, RegionKind::Queue)) => segment.queue_words(offset, len).ok_or(corrupt),
            // The queue is being closed.
            Err(EntryError::Stale) => Err(QueueError::NotOpen(id)),
            _ => Err(corrupt),
        }
    }

    /// Returns one of the rank's own queues, which needs no checks: `words`, registered under
    /// `key`, and `tags` are offsets of extents that the caller has allocated for it.
    #[inline(always)]
    pub(crate) fn own(
        segment: &'a Mapping,
        id: QueueId,
        geometry: Geometry,
        (key, words): (RegionKey, usize),
        tags: usize,
    ) -> Option<Self> {
        let (words, tags) = (segment.queue_words(words, geometry.bytes())?, segment.queue_words(tags, TAG_BYTES)?);
        Some(View { id, segment, geometry, key, words, tags })
    }

    /// Returns a queue whose words have been found before, for uses that need no tags.
    #[inline(always)]
    pub(crate) fn without_tags(
        segment: &'a Mapping,
        id: QueueId,
        geometry: Geometry,
        (key, words): (RegionKey, &'a [AtomicU64]),
    ) -> Self {
        View { id, segment, geometry, key, words, tags: &[] }
    }

    /// Returns the offset of the table of tags in the segment's heap, as its words say.
    pub(crate) fn tags_at(&self) -> Option<usize> {
        match regions::copy(self.segment, RegionKey::from_bits(self.words[TAGS].load(Relaxed))) {
            Ok((offset, TAG_BYTES, RegionKind::Queue)) => Some(offset),
            _ => None,
        }
    }

    /// Returns whether the queue has not been closed since it was found.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        regions::is_current(self.segment, self.key)
    }
}
