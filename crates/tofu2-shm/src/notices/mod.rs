//! Notices of a rank: a [`ring`] in its segment (to be read first), and how a rank sends notices
//! with its puts and takes its own.

pub(crate) mod ring;

use super::{
    endpoint::Endpoint,
    job::State,
    memory::{Mapping, layout, place::LocatedPlace, transfers},
};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use rdma_fabric::{
    FabricError, Notice, Rank, RegionKey, RemoteAddr, Result,
    provider::{Place, Posted, Source},
};
use ring::{Claim, DamagedRing, Ring};

impl Ring for Mapping {
    type Word = AtomicU64;
    /// The data, region and end of a notice.
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

impl DamagedRing {
    /// Returns the error of a damaged notice ring of `rank`.
    pub(crate) fn error(self, rank: Rank) -> FabricError {
        FabricError::Corrupt { rank, what: &"the notice ring" }
    }
}

/// Fills in a claimed slot with a notice and hands it over.
#[inline(always)]
pub(crate) fn publish<R: Ring<Entry = [u64; 3]>>(segment: &R, claim: Claim, data: u64, region: RegionKey, end: u64) {
    ring::publish(segment, claim, [data, region.to_bits(), end]);
}

#[inline(always)]
fn notice((from, [data, region, end]): (u32, [u64; 3])) -> Notice {
    Notice { from: Rank::new(from), data, region: RegionKey::from_bits(region), end }
}

/// Takes the oldest notice if it is ready and no other thread takes it first ([`ring::take`]).
#[inline(always)]
pub(crate) fn take(segment: &Mapping, ranks: usize) -> Option<Notice> {
    ring::take(segment, ranks as u64).map(notice)
}

/// Takes the oldest notice if one is ready, for the segment's rank `me` ([`ring::consume`]).
///
/// # Errors
/// [`FabricError::Corrupt`] if the ring is damaged.
#[inline(never)]
pub(crate) fn consume(
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

// ----- notices that a rank sends with its puts, and its own -----

impl Endpoint {
    /// Puts a short source with a notice, if the fast path permits: claims room, copies the bytes,
    /// publishes the notice. Returns whether it did.
    #[inline(always)]
    pub(crate) fn notify_fast(&self, to: &Place, from: &Source<'_>, data: u64) -> bool {
        let Source::Bytes(bytes) = from else { return false };
        // Checked first, so that an impossible operation does not occupy room.
        if !to.admits(bytes.len()) {
            return false;
        }
        let Some(target) = self.job().segment_with(to) else { return false };
        let Some(claim) = ring::claim_next(target, self.me()) else { return false };
        if to.copy_in(bytes).is_none() {
            give_up(target, claim);
            return false;
        }
        let RemoteAddr { region, offset, .. } = to.addr();
        publish(target, claim, data, region, offset + bytes.len() as u64);
        target.ring_with_notice(to.start(), bytes.len());
        true
    }

    /// Performs any put with a notice.
    #[inline(never)]
    pub(crate) fn notify_general(&self, to: &LocatedPlace<'_>, from: &Source<'_>, data: u64) -> Posted {
        // Checked first, so that an impossible operation is not mistaken for one that needs room.
        if let Some(error) = self.objection(to, from) {
            return Posted::failed(error);
        }
        let claim = match ring::claim(to.target, self.me()) {
            Ok(Some(claim)) => claim,
            Ok(None) => return Posted::Full,
            Err(damaged) => return Posted::failed(damaged.error(to.addr.rank)),
        };
        if let Err(error) = transfers::put(self, to, from) {
            give_up(to.target, claim);
            return Posted::failed(error);
        }
        let RemoteAddr { region, offset, .. } = to.addr;
        publish(to.target, claim, data, region, offset + to.len as u64);
        to.ring_with_notice();
        Posted::Complete(0)
    }

    /// Returns why a put from `from` to `to` is impossible, as far as this can be determined in
    /// advance.
    fn objection(&self, to: &LocatedPlace<'_>, from: &Source<'_>) -> Option<FabricError> {
        let len = from.len();
        if to.is_fit()
            && let Source::Place(own) = from
        {
            match LocatedPlace::of(self.job(), own) {
                Ok(own) if own.is_fit() => {}
                Ok(own) => return Some(own.refusal(len, 1)),
                Err(error) => return Some(error),
            }
        }
        (!to.is_fit() || len != to.len).then(|| to.refusal(len, 1))
    }

    /// Queues a notice for this rank in the name of `from`. Returns whether there was room.
    #[cfg(target_os = "linux")]
    pub(crate) fn notify_for(&self, from: Rank, data: u64, region: RegionKey, end: u64) -> Result<bool> {
        let target = self.segment();
        let Some(claim) = ring::claim(target, from).map_err(|damaged| damaged.error(self.me()))? else {
            return Ok(false);
        };
        publish(target, claim, data, region, end);
        target.ring_for_notice();
        Ok(true)
    }

    /// Returns whether a notice for `rank` may find room now.
    pub(crate) fn has_room(&self, rank: Rank) -> Result<bool> {
        let segment = self.job().segment(rank)?;
        if self.job().is_lost(rank) {
            return Err(self.job().loss_of(rank));
        }
        if ring::has_room(segment) {
            return Ok(true);
        }
        // A rank that has left takes no more notices. (This rank itself may still.)
        let left = rank != self.me() && self.job().control.state(rank.index()) == State::Left;
        if left { Err(FabricError::PeersLeft) } else { Ok(false) }
    }

    /// Returns the oldest notice if it is ready and no other thread takes it first.
    #[inline(always)]
    pub(crate) fn take_fast(&self) -> Option<Notice> {
        take(self.segment(), self.job().plan.ranks)
    }

    /// Returns the oldest notice if it is ready.
    #[inline(always)]
    pub(crate) fn take_general(&self) -> Result<Option<Notice>> {
        let control = &self.job().control;
        if ring::is_empty(self.segment()) && !control.anybody_ended() {
            return Ok(None);
        }
        let has_ended = |rank: Rank| control.has_ended(rank.index());
        consume(self.segment(), self.me(), self.job().plan.ranks, || control.anybody_ended(), has_ended)
    }
}

/// Gives up a claimed slot without a notice.
#[cold]
fn give_up(target: &Mapping, claim: ring::Claim) {
    ring::withdraw(target, claim);
    // Other ranks' notices may be ready behind it.
    target.ring_for_notice();
}
