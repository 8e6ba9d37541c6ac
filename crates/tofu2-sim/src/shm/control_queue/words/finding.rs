//! How any rank finds an open queue, and its owner its own.

use super::{CONFIG, TAGS, View};
use crate::shm::{
    control_queue::geometry::{Geometry, TAG_BYTES},
    job::Job,
    layout,
    mapping::Mapping,
    regions::{self, Kind, Wrong},
};
use core::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed},
};
use rdma_fabric::{
    RegionKey,
    control_queue::{QueueError, QueueId},
};

/// Where the directory of `id`'s rank says where its words are; `None` for ids that no directory has room for.
pub(in super::super) fn directory_at(id: QueueId) -> Option<usize> {
    let (engine, number, context) = (usize::from(id.engine()), usize::from(id.number()), usize::from(id.context()));
    let fits = engine < layout::QUEUE_ENGINES && number < layout::QUEUE_NUMBERS && context < layout::QUEUE_CONTEXTS;
    let index = (engine * layout::QUEUE_NUMBERS + number) * layout::QUEUE_CONTEXTS + context;
    fits.then_some(layout::QUEUES + index * 8)
}

impl<'a> View<'a> {
    /// The queue that is open as `id`.
    ///
    /// # Errors
    /// [`QueueError::NotOpen`], [`QueueError::PeerLost`], [`QueueError::Corrupt`].
    #[inline]
    pub(in super::super) fn find(job: &'a Job, id: QueueId) -> Result<Self, QueueError> {
        let not_open = QueueError::NotOpen(id);
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

    /// The words that are registered under `key`, which `what` says.
    #[inline]
    fn extent(
        segment: &'a Mapping,
        id: QueueId,
        key: RegionKey,
        what: &'static str,
    ) -> Result<&'a [AtomicU64], QueueError> {
        let corrupt = QueueError::Corrupt { queue: id, what };
        match regions::copy(segment, key) {
            Ok((offset, len, Kind::Queue)) => segment.queue_words(offset, len).ok_or(corrupt),
            // It is being closed.
            Err(Wrong::Stale) => Err(QueueError::NotOpen(id)),
            _ => Err(corrupt),
        }
    }

    /// An own queue, which needs no checks: `words`, registered under `key`, and `tags` are offsets of extents that the
    /// caller has taken for it.
    #[inline(always)]
    pub(in super::super) fn own(
        segment: &'a Mapping,
        id: QueueId,
        geometry: Geometry,
        (key, words): (RegionKey, usize),
        tags: usize,
    ) -> Option<Self> {
        let (words, tags) = (segment.queue_words(words, geometry.bytes())?, segment.queue_words(tags, TAG_BYTES)?);
        Some(View { id, segment, geometry, key, words, tags })
    }

    /// Whether it was not closed since it was found.
    #[inline]
    pub(in super::super) fn is_open(&self) -> bool {
        regions::is_current(self.segment, self.key)
    }
}
