//! Cached routes of a queue's commands: the target's queue and registration as found earlier, kept
//! by the executing rank.
//!
//! Finding them takes a walk through the directory, the region table, the queue's words and its
//! table of tags. A route keeps the values read on the way. Before each use, it compares them with
//! the current state: whether the rank is lost, the directory's entry, the generations of both
//! extents, the queue's geometry and tags, whether it has stopped, the tag and its key. The
//! [`Piece`] checks the region's own generation at every access. So every change that the walk
//! would notice (a queue that was closed or reopened, a tag released or reused, a deregistered
//! region, a lost rank) is noticed here too. In that case the walk is taken, and returns the error.
//!
//! Offsets are kept, not addresses: they are checked against the mapping whenever they are used.

use super::{
    config::{Geometry, TAG_BYTES},
    tags::{FoundTag, find},
    view::{View, directory_at},
};
use crate::{
    job::Job,
    memory::{
        Kept, Mapping, Piece, layout,
        regions::{self, RegionKind},
    },
};
use core::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed},
};
use rdma_fabric::{
    RegionKey,
    control_queue::{QueueId, Stadd},
};
use std::sync::Arc;

/// A registration on a queue of any rank, as it was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    to: QueueId,
    /// The offset of the directory's entry.
    directory_at: usize,
    /// The extent of the queue's words, from the directory.
    words_key: RegionKey,
    /// The extent of the table of tags, from the queue's words.
    tags_key: RegionKey,
    geometry: Geometry,
    /// [`Geometry::to_bits`].
    config: u64,
    words: usize,
    tags: usize,
    found: FoundTag,
}

/// The words that show whether a route is still the current one, and those of the target's queue.
#[derive(Debug)]
pub(crate) struct KeptRoute {
    lost: Kept<AtomicU64>,
    directory: Kept<AtomicU64>,
    words: Kept<[AtomicU64]>,
    tag: KeptTag,
    segment: Arc<Mapping>,
}

/// The two words at a place of a table of tags.
pub(crate) type KeptTag = Kept<[AtomicU64; 2]>;

/// Keeps the words of a registration in the table of tags at `tags` of a segment's heap.
pub(crate) fn keep_tag(segment: &Arc<Mapping>, tags: usize, found: &FoundTag) -> Option<KeptTag> {
    segment.keep(|segment| segment.queue_words(tags, TAG_BYTES)?.as_chunks().0.get(found.place()))
}

impl KeptRoute {
    /// Returns the target's queue as it was found, without its table of tags.
    #[inline(always)]
    pub(crate) fn queue(&self, route: &Route) -> View<'_> {
        View::without_tags(&self.segment, route.to, route.geometry, (route.words_key, &self.words))
    }

    /// Returns the target's queue, without its table of tags, if it is open and has not stopped, its rank
    /// is not lost and the registration is in place.
    ///
    /// A queue leaves the directory before its words and its tags are freed, and both stay the same
    /// until then; so the directory alone shows what [`Route::queue`] compares one by one.
    #[inline(always)]
    pub(crate) fn current(&self, route: &Route) -> Option<View<'_>> {
        // Acquire: pairs with the release in `publish`.
        let directory = self.directory.load(Acquire);
        if self.lost.load(Relaxed) != 0 || directory != route.words_key.to_bits() {
            return None;
        }
        let queue = self.queue(route);
        let [word, key] = &*self.tag;
        (queue.is_going() && route.found.is_in((word, key))).then_some(queue)
    }
}

/// At most `N` remembered routes.
#[derive(Debug)]
pub(crate) struct Routes<const N: usize> {
    places: [Option<Route>; N],
    /// Registrations on the queues whose commands are executed.
    own: [Option<(QueueId, FoundTag)>; N],
}

impl<const N: usize> Default for Routes<N> {
    fn default() -> Self {
        Routes { places: [None; N], own: [None; N] }
    }
}

impl<const N: usize> Routes<N> {
    /// Returns the place in the table for `at` on `queue`.
    #[inline(always)]
    fn place(queue: QueueId, at: Stadd) -> usize {
        // Queue IDs and tags are small consecutive numbers: Fibonacci hashing spreads them.
        let mixed =
            (queue.to_bits() << (u64::BITS - QueueId::BITS) ^ u64::from(at.tag())).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as usize % N
    }

