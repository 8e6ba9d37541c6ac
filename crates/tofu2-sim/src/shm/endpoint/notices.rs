//! Notices of a rank: those it sends with its puts, and its own.

use super::Endpoint;
use crate::shm::{control::State, detour, mapping::Mapping, notice_ring, place::Found, ring};
use rdma_fabric::{
    FabricError, Notice, Rank, RemoteAddr, Result,
    provider::{Place, Posted, Source},
};
use std::sync::Arc;

impl Endpoint {
    /// Put a short source with a notice if nothing stands in the way: room first, then the bytes, then the notice. Whether that
    /// was possible on the short path.
    #[inline(always)]
    pub(super) fn notify_shortly(&self, to: &Place, from: &Source<'_>, data: u64) -> bool {
        let Source::Bytes(bytes) = from else { return false };
        // Look first, so that an impossible operation takes no room.
        if !to.admits(bytes.len()) {
            return false;
        }
        let Some(target) = to.anchor().and_then(|anchor| anchor.get::<Arc<Mapping>>()) else { return false };
        let Some(claim) = ring::claim_next(target, self.me()) else { return false };
        if to.copy_in(bytes).is_none() {
            give_up(target, claim);
            return false;
        }
        let RemoteAddr { region, offset, .. } = to.addr();
        notice_ring::publish(target, claim, data, region, offset + bytes.len() as u64);
        target.ring_with_notice(to.start(), bytes.len());
        true
    }

    /// Any put with a notice.
    #[inline(never)]
    pub(super) fn notify_slowly(&self, to: &Found<'_>, from: &Source<'_>, data: u64) -> Posted {
        // Look first, so that an impossible operation is not taken for one that needs room.
        if let Some(error) = objection(to, from) {
            return Posted::failed(error);
        }
        let claim = match ring::claim(to.target, self.me()) {
            Ok(Some(claim)) => claim,
            Ok(None) => return Posted::Full,
            Err(damaged) => return Posted::failed(damaged.error(to.addr.rank)),
        };
        if let Err(error) = detour::put(self, to, from) {
            give_up(to.target, claim);
            return Posted::failed(error);
        }
        let RemoteAddr { region, offset, .. } = to.addr;
        notice_ring::publish(to.target, claim, data, region, offset + to.len as u64);
        to.ring_with_notice();
        Posted::Over(0)
    }

    /// Whether a notice for `rank` may find room now.
    pub(in super::super) fn has_room(&self, rank: Rank) -> Result<bool> {
        let segment = self.job().segment(rank)?;
        if self.job().is_lost(rank) {
            return Err(FabricError::PeerLost { rank });
        }
        if ring::has_room(segment) {
            return Ok(true);
        }
        // Who has left takes no notices any more. (This rank is asked while it runs, so it may still.)
        let left = rank != self.me() && self.job().control.state(rank.index()) == State::Left;
        if left { Err(FabricError::PeersLeft) } else { Ok(false) }
    }

    /// The oldest notice if it is ready and nobody else takes it.
    #[inline(always)]
    pub(super) fn take_shortly(&self) -> Option<Notice> {
        notice_ring::take(&self.0.segment, self.job().plan.ranks)
    }

    /// The oldest notice if it is ready.
    #[inline(always)]
    pub(super) fn take_slowly(&self) -> Result<Option<Notice>> {
        let control = &self.job().control;
        if ring::is_empty(self.segment()) && !control.anybody_ended() {
            return Ok(None);
        }
        let has_ended = |rank: Rank| control.has_ended(rank.index());
        notice_ring::consume(&self.0.segment, self.me(), self.job().plan.ranks, || control.anybody_ended(), has_ended)
    }
}

/// Leave no notice after all.
#[cold]
fn give_up(target: &Mapping, claim: ring::Claim) {
    ring::withdraw(target, claim);
    // Notices of others may be ready behind it.
    target.ring_for_notice();
}

/// Why a put from `from` to `to` is impossible, as far as that can be told before.
fn objection(to: &Found<'_>, from: &Source<'_>) -> Option<FabricError> {
    let len = from.len();
    if to.is_fit()
        && let Source::Place(own) = from
    {
        match Found::of(own) {
            Ok(own) if own.is_fit() => {}
            Ok(own) => return Some(own.refusal(len, 1)),
            Err(error) => return Some(error),
        }
    }
    (!to.is_fit() || len != to.len).then(|| to.refusal(len, 1))
}
