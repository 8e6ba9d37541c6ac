//! Puts and gets through libfabric, split into consecutive parts if they exceed its longest
//! transfer, or are in several registered pieces.

use super::{
    core::{Core, Phase, State},
    directory::RemoteRegion,
    flight::{Flight, Job},
    keys::RemotePiece,
    link::Link,
    message::{Head, Kind},
    outbox::SENT,
    pending_transfer::{PendingTransfer, What},
    registered::network,
    written,
};
use crate::{Brought, Peer, PutFrom};
use core::ops::Range;
use rdma_fabric::{FabricError, Rank, RegionKey, Result};
use std::sync::Arc;

/// The source of a put.
pub(super) enum Origin<'a> {
    Bytes(&'a [u8]),
    /// A range of this rank's heap, within this region.
    Own(RegionKey, Range<usize>),
}

/// The destination of a get.
pub(super) enum Landing {
    Bytes(usize),
    /// A range of this rank's heap, within this region.
    Own(RegionKey, Range<usize>),
}

impl State {
    /// Starts a libfabric put to `offset` in a region of another node; the caller counts it among
    /// the puts to its rank. Returns its id, or `None` if there is no room.
    ///
    /// # Errors
    /// [`FabricError::StaleRegion`], of either region; [`FabricError::PeerLost`],
    /// [`FabricError::System`].
    pub(super) fn write(
        &mut self,
        mut flight: Flight,
        remote: &Arc<RemoteRegion>,
        offset: u64,
        from: Origin<'_>,
    ) -> Result<Option<u64>> {
        let begun = match from {
            Origin::Own(own, range) => {
                flight.own = Some(own);
                self.transfer(flight, remote, offset, What::PutOwn(range))
            }
            Origin::Bytes(bytes) => self.write_bytes(flight, remote, offset, bytes),
        }?;
        self.core.counters.writes += u64::from(begun.is_some());
        Ok(begun)
    }

    /// Starts a libfabric get, as [`State::write`] starts a put.
    ///
    /// # Errors
    /// As [`State::write`].
    pub(super) fn read(
        &mut self,
        mut flight: Flight,
        remote: &Arc<RemoteRegion>,
        offset: u64,
        into: Landing,
    ) -> Result<Option<u64>> {
        let what = match into {
            Landing::Bytes(len) => What::Get(len),
            Landing::Own(own, range) => {
                flight.own = Some(own);
                What::GetInto(range)
            }
        };
        let begun = self.transfer(flight, remote, offset, what)?;
        self.core.counters.reads += u64::from(begun.is_some());
        Ok(begun)
    }

    /// Puts bytes of the caller, which are copied only if one transfer can't move them.
    fn write_bytes(
        &mut self,
        flight: Flight,
        remote: &Arc<RemoteRegion>,
        offset: u64,
        bytes: &[u8],
    ) -> Result<Option<u64>> {
        let at = remote.at + offset;
        self.begin(flight, remote, at, |link, (peer, piece), id| {
            if bytes.len() > link.longest.min(piece.rest(at)) {
                return first_part(link, (peer, piece), id, PendingTransfer::new(at, What::Put(bytes.to_vec(), 0)));
            }
            let told = written::encode(at, bytes.len(), link.endpoint.limits().data);
            let put = link.endpoint.put(peer, PutFrom::Bytes(bytes), piece.key, piece.offset(at), told, id)?;
            Ok(put.then_some(None))
        })
    }

    fn transfer(&mut self, flight: Flight, remote: &Arc<RemoteRegion>, offset: u64, what: What) -> Result<Option<u64>> {
        let at = remote.at + offset;
        self.begin(flight, remote, at, |link, peer, id| first_part(link, peer, id, PendingTransfer::new(at, what)))
    }

    /// Starts the operation that `post` posts, to or from the byte `at` of the heap of the region's
    /// rank. `post` receives the piece with this byte, and returns the rest of the operation, or
    /// `None` if there is no room.
    pub(super) fn begin(
        &mut self,
        mut flight: Flight,
        remote: &Arc<RemoteRegion>,
        at: u64,
        post: impl FnOnce(&mut Link, (Peer, RemotePiece), u64) -> crate::Result<Posted>,
    ) -> Result<Option<u64>> {
        let (State { link: Some(link), core }, rank) = (self, flight.rank) else { return Ok(None) };
        core.is_whole()?;
        if !core.has_room() {
            return Ok(None);
        }
        // Checked again under the lock: the progress thread may have revoked the region in the
        // meantime, and another thread of the program may have dropped the local region.
        if remote.is_revoked() {
            return Err(FabricError::StaleRegion { rank: Rank::new(rank), region: remote.key });
        }
        if let Some(own) = flight.own {
            core.is_kept(own)?;
        }
        let reached = link.reach(rank).map_err(|error| network(&error))?;
        let Some(peer) = reached else { return Err(FabricError::PeerLost { rank: Rank::new(rank) }) };
        let piece = core.piece(rank, at)?;
        let own = flight.own;
        flight.remote = Some(remote.clone());
        let id = core.flights.add(flight);
        match post(link, (peer, piece), id) {
            Ok(Some(pending)) => {
                core.directory.enter(remote, own);
                if let Some(flight) = core.flights.get(id) {
                    (flight.posted, flight.pending) = (true, pending);
                }
                Ok(Some(id))
            }
            Ok(None) => {
                core.flights.remove(id);
                Ok(None)
            }
            Err(error) => {
                core.flights.remove(id);
                Err(network(&error))
            }
        }
    }

