//! One end of a connection, whatever its kind, and how it fails.

use super::{
    incoming::Incoming,
    link::Near,
    outgoing::Outgoing,
    progress::Turn,
    results::Results,
    segments::{Destination, Source},
    table::Ask,
};
use crate::{AcpError, Result};
use core::task::Poll;
use rdma_fabric::{Fabric, FabricError};

pub(super) enum End {
    Outgoing(Box<Outgoing>),
    Incoming(Box<Incoming>),
    Source(Box<Source>),
    Destination(Box<Destination>),
}

impl End {
    pub(super) fn near(&mut self) -> &mut Near {
        match self {
            End::Outgoing(end) => &mut end.near,
            End::Incoming(end) => &mut end.near,
            End::Source(end) => &mut end.near,
            End::Destination(end) => &mut end.near,
        }
    }

    pub(super) fn is_connected(&self) -> bool {
        match self {
            End::Outgoing(end) => end.is_connected(),
            End::Incoming(end) => end.is_connected(),
            End::Source(end) => end.is_connected(),
            End::Destination(end) => end.is_connected(),
        }
    }

    /// Returns whether the end waits for a request to connect.
    pub(super) fn waits_to_be_asked(&self) -> bool {
        matches!(self, End::Incoming(_) | End::Destination(_)) && !self.is_connected()
    }

    /// Closes the end after all earlier requests.
    pub(super) fn free(&mut self, request: u64) {
        match self {
            End::Outgoing(end) => end.free(request),
            End::Incoming(end) => end.free(request),
            End::Source(end) => end.free(request),
            End::Destination(end) => end.free(request),
        }
    }

    pub(super) fn is_freed(&self) -> bool {
        match self {
            End::Outgoing(end) => end.freed,
            End::Incoming(end) => end.freed,
            End::Source(end) => end.freed.is_some(),
            End::Destination(end) => end.freed.is_some(),
        }
    }

    pub(super) fn withdraw(&mut self, request: u64) -> bool {
        match self {
            End::Incoming(end) => end.withdraw(request),
            _ => false,
        }
    }

    fn outstanding(&mut self) -> Vec<u64> {
        match self {
            End::Outgoing(end) => end.outstanding(),
            End::Incoming(end) => end.outstanding(),
            End::Source(end) => end.freed.into_iter().collect(),
            End::Destination(end) => end.freed.into_iter().collect(),
        }
    }

    fn advance(&mut self, turn: &mut Turn<'_, '_>) -> Result<bool> {
        match self {
            End::Outgoing(end) => end.advance(turn),
            End::Incoming(end) => end.advance(turn),
            End::Source(end) => end.advance(turn),
            End::Destination(end) => end.advance(turn),
        }
    }
}

/// An end, and the error with which it failed.
pub(super) struct Ended {
    pub(super) end: End,
    failed: Option<AcpError>,
    /// The peer's memory no longer exists; the wait for the peer's next change reports the reason.
    stale: bool,
}

impl Ended {
    pub(super) fn new(end: End) -> Self {
        Ended { end, failed: None, stale: false }
    }

    /// Returns the error with which the end has failed.
    pub(super) fn check(&self) -> Result<()> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    pub(super) fn connect(&mut self, fabric: &Fabric, ask: Ask, results: &mut Results) {
        let connected = match &mut self.end {
            End::Incoming(end) => end.connect(fabric, &ask),
            End::Destination(end) => {
                end.ask = Some(ask);
                Ok(())
            }
            End::Outgoing(_) | End::Source(_) => Ok(()),
        };
        if let Err(error) = connected {
            self.meet(error, results);
        }
    }

    /// Makes progress without waiting; returns whether the end is no longer needed.
    pub(super) fn advance(&mut self, turn: &mut Turn<'_, '_>) -> bool {
        if self.failed.is_none() && !self.stale {
            match self.end.advance(turn) {
                Ok(over) => return over,
                Err(error) => {
                    turn.changed = true;
                    self.meet(error, turn.results);
                }
            }
        }
        while self.failed.is_none() && self.stale {
            let near = self.end.near();
            let changed = near.load(turn.fabric).map(|_| near.poll_change(turn));
            match changed {
                Ok(Poll::Pending) => return false,
                Ok(Poll::Ready(Ok(()))) => {}
                Ok(Poll::Ready(Err(error))) | Err(error) => self.fail(error, turn.results),
            }
        }
        self.end.is_freed()
    }

    /// Fails the end, or marks it as stale if the error only precedes the report of a lost or
    /// departed peer.
    fn meet(&mut self, error: AcpError, results: &mut Results) {
        let place = self.end.near().place;
        match error {
            // A rank that is lost, or leaves, drops its memory first.
            AcpError::Fabric(FabricError::StaleRegion { rank, .. }) if rank == place => self.stale = true,
            error => self.fail(error, results),
        }
    }

    pub(super) fn fail(&mut self, error: AcpError, results: &mut Results) {
        let near = self.end.near();
        let error = match error {
            AcpError::Fabric(FabricError::PeersLeft) => AcpError::Disconnected { peer: near.peer },
            // The error contains the peer's number in the fabric; a channel involves no other rank.
            AcpError::Fabric(FabricError::PeerLost { rank }) if rank == near.place => {
                FabricError::PeerLost { rank: near.peer }.into()
            }
            error => error,
        };
        for request in self.end.outstanding() {
            results.finish(request, Err(error.clone()));
        }
        self.failed = Some(error);
    }
}
