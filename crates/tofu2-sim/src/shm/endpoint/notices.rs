//! Notices of a rank: those it sends with its puts, and its own.

use super::{Endpoint, short_path::SHORT};
use crate::shm::{control::State, detour, mapping::Mapping, notice_ring, place::Place, ring, waiting::Look};
use rdma_fabric::{
    Fabric, FabricError, Location, Notice, Pod, PutSource, Rank, Refused, RemoteAddr, Result, op::SourceView,
};

impl Endpoint {
    /// Put a short source with a notice if nothing stands in the way: room first, then the bytes, then the notice. Whether that
    /// was possible on the short path.
    #[inline(always)]
    pub(in super::super) fn notify_shortly(&self, to: &Place, from: SourceView<'_, Place>, data: u64) -> bool {
        let SourceView::Bytes(bytes) = from else { return false };
        // Look first, so that an impossible operation takes no room.
        if bytes.len() > SHORT || !to.piece.admits(bytes.len()) {
            return false;
        }
        let target = to.piece.mapping();
        let Some(claim) = ring::claim_next(target, self.me()) else { return false };
        if to.piece.copy_in(bytes).is_none() {
            give_up(target, claim);
            return false;
        }
        let RemoteAddr { region, offset, .. } = to.addr();
        notice_ring::publish(target, claim, data, region, offset + bytes.len() as u64);
        to.piece.ring_with_notice();
        true
    }

    /// Any put with a notice.
    #[inline(never)]
    pub(in super::super) fn notify_slowly<T: Pod, S: PutSource<Self, T>>(
        &self,
        to: &Place,
        from: S,
        data: u64,
    ) -> Result<S, Refused<S>> {
        let target = to.piece.mapping();
        let align = align_of::<T>();
        // Look first, so that an impossible operation is not taken for one that needs room.
        if let Some(error) = objection(to, &from.view(), align) {
            return Err(Refused::Failed(error, from));
        }
        let claim = match ring::claim(target, self.me()) {
            Ok(Some(claim)) => claim,
            Ok(None) => return Err(Refused::Full(from)),
            Err(damaged) => return Err(Refused::Failed(damaged.error(to.addr().rank), from)),
        };
        let copied = match from.view() {
            SourceView::Bytes(bytes) if bytes.len() <= SHORT && to.piece.copy_in(bytes).is_some() => Ok(()),
            view => detour::put(self, to, view, align),
        };
        if let Err(error) = copied {
            give_up(target, claim);
            return Err(Refused::Failed(error, from));
        }
        let RemoteAddr { region, offset, .. } = to.addr();
        notice_ring::publish(target, claim, data, region, offset + to.len() as u64);
        to.piece.ring_with_notice();
        Ok(from)
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
        notice_ring::take(&self.0.segment, self.ranks())
    }

    /// The oldest notice if it is ready.
    #[inline(always)]
    pub(super) fn take_slowly(&self) -> Result<Option<Notice>> {
        let control = &self.job().control;
        if ring::is_empty(self.segment()) && !control.anybody_ended() {
            return Ok(None);
        }
        let has_ended = |rank: Rank| control.has_ended(rank.index());
        notice_ring::consume(&self.0.segment, self.me(), self.ranks(), || control.anybody_ended(), has_ended)
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
fn objection(to: &Place, from: &SourceView<'_, Place>, align: usize) -> Option<FabricError> {
    let len = match from {
        SourceView::Bytes(bytes) => bytes.len(),
        SourceView::Registered(own) => own.len(),
    };
    match from {
        SourceView::Registered(own) if to.is_fit() && !own.is_fit() => Some(own.refusal(len, align)),
        _ => (!to.is_fit() || len != to.len()).then(|| to.refusal(len, align)),
    }
}

/// Looks for the next notice.
pub(super) struct NoticeLook<'a>(pub(super) &'a Endpoint);

impl Look for NoticeLook<'_> {
    type Found = Notice;

    #[inline(always)]
    fn glance(&mut self) -> Option<Notice> {
        self.0.take_shortly()
    }

    #[inline(always)]
    fn look(&mut self) -> Result<Option<Notice>> {
        self.0.take_slowly()
    }
}
