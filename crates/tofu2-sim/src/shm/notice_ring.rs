//! Notices of a rank: a [`ring`] in its segment.

use super::{
    layout,
    mapping::Mapping,
    ring::{self, Claim, Damaged, Ring},
};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use rdma_fabric::{FabricError, Notice, Rank, RegionKey};

impl Ring for Mapping {
    type Word = AtomicU64;
    /// The notice's data, region and end.
    type Entry = [u64; 3];

    #[inline(always)]
    fn depth(&self) -> u64 {
        layout::RING_CAPACITY as u64
    }
    #[inline(always)]
    fn head(&self) -> &AtomicU64 {
        self.word(layout::RING_HEAD)
    }
    #[inline(always)]
    fn tail(&self) -> &AtomicU64 {
        self.word(layout::RING_TAIL)
    }
    #[inline(always)]
    fn seen(&self) -> &AtomicU64 {
        self.word(layout::RING_SEEN)
    }
    #[inline]
    fn name(&self, index: usize) -> &AtomicU64 {
        self.word(layout::RING_CLAIMS + index * 8)
    }
    #[inline(always)]
    fn state(&self, index: usize) -> &AtomicU64 {
        &slot(self, index)[0]
    }
    #[inline(always)]
    fn fill(&self, index: usize, entry: [u64; 3]) {
        let [_, payload @ ..] = slot(self, index);
        for (word, value) in payload.iter().zip(entry) {
            word.store(value, Relaxed);
        }
    }
    #[inline(always)]
    fn copy(&self, index: usize) -> [u64; 3] {
        let [_, payload @ ..] = slot(self, index);
        payload.each_ref().map(|word| word.load(Relaxed))
    }
    #[inline(always)]
    fn expect(&self, index: usize) {
        self.expect_store(layout::RING + index * layout::RING_SLOT);
    }
}

#[inline(always)]
fn slot(segment: &Mapping, index: usize) -> &[AtomicU64; 4] {
    segment.words(layout::RING + index * layout::RING_SLOT)
}

impl Damaged {
    /// Of the notices of `rank`.
    pub(super) fn error(self, rank: Rank) -> FabricError {
        FabricError::Corrupt { rank, what: &"the notice ring" }
    }
}

/// [`ring::publish`].
#[inline(always)]
pub(super) fn publish<R: Ring<Entry = [u64; 3]>>(segment: &R, claim: Claim, data: u64, region: RegionKey, end: u64) {
    ring::publish(segment, claim, [data, region.to_bits(), end]);
}

#[inline(always)]
fn notice((from, [data, region, end]): (u32, [u64; 3])) -> Notice {
    Notice { from: Rank::new(from), data, region: RegionKey::from_bits(region), end }
}

/// [`ring::take`].
#[inline(always)]
pub(super) fn take(segment: &Mapping, ranks: usize) -> Option<Notice> {
    ring::take(segment, ranks as u64).map(notice)
}

/// [`ring::consume`], for the segment's rank `me`.
///
/// # Errors
/// [`FabricError::Corrupt`] if the ring is damaged.
#[inline(never)]
pub(super) fn consume(
    segment: &Mapping,
    me: Rank,
    ranks: usize,
    anybody_ended: impl Fn() -> bool,
    has_ended: impl Fn(Rank) -> bool,
) -> Result<Option<Notice>, FabricError> {
    match ring::consume(segment, ranks as u64, anybody_ended, |rank| has_ended(Rank::new(rank))) {
        Ok(taken) => Ok(taken.map(notice)),
        Err(damaged) => Err(damaged.error(me)),
    }
}
