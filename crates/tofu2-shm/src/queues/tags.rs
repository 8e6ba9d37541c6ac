//! Tables of steering tags: the registration under each tag, the bytes that an address denotes, and
//! the registration of memory.
//!
//! An entry of the table is two words: the tag with its permissions, or 0, and the key of the
//! region. The owner writes them. Other ranks copy them, check that the tag has not changed in the
//! meantime, and then resolve the key like any other, so a deregistered region is recognized by its
//! generation.

use super::{own::NamedTag, queue::Queue, tags, view::View};
use crate::{
    memory::{
        Mapping, Piece,
        inside::{self, RegionId},
        regions::{self, EntryError, RegionKind},
        registration::Registration,
    },
    queues::format::stadd,
};
use core::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};
use rdma_fabric::{
    FabricError, Region, RegionKey, Result,
    control_queue::{QueueError, Stadd},
};
use std::sync::Arc;

const LIVE: u64 = 1;
const READ_ONLY: u64 = 2;
/// The position of the tag's number in its word.
const TAG: u32 = 8;

/// The registration that a tag identifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tagged {
    pub(crate) key: RegionKey,
    pub(crate) read_only: bool,
}

/// Returns the registration under the tag of `at` on `queue`.
#[inline(always)]
pub(crate) fn look_up(queue: &View<'_>, at: Stadd) -> Result<Tagged, QueueError> {
    let none = QueueError::NoSuchTag { queue: queue.id, stadd: at };
    let (tag, key) = queue.tag(stadd::place(at.tag()).ok_or(none)?);
    // Acquire: pairs with the release in `write`.
    let now = tag.load(Acquire);
    if now & !READ_ONLY != u64::from(at.tag()) << TAG | LIVE {
        return Err(none);
    }
    let key = RegionKey::from_bits(key.load(Relaxed));
    // Acquire: pairs with the fence in `write`.
    fence(Acquire);
    // One registration may have replaced another between the two reads.
    if tag.load(Relaxed) & !READ_ONLY != now & !READ_ONLY {
        return Err(none);
    }
    Ok(Tagged { key, read_only: now & READ_ONLY != 0 })
}

/// Returns the `len` bytes at `at` on `queue`, and their region. They must be aligned to `width`
/// and, if `writes`, writable for peers.
///
/// # Errors
/// [`QueueError::NoSuchTag`], [`QueueError::Stale`], [`QueueError::OutOfBounds`],
/// [`QueueError::Misaligned`], [`QueueError::ReadOnly`], [`QueueError::Corrupt`].
#[inline(always)]
pub(crate) fn resolve<'a>(
    queue: &View<'a>,
    at: Stadd,
    len: u64,
    width: u8,
    writes: bool,
) -> Result<(Piece<&'a Mapping>, RegionKey), QueueError> {
    let (id, segment): (_, &'a Mapping) = (queue.id, queue.segment);
    let Tagged { key, read_only } = look_up(queue, at)?;
    let (offset, registered) = match regions::copy(segment, key) {
        Ok((offset, len, RegionKind::Heap | RegionKind::Program)) => (offset, len),
        Err(EntryError::Stale) => return Err(QueueError::Stale { queue: id, stadd: at }),
        Err(EntryError::Unknown) => return Err(queue.corrupt("the table of tags")),
        _ => return Err(queue.corrupt("the region table")),
    };
    let ahead = stadd::range(id, at, len, registered as u64)?;
    // A region of the program's memory may start at any byte.
    if (offset as u64).wrapping_add(ahead) % u64::from(width.max(1)) != 0 {
        return Err(QueueError::Misaligned { queue: id, stadd: at, width });
    }
    if read_only && writes {
        return Err(QueueError::ReadOnly { queue: id, stadd: at });
    }
    // Both are inside the registered length, which is inside the heap.
    let piece = segment.borrowed_piece(
        offset + ahead as usize,
        len as usize,
        regions::generation_at(key.index as usize),
        key.generation.into(),
    );
    Ok((piece.ok_or(queue.corrupt("the region table"))?, key))
}

/// A registration as it was found on a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundTag {
    tag: u32,
    /// The tag's word in its place.
    word: u64,
    key: RegionKey,
    place: usize,
    /// Offset of the region in the heap.
    offset: usize,
    len: usize,
}

