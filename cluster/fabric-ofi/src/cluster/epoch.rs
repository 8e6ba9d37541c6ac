//! Rank failure: the three-phase reconfiguration of a job after a loss.
//!
//! A killed rank may have bytes buffered in sockets, and the absence of traffic does not show that
//! its writes have stopped. The surviving ranks therefore reconfigure before any of them reports
//! the loss:
//!
//! 1. **Drain** ([`Member::drain`](super::Member::drain)): no new operations start, and the
//!    operations between surviving ranks complete.
//! 2. **Reopen** ([`Member::reopen`](super::Member::reopen)): each surviving rank closes its
//!    endpoint, after which no buffered write takes effect, and opens a new one, with its memory
//!    registered under a key that the lost rank never knew.
//! 3. **Resume** ([`Member::resume`](super::Member::resume)): once all surviving ranks have
//!    reopened, the loss is reported, and operations continue.

use super::{
    core::{Core, Phase},
    link::{Contact, Link},
    mutant::Mutant,
    net::Net,
    registered::network,
};
use crate::OfiError;
use rdma_fabric::{FabricError, Rank};

impl Core {
    /// Returns the epoch once all operations between surviving ranks have completed; returns `None`
    /// on later calls.
    pub(super) fn has_drained(&mut self) -> Option<u64> {
        let epoch = self.untold?;
        let lost = &self.lost;
        let is_complete =
            || self.has_sent_all() && self.flights.those(|flight| !lost.contains(&flight.rank)).is_empty();
        // A rank with a failed endpoint has no operations in flight, so it does not delay the
        // drain.
        if self.phase != Phase::Broken && !self.has_mutant(Mutant::DrainedAtOnce) && !is_complete() {
            return None;
        }
        self.untold = None;
        Some(epoch)
    }

    fn lose(&mut self, lost: &[Rank]) {
        self.lost.extend(lost.iter().map(|rank| rank.number()));
        self.clear_outbox();
        let lost = self.lost.clone();
        self.revoking.retain(|head| !lost.contains(&head.from));
        self.drop_arrivals(&lost);
    }

    /// Fails all operations to lost ranks. Notices already received from them are kept, including
    /// those that wait for room.
    fn end_with_lost(&mut self) {
        let lost = self.lost.clone();
        for rank in &lost {
            self.queued.remove(rank);
        }
        for id in self.flights.those(|flight| lost.contains(&flight.rank)) {
            let rank = self.flights.get(id).map_or(self.me, |flight| flight.rank);
            self.end(id, Err(FabricError::PeerLost { rank: Rank::new(rank) }));
        }
        self.forget_unconfirmed(&lost);
        self.directory.forget(&lost);
        self.woken.append(&mut self.waiters);
    }
}

impl Net {
    /// Stops new operations, because these ranks are lost.
    pub(super) fn drain(&self, epoch: u64, lost: &[Rank]) {
        self.with(|state| {
            state.core.lose(lost);
            state.core.untold = Some(epoch);
            if state.core.phase != Phase::Broken {
                state.core.phase = Phase::Draining;
            }
        });
    }

    /// Closes the endpoint and opens a new one; returns its contact data for the other ranks.
    pub(super) fn reopen(&self) -> crate::Result<Vec<u8>> {
        self.with(|state| {
            state.link = None;
            state.core.closed();
            state.core.keys.clear();
            match self.heap.renew().and_then(|()| Link::open(&self.domain, &self.heap)) {
                Ok(link) => {
                    state.core.door = link.door;
                    let contact = link.contact();
                    state.link = Some(link);
                    Ok(contact)
                }
                Err(error) => {
                    state.core.give_up(&network(&error));
                    Err(error)
                }
            }
        })
    }

    /// Sets the contact data of the other ranks: one entry per rank, `None` if the rank is lost.
    pub(super) fn connect(&self, contacts: &[Option<Vec<u8>>]) -> crate::Result<()> {
        let read = |(rank, contact): (usize, &Option<Vec<u8>>)| {
            let reached = |rank| self.is_remote(rank) || self.watched.is_some() && rank == self.me;
            let Some(contact) = contact.as_ref().filter(|_| reached(Rank::new(rank as u32))) else {
                return Ok(None);
            };
            Contact::from_bytes(contact).map(Some).ok_or(OfiError::Key { len: contact.len() })
        };
        let contacts = contacts.iter().enumerate().map(read).collect::<crate::Result<Vec<_>>>();
        self.with(|state| match (contacts, &mut state.link) {
            (Ok(contacts), Some(link)) => {
                let keys = |(rank, contact): (u32, &Option<Contact>)| Some((rank, contact.as_ref()?.keys.clone()));
                state.core.keys.set((0..).zip(&contacts).filter_map(keys));
                link.connect(contacts);
                state.flush_outbox();
                Ok(())
            }
            (Ok(_), None) => Ok(()),
            (Err(error), _) => {
                state.core.give_up(&network(&error));
                Err(error)
            }
        })
    }

    /// Reports the loss of ranks to this node and to pending waits, and lets operations start
    /// again.
    pub(super) fn resume(&self, lost: &[Rank]) {
        self.forget_arrivals(lost);
        self.part.lost(lost, true);
        self.with(|state| {
            let core = &mut state.core;
            core.lose(lost);
            core.untold = None;
            if core.phase != Phase::Broken {
                core.phase = Phase::Running;
            }
            core.end_with_lost();
            core.send_deferred();
            state.flush_outbox();
        });
        self.part.wake();
    }

    /// Reports the loss of ranks that announced it themselves and had no operations in flight: the
    /// endpoint stays open, and an epoch in progress continues.
    pub(super) fn lost(&self, lost: &[Rank]) {
        self.forget_arrivals(lost);
        self.part.lost(lost, false);
        self.with(|state| {
            state.core.lose(lost);
            state.core.end_with_lost();
        });
        self.part.wake();
    }

    /// Wakes all waits, because the status of a rank has changed.
    pub(super) fn wake_waits(&self) {
        self.with(|state| {
            let core = &mut state.core;
            if let Some(error) = core.part.objection(Rank::new(core.me)) {
                for id in core.flights.those(|_| true) {
                    core.end(id, Err(error.clone()));
                }
            }
            core.woken.append(&mut core.waiters);
        });
    }
}