    /// Returns the `len` bytes at `at` on `to` if peers may write them, and the queue if it has not
    /// stopped. `None` if this does not hold or is not known; the general path gives the reason.
    #[inline(always)]
    pub(crate) fn follow<'a>(
        &mut self,
        job: &'a Job,
        to: QueueId,
        at: Stadd,
        len: usize,
    ) -> Option<(View<'a>, Piece<&'a Mapping>)> {
        let known = self.known(job, to, at, len);
        if known.is_none() {
            // For the next use. The new route is not used immediately: returning it would force
            // both results through memory.
            renew(&mut self.places[Self::place(to, at)], job, to, at);
        }
        known
    }

    /// Returns the queue and the `len` bytes at `at` on it, if the route is remembered and nothing
    /// has changed.
    #[inline(always)]
    pub(crate) fn known<'a>(
        &self,
        job: &'a Job,
        to: QueueId,
        at: Stadd,
        len: usize,
    ) -> Option<(View<'a>, Piece<&'a Mapping>)> {
        let route = self.places[Self::place(to, at)].as_ref().filter(|route| route.to == to)?;
        let queue = route.queue(job)?;
        let piece = route.found.piece(&queue, at, len, true)?;
        Some((queue, piece))
    }

    /// Returns the `len` bytes at `from` on `queue`, as a source for the queue's own commands, if
    /// their registration is remembered and nothing has changed.
    #[inline(always)]
    pub(crate) fn own_bytes<'a>(&mut self, queue: &View<'a>, from: Stadd, len: usize) -> Option<Piece<&'a Mapping>> {
        let place = &mut self.own[Self::place(queue.id, from)];
        if let Some((of, found)) = place
            && *of == queue.id
            && let Some(piece) = found.piece(queue, from, len, false)
        {
            return piece.admits(len).then_some(piece);
        }
        // For the next use.
        renew_own(place, queue, from);
        None
    }
}

/// Walks to the registration and remembers the route.
#[cold]
#[inline(never)]
fn renew(place: &mut Option<Route>, job: &Job, to: QueueId, at: Stadd) {
    *place = Route::find(job, to, at);
}

/// Finds a registration on the rank's own queue and remembers it.
#[cold]
#[inline(never)]
fn renew_own(place: &mut Option<(QueueId, FoundTag)>, queue: &View<'_>, from: Stadd) {
    *place = find(queue, from).ok().map(|found| (queue.id, found));
}

impl Route {
    pub(crate) fn find(job: &Job, to: QueueId, at: Stadd) -> Option<Self> {
        let queue = View::find(job, to).ok()?;
        let directory_at = directory_at(to)?;
        let words_key = RegionKey::from_bits(queue.segment.word(directory_at).load(Acquire));
        let (config, tags_key) = queue.made_of();
        let tags_key = RegionKey::from_bits(tags_key);
        let extent = |key, bytes| match regions::copy(queue.segment, key) {
            Ok((offset, len, RegionKind::Queue)) if len == bytes => Some(offset),
            _ => None,
        };
        let (words, tags) = (extent(words_key, queue.geometry.bytes())?, extent(tags_key, TAG_BYTES)?);
        let found = find(&queue, at).ok()?;
        let route =
            Route { to, directory_at, words_key, tags_key, geometry: queue.geometry, config, words, tags, found };
        // Checked as a whole, since it was read piece by piece.
        route.queue(job).is_some().then_some(route)
    }

    /// Returns the target's queue.
    pub(crate) fn target(&self) -> QueueId {
        self.to
    }

    /// Returns whether the target's queue is in checking mode.
    #[inline(always)]
    pub(crate) fn is_checked(&self) -> bool {
        self.geometry.checked
    }

    /// Returns the registration.
    pub(crate) fn found(&self) -> &FoundTag {
        &self.found
    }

    /// Returns the key of the queue's words.
    pub(crate) fn words_key(&self) -> RegionKey {
        self.words_key
    }

    /// Keeps the words of the target's rank, queue and registration, in its segment.
    pub(crate) fn keep(&self, segment: &Arc<Mapping>) -> Option<KeptRoute> {
        let tag = keep_tag(segment, self.tags, &self.found)?;
        Some(KeptRoute {
            lost: segment.keep(|segment| Some(segment.word(layout::LOST)))?,
            directory: segment.keep(|segment| Some(segment.word(self.directory_at)))?,
            words: segment.keep(|segment| segment.queue_words(self.words, self.geometry.bytes()))?,
            tag,
            segment: segment.clone(),
        })
    }

    /// Returns the queue, if it is as it was found and has not stopped.
    #[inline(always)]
    fn queue<'a>(&self, job: &'a Job) -> Option<View<'a>> {
        let segment: &'a Mapping = job.segment(self.to.rank()).ok()?;
        let lost = segment.word(layout::LOST).load(Relaxed);
        // Acquire: pairs with the release in `publish`.
        let directory = segment.word(self.directory_at).load(Acquire);
        if lost != 0
            || directory != self.words_key.to_bits()
            || !regions::is_current(segment, self.words_key)
            || !regions::is_current(segment, self.tags_key)
        {
            return None;
        }
        let queue = View::own(segment, self.to, self.geometry, (self.words_key, self.words), self.tags)?;
        let as_found = queue.made_of() == (self.config, self.tags_key.to_bits());
        (as_found && queue.is_going()).then_some(queue)
    }
}