/// Finds the registration under the tag of `at` on `queue`, to be remembered.
///
/// # Errors
/// Those of [`resolve`].
pub(crate) fn find(queue: &View<'_>, at: Stadd) -> Result<FoundTag, QueueError> {
    let none = QueueError::NoSuchTag { queue: queue.id, stadd: at };
    let place = stadd::place(at.tag()).ok_or(none)?;
    let Tagged { key, read_only } = look_up(queue, at)?;
    let Ok((offset, len, RegionKind::Heap | RegionKind::Program)) = regions::copy(queue.segment, key) else {
        return Err(QueueError::Stale { queue: queue.id, stadd: at });
    };
    Ok(FoundTag { tag: at.tag(), word: word_of(at.tag(), read_only), key, place, offset, len })
}

impl FoundTag {
    /// Returns whether the registration is still in place on `queue`, as it was found.
    #[inline(always)]
    fn is_unchanged(&self, queue: &View<'_>) -> bool {
        self.is_in(queue.tag(self.place))
    }

    /// Returns whether the registration is still in place, as it was found, where `word` and `key` are
    /// the words at its place.
    #[inline(always)]
    pub(crate) fn is_in(&self, (word, key): (&AtomicU64, &AtomicU64)) -> bool {
        // Acquire: pairs with the release in `write`.
        let now = word.load(Acquire);
        let key = key.load(Relaxed);
        // Acquire: pairs with the fence in `write`.
        fence(Acquire);
        now == self.word && key == self.key.to_bits() && word.load(Relaxed) == now
    }

    /// Returns the place of the tag in its table.
    pub(crate) fn place(&self) -> usize {
        self.place
    }

    /// Returns the key of the region.
    pub(crate) fn key(&self) -> RegionKey {
        self.key
    }

    /// Returns the `len` bytes at `at` as [`FoundTag::piece`] does, as a piece that owns its mapping.
    pub(crate) fn kept_piece(
        &self,
        (queue, segment): (&View<'_>, &Arc<Mapping>),
        at: Stadd,
        len: usize,
        writes: bool,
    ) -> Option<Piece> {
        self.piece(queue, at, len, writes)?;
        let (offset, generation) = (self.offset + at.offset() as usize, self.key.generation);
        segment.piece(offset, len, regions::generation_at(self.key.index as usize), generation)
    }

    /// Returns the `len` bytes at `at` if `at` belongs to this registration, the registration is
    /// still in place and, if `writes`, peers may write them; otherwise [`resolve`] gives the
    /// reason. The piece itself checks whether the region still exists.
    #[inline(always)]
    pub(crate) fn piece<'a>(
        &self,
        queue: &View<'a>,
        at: Stadd,
        len: usize,
        writes: bool,
    ) -> Option<Piece<&'a Mapping>> {
        if at.tag() != self.tag || !self.is_unchanged(queue) {
            return None;
        }
        let end = at.offset().checked_add(len as u64)?;
        if end > self.len as u64 || (writes && self.word & READ_ONLY != 0) {
            return None;
        }
        // Inside the registered length, which is inside the heap.
        let (offset, generation) = (self.offset + at.offset() as usize, self.key.generation.into());
        queue.segment.borrowed_piece(offset, len, regions::generation_at(self.key.index as usize), generation)
    }
}

fn word_of(tag: u32, read_only: bool) -> u64 {
    u64::from(tag) << TAG | LIVE | if read_only { READ_ONLY } else { 0 }
}

/// Registers `tagged` under `tag`, whose place is free, in the rank's own table.
pub(crate) fn write(queue: &View<'_>, tag: u32, tagged: Tagged) {
    let Some(place) = stadd::place(tag) else { return };
    let (word, key) = queue.tag(place);
    // Release: pairs with the fence in `look_up`. A rank that reads the key below also sees that
    // the last registration ended.
    fence(Release);
    key.store(tagged.key.to_bits(), Relaxed);
    // Release: pairs with the acquire in `look_up`.
    word.store(word_of(tag, tagged.read_only), Release);
}

