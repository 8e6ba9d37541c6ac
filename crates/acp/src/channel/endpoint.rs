//! One end of a connection, whatever its kind, and how it fails.

use super::{
    incoming::Incoming,
    link::LocalSide,
    outgoing::Outgoing,
    progress::Turn,
    results::Results,
    segments::{Destination, Source},
    table::Ask,
};
use crate::{AcpError, Result};
use core::task::Poll;
use rdma_fabric::{Fabric, FabricError};

pub(super) enum Endpoint {
    Outgoing(Box<Outgoing>),
    Incoming(Box<Incoming>),
    Source(Box<Source>),
    Destination(Box<Destination>),
}

impl Endpoint {
    pub(super) fn local(&mut self) -> &mut LocalSide {
        match self {
            Endpoint::Outgoing(end) => &mut end.local,
            Endpoint::Incoming(end) => &mut end.local,
            Endpoint::Source(end) => &mut end.local,
            Endpoint::Destination(end) => &mut end.local,
        }
    }

    pub(super) fn is_connected(&self) -> bool {
        match self {
            Endpoint::Outgoing(end) => end.is_connected(),
            Endpoint::Incoming(end) => end.is_connected(),
            Endpoint::Source(end) => end.is_connected(),
            Endpoint::Destination(end) => end.is_connected(),
        }
    }

    /// Returns whether the end waits for a request to connect.
    pub(super) fn waits_to_be_asked(&self) -> bool {
        matches!(self, Endpoint::Incoming(_) | Endpoint::Destination(_)) && !self.is_connected()
    }

    /// Closes the end after all earlier requests.
    pub(super) fn free(&mut self, request: u64) {
        match self {
            Endpoint::Outgoing(end) => end.free(request),
            Endpoint::Incoming(end) => end.free(request),
            Endpoint::Source(end) => end.free(request),
            Endpoint::Destination(end) => end.free(request),
        }
    }

    pub(super) fn is_freed(&self) -> bool {
        match self {
            Endpoint::Outgoing(end) => end.freed,
            Endpoint::Incoming(end) => end.freed,
            Endpoint::Source(end) => end.freed.is_some(),
            Endpoint::Destination(end) => end.freed.is_some(),
        }
    }

    pub(super) fn withdraw(&mut self, request: u64) -> bool {
        match self {
            Endpoint::Incoming(end) => end.withdraw(request),
            _ => false,
        }
    }

    fn outstanding(&mut self) -> Vec<u64> {
        match self {
            Endpoint::Outgoing(end) => end.outstanding(),
            Endpoint::Incoming(end) => end.outstanding(),
            Endpoint::Source(end) => end.freed.into_iter().collect(),
            Endpoint::Destination(end) => end.freed.into_iter().collect(),
        }
    }

    fn advance(&mut self, turn: &mut Turn<'_, '_>) -> Result<bool> {
        match self {
            Endpoint::Outgoing(end) => end.advance(turn),
            Endpoint::Incoming(end) => end.advance(turn),
            Endpoint::Source(end) => end.advance(turn),
            Endpoint::Destination(end) => end.advance(turn),
        }
    }
}

/// An end, and the error with which it failed.
pub(super) struct Ended {
    pub(super) end: Endpoint,
    failed: Option<AcpError>,
    /// The peer's memory no longer exists; the wait for the peer's next change reports the reason.
    stale: bool,
}

impl Ended {
    pub(super) fn new(end: Endpoint) -> Self {
        Ended { end, failed: None, stale: false }
    }

    /// Returns the error with which the end has failed.
    pub(super) fn check(&self) -> Result<()> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    pub(super) fn connect(&mut self, fabric: &Fabric, ask: Ask, results: &mut Results) {
        let connected = match &mut self.end {
            Endpoint::Incoming(end) => end.connect(fabric, &ask),
            Endpoint::Destination(end) => {
                end.ask = Some(ask);
                Ok(())
            }
            Endpoint::Outgoing(_) | Endpoint::Source(_) => Ok(()),
        };
        if let Err(error) = connected {
            self.fail_if_lost(error, results);
        }
    }

    /// Makes progress without waiting; returns whether the end is no longer needed.
    pub(super) fn advance(&mut self, turn: &mut Turn<'_, '_>) -> bool {
        if self.failed.is_none() && !self.stale {
            match self.end.advance(turn) {
                Ok(over) => return over,
                Err(error) => {
                    turn.changed = true;
                    self.fail_if_lost(error, turn.results);
                }
            }
        }
        while self.failed.is_none() && self.stale {
            let local = self.end.local();
            let changed = local.load(turn.fabric).map(|_| local.poll_change(turn));
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
    fn fail_if_lost(&mut self, error: AcpError, results: &mut Results) {
        let place = self.end.local().place;
        match error {
            // A rank that is lost, or leaves, drops its memory first.
            AcpError::Fabric(FabricError::StaleRegion { rank, .. }) if rank == place => self.stale = true,
            error => self.fail(error, results),
        }
    }

    pub(super) fn fail(&mut self, error: AcpError, results: &mut Results) {
        let local = self.end.local();
        let error = match error {
            AcpError::Fabric(FabricError::PeersLeft) => AcpError::Disconnected { peer: local.peer },
            // The error contains the peer's number in the fabric; a channel involves no other rank.
            AcpError::Fabric(FabricError::PeerLost { rank }) if rank == local.place => {
                FabricError::PeerLost { rank: local.peer }.into()
            }
            error => error,
        };
        for request in self.end.outstanding() {
            results.finish(request, Err(error.clone()));
        }
        self.failed = Some(error);
    }
}