    /// Moves bytes between this rank's heap and the heap of a rank of another node, at `there`;
    /// towards this rank if `fetches`. The flight holds this rank's region. The transfer starts
    /// when there is room.
    pub(super) fn move_bytes(&mut self, flight: Flight, here: Range<usize>, there: u64, fetches: bool) {
        let what = if fetches { What::GetInto(here) } else { What::PutOwn(here) };
        flight.own.into_iter().for_each(|own| self.core.directory.enter_own(own));
        let id = self.core.flights.add(Flight { pending: Some(PendingTransfer::new(there, what)), ..flight });
        if fetches {
            self.core.counters.reads += 1;
        } else {
            self.core.counters.writes += 1;
        }
        self.core.halfway.push_back(id);
        self.advance();
    }

    /// Continues transfers of which a part has completed.
    pub(super) fn advance(&mut self) {
        // Before the contact data of the other ranks is known, no rank can be reached.
        let State { link: Some(link), core } = self else { return };
        if !link.is_connected() {
            return;
        }
        while let Some(id) = core.halfway.pop_front() {
            let Some(flight) = core.flights.get(id).filter(|flight| flight.outcome.is_none()) else { continue };
            let (rank, Some(mut pending)) = (flight.rank, flight.pending.take()) else { continue };
            let posted = match link.reach(rank).map_err(|error| network(&error)) {
                Ok(Some(peer)) => core
                    .piece(rank, pending.at())
                    .and_then(|piece| pending.post(link, (peer, piece), id).map_err(|error| network(&error))),
                // The loss of the rank is about to be reported.
                Ok(None) => continue,
                Err(error) => Err(error),
            };
            let Some(flight) = core.flights.get(id) else { continue };
            if !pending.is_empty() {
                flight.pending = Some(pending);
            }
            match posted {
                Ok(true) => flight.posted = true,
                Ok(false) => return core.halfway.push_front(id),
                Err(error) => core.refuse(id, error),
            }
        }
    }
}

/// The rest of an operation, `None` if there is none; or `None` if there is no room for its start.
type Posted = Option<Option<PendingTransfer>>;

/// Posts the first part of a transfer.
fn first_part(
    link: &mut Link,
    peer: (Peer, RemotePiece),
    id: u64,
    mut pending: PendingTransfer,
) -> crate::Result<Posted> {
    Ok(pending.post(link, peer, id)?.then(|| (!pending.is_empty()).then_some(pending)))
}

impl Core {
    /// Checks that a region of this rank is registered and is not being dropped.
    pub(super) fn is_kept(&self, own: RegionKey) -> Result<()> {
        if self.directory.is_closing(own) {
            return Err(FabricError::StaleRegion { rank: Rank::new(self.me), region: own });
        }
        self.part.locate(own).map(drop)
    }

    /// Handles the completion of a posted operation.
    pub(super) fn complete(&mut self, tag: u64, outcome: core::result::Result<Brought<'_>, crate::Failure>) {
        let id = tag & !SENT;
        let brought = match outcome {
            Ok(brought) => brought,
            Err(failure) => {
                let error = FabricError::System { call: &"libfabric", errno: failure.reply.code };
                return if tag & SENT != 0 { self.failed_to_send(tag, error) } else { self.refuse(id, error) };
            }
        };
        if tag & SENT != 0 {
            return;
        }
        self.orphaned(id);
        let Some(flight) = self.flights.get(id).filter(|flight| flight.outcome.is_none()) else { return };
        flight.posted = false;
        let mut word = 0;
        match brought {
            Brought::Nothing => {}
            Brought::Bytes(bytes) => flight.bytes.extend_from_slice(bytes),
            Brought::Word(brought) => word = brought,
        }
        if let Job::Word(Some(place)) = &flight.job {
            let bytes = &word.to_le_bytes()[..place.len().min(8)];
            let written = self.below.provider().write(place, bytes, true);
            return self.end(id, written.map(|()| word));
        }
        if flight.pending.is_some() {
            return self.halfway.push_back(id);
        }
        let rank = flight.rank;
        let has_notice = matches!(flight.job, Job::PutThenNotice);
        let writes = has_notice || matches!(flight.job, Job::Put | Job::Move(_));
        if has_notice {
            flight.job = Job::Notice;
        }
        if writes && self.tells_by_message {
            self.send_message(rank, Head::request(Kind::Written, self.me, RegionKey::from_bits(0)), Vec::new());
        }
        if has_notice {
            self.leave_regions(id);
            let waiting = self.queued.get_mut(&rank).and_then(|all| all.iter_mut().find(|queued| queued.id == id));
            waiting.into_iter().for_each(|queued| queued.ready = true);
            return self.send_notices(rank);
        }
        self.end(id, Ok(word));
    }

    /// Records that an operation no longer uses its regions.
    pub(super) fn leave_regions(&mut self, id: u64) {
        let Some(flight) = self.flights.get(id) else { return };
        let (remote, own) = (flight.remote.take(), flight.own.take());
        self.leave_region(remote.as_deref(), own);
    }

    pub(super) fn leave_region(&mut self, remote: Option<&RemoteRegion>, own: Option<RegionKey>) {
        let Some(remote) = remote else {
            return own.into_iter().for_each(|own| self.directory.leave_own(own));
        };
        if self.directory.leave(remote, own) && remote.is_revoked() {
            self.answer_revokes(remote);
        }
    }

    /// Returns whether a new operation may start now.
    pub(super) fn has_room(&self) -> bool {
        self.phase == Phase::Running && self.flights.in_flight() < super::core::DEEPEST && self.has_sent_all()
    }
}