/// Ends the registration of `tag` in the rank's own table.
pub(crate) fn clear(queue: &View<'_>, tag: u32) {
    if let Some(place) = stadd::place(tag) {
        queue.tag(place).0.store(0, Release);
    }
}

// ----- registering memory on a rank's own queue, and deregistering it -----

impl Queue {
    /// Returns the key of a region that queues can access.
    fn key_of(&self, region: &Region) -> Result<rdma_fabric::RegionKey> {
        let elsewhere = FabricError::Unsupported { feature: &"control queues on memory that was not allocated here" };
        let owner = region.registration::<Registration>().ok_or(elsewhere.clone())?.endpoint();
        if region.existing().is_some() || owner.me() != self.name().rank() {
            return Err(elsewhere);
        }
        let key = region.key();
        if owner.keyring().is_some() {
            return Err(FabricError::Locked { rank: owner.me(), region: key });
        }
        if !regions::is_current(self.endpoint().segment(), key) {
            return Err(FabricError::StaleRegion { rank: self.name().rank(), region: key });
        }
        Ok(key)
    }

    /// Registers a region under an automatic tag.
    pub(crate) fn name_somehow(&self, region: &Region) -> Result<Stadd> {
        let (key, queue) = (self.key_of(region)?, self.view()?);
        let mut known = self.table()?.known();
        if let Some(&at) = known.automatic.get(&key.to_bits()) {
            return Ok(at);
        }
        let places = stadd::FIXED as usize..stadd::PLACES;
        let free = places.into_iter().find(|place| !known.tags.contains_key(place));
        let place = free.ok_or(QueueError::TooManyTags { queue: self.name(), limit: stadd::AUTOMATIC })?;
        let tag = stadd::automatic(place, self.endpoint().own_queues().next_use());
        let at = Stadd::new(tag, 0);
        known.automatic.insert(key.to_bits(), at);
        known.tags.insert(place, NamedTag { tag, key });
        tags::write(&queue, tag, Tagged { key, read_only: false });
        Ok(at)
    }

    /// Registers a region under the fixed tag `tag`.
    pub(crate) fn name_as(&self, region: &Region, tag: u8) -> Result<Stadd> {
        let (key, queue) = (self.key_of(region)?, self.view()?);
        let mut known = self.table()?.known();
        let named = NamedTag { tag: tag.into(), key };
        if known.tags.contains_key(&tag.into()) {
            return Err(QueueError::TagInUse { queue: self.name(), tag }.into());
        }
        known.tags.insert(tag.into(), named);
        tags::write(&queue, tag.into(), Tagged { key, read_only: false });
        Ok(Stadd::fixed(tag))
    }

    /// Sets whether peers may only read the memory of a tag or may also write it.
    pub(crate) fn restrict(&self, at: Stadd, read_only: bool) -> Result<()> {
        let queue = self.view()?;
        let known = self.table()?.known();
        let place = stadd::place(at.tag());
        let named = place.and_then(|place| known.tags.get(&place)).filter(|named| named.tag == at.tag());
        let named = named.ok_or(QueueError::NoSuchTag { queue: self.name(), stadd: at })?;
        tags::write(&queue, named.tag, Tagged { key: named.key, read_only });
        Ok(())
    }

    /// Ends a registration, and waits for long copies.
    pub(crate) fn forget(&self, at: Stadd) -> Result<()> {
        let queue = self.view()?;
        let mut known = self.table()?.known();
        let none = QueueError::NoSuchTag { queue: self.name(), stadd: at };
        let place = stadd::place(at.tag()).ok_or(none)?;
        let named = *known.tags.get(&place).filter(|named| named.tag == at.tag()).ok_or(none)?;
        known.tags.remove(&place);
        if known.automatic.get(&named.key.to_bits()).is_some_and(|at| at.tag() == named.tag) {
            known.automatic.remove(&named.key.to_bits());
        }
        tags::clear(&queue, named.tag);
        drop(known);
        // As when a region is deregistered: D2 and D3.
        inside::barrier();
        let endpoint = self.endpoint();
        let id = RegionId::new(endpoint.me(), named.key);
        while endpoint.job().is_inside(id) || endpoint.own_queues().moving().uses(named.key) {
            endpoint.job().work_between_nodes();
            std::thread::yield_now();
        }
        Ok(())
    }
}
