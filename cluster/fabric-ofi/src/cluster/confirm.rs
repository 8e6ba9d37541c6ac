//! Visibility of puts over providers that complete them earlier, when the target's NIC has
//! acknowledged them ([`Limits::delivery`](crate::Limits)).
//!
//! An acknowledged put may still be in a buffer of the target's NIC. A get of the same memory,
//! posted after the acknowledgement, makes it visible: a NIC's read requests do not pass its earlier
//! writes (PCI Express Base Specification, transaction ordering). A flush therefore waits for the
//! acknowledgements, and then for one get from each target. Messages and data of later puts need
//! none: what precedes them on a connection is visible when they are received (InfiniBand
//! Architecture Specification, volume 1, o9-20).

use super::{
    core::{Core, State},
    flight::{Flight, Job},
    registered::network,
};
use crate::GetInto;
use rdma_fabric::FabricError;
use std::collections::BTreeSet;

/// Number of bytes of the get that makes puts visible.
const READ: usize = 1;

/// A put's number among the puts to its rank, and its number among all puts.
type Put = (u64, u64);

/// Acknowledged puts to one rank that may not be visible.
#[derive(Debug, Default)]
pub(super) struct Unconfirmed {
    /// The puts for which no get has been posted.
    acknowledged: Vec<Put>,
    /// Offset in the rank's heap of a region of the last of them.
    at: u64,
    /// The puts that the get in flight makes visible; empty if there is none.
    confirming: Vec<Put>,
    /// Whether a get is wanted for which there was no room.
    wanted: bool,
}

impl Core {
    /// Records that a put to a region that starts at this byte of a rank's heap was acknowledged.
    pub(super) fn acknowledged(&mut self, rank: u32, put: Put, at: u64) {
        let unconfirmed = self.unconfirmed.entry(rank).or_default();
        unconfirmed.acknowledged.push(put);
        unconfirmed.at = at;
    }

    /// Records the end of a get that makes puts visible.
    pub(super) fn confirmed(&mut self, rank: u32, failed: Option<FabricError>) {
        let Some(unconfirmed) = self.unconfirmed.get_mut(&rank) else { return };
        let puts = core::mem::take(&mut unconfirmed.confirming);
        if unconfirmed.acknowledged.is_empty() {
            self.unconfirmed.remove(&rank);
        }
        puts.into_iter().for_each(|put| self.end_put(rank, put));
        if let Some(error) = failed {
            self.errors.entry(rank).or_insert(error);
        }
    }

    /// Ends the acknowledged puts to a rank that can't be reached any more.
    pub(super) fn never_confirmed(&mut self, rank: u32, error: &FabricError) {
        let Some(Unconfirmed { acknowledged, confirming, .. }) = self.unconfirmed.remove(&rank) else { return };
        acknowledged.into_iter().chain(confirming).for_each(|put| self.end_put(rank, put));
        self.errors.entry(rank).or_insert_with(|| error.clone());
    }

    /// Ends the acknowledged puts to all ranks, because no get can be posted any more.
    pub(super) fn none_confirmed(&mut self, error: &FabricError) {
        let ranks: Vec<u32> = self.unconfirmed.keys().copied().collect();
        ranks.into_iter().for_each(|rank| self.never_confirmed(rank, error));
    }

    /// Ends the acknowledged puts to lost ranks.
    pub(super) fn forget_unconfirmed(&mut self, lost: &BTreeSet<u32>) {
        for rank in lost {
            self.never_confirmed(*rank, &FabricError::PeerLost { rank: rdma_fabric::Rank::new(*rank) });
        }
    }
}

impl State {
    /// Posts the gets that make acknowledged puts visible, to a rank or to all ranks. Those for
    /// which there is no room are posted by [`State::confirm_wanted`].
    pub(super) fn confirm(&mut self, rank: Option<u32>) {
        let is_wanted = |other: &u32| rank.is_none_or(|rank| rank == *other);
        let ranks: Vec<u32> = self.core.unconfirmed.keys().copied().filter(is_wanted).collect();
        ranks.into_iter().for_each(|rank| self.confirm_rank(rank));
    }

    /// Posts the gets for which there was no room.
    pub(super) fn confirm_wanted(&mut self) {
        if self.core.unconfirmed.is_empty() {
            return;
        }
        let wanted = |(rank, unconfirmed): (&u32, &Unconfirmed)| unconfirmed.wanted.then_some(*rank);
        let ranks: Vec<u32> = self.core.unconfirmed.iter().filter_map(wanted).collect();
        ranks.into_iter().for_each(|rank| self.confirm_rank(rank));
    }

    fn confirm_rank(&mut self, rank: u32) {
        let State { link: Some(link), core } = self else { return };
        let has_room = core.has_room() && link.is_connected();
        let Some(unconfirmed) = core.unconfirmed.get_mut(&rank) else { return };
        if !unconfirmed.confirming.is_empty() || unconfirmed.acknowledged.is_empty() {
            return;
        }
        unconfirmed.wanted = true;
        if !has_room {
            return;
        }
        let at = unconfirmed.at;
        let posted = match (link.reach(rank).map_err(|error| network(&error)), core.piece(rank, at)) {
            // The loss of the rank is about to be reported.
            (Ok(None), _) => return,
            (Ok(Some(peer)), Ok(piece)) => {
                let id = core.flights.add(Flight { posted: true, ..Flight::new(rank, Job::Confirm) });
                let posted = link.endpoint.get(peer, GetInto::Own(READ), piece.key, piece.offset(at), id);
                if !matches!(posted, Ok(true)) {
                    core.flights.remove(id);
                }
                posted.map_err(|error| network(&error))
            }
            (Err(error), _) | (_, Err(error)) => Err(error),
        };
        match posted {
            Ok(true) => {
                core.counters.reads += 1;
                let unconfirmed = core.unconfirmed.entry(rank).or_default();
                unconfirmed.confirming = core::mem::take(&mut unconfirmed.acknowledged);
                unconfirmed.wanted = false;
            }
            Ok(false) => {}
            Err(error) => core.never_confirmed(rank, &error),
        }
    }
}
