//! What happens when a rank is lost.
//!
//! Bytes of a killed rank can wait in sockets, and silence proves nothing. So before anybody is told
//! of the loss, nothing new begins, and what is under way among the living comes to its end
//! ([`Member::drain`](super::Member::drain)). Then each closes its endpoint, which lands nothing any
//! more, and opens another one, with its memory registered under a key that the lost rank never knew
//! ([`Member::reopen`](super::Member::reopen)). When all have, the loss is told, and operations go on
//! ([`Member::resume`](super::Member::resume)).

use super::{
    core::{Core, Phase, network},
    link::{Contact, Link},
    mistake::Mistake,
    net::Net,
};
use crate::OfiError;
use rdma_fabric::{FabricError, Rank};

impl Core {
    /// Returns the epoch for which all that was under way is over, once.
    pub(super) fn has_drained(&mut self) -> Option<u64> {
        let epoch = self.untold?;
        let lost = &self.lost;
        let is_over = || self.has_sent_all() && self.flights.those(|flight| !lost.contains(&flight.rank)).is_empty();
        // A rank whose endpoint has failed has nothing under way, and delays nobody.
        if self.phase != Phase::Broken && !self.errs(Mistake::DrainedAtOnce) && !is_over() {
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

    /// Ends what was under way with lost ranks. What came of them before counts: notices that wait
    /// for room stay.
    fn end_with_lost(&mut self) {
        let lost = self.lost.clone();
        for rank in &lost {
            self.queued.remove(rank);
        }
        for id in self.flights.those(|flight| lost.contains(&flight.rank)) {
            let rank = self.flights.get(id).map_or(self.me, |flight| flight.rank);
            self.end(id, Err(FabricError::PeerLost { rank: Rank::new(rank) }));
        }
        self.directory.forget(&lost);
        self.woken.append(&mut self.waiters);
    }
}

impl Net {
    /// Lets nothing new begin, because these ranks are lost.
    pub(super) fn drain(&self, epoch: u64, lost: &[Rank]) {
        self.with(|state| {
            state.core.lose(lost);
            state.core.untold = Some(epoch);
            if state.core.phase != Phase::Broken {
                state.core.phase = Phase::Draining;
            }
        });
    }

    /// Closes the endpoint and opens another one; returns what to tell the others of it.
    pub(super) fn reopen(&self) -> crate::Result<Vec<u8>> {
        self.with(|state| {
            state.link = None;
            state.core.closed();
            match Link::open(&self.domain, &self.heap) {
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

    /// Learns how to reach the others: of each rank what it told, or nothing if it is lost.
    pub(super) fn meet(&self, contacts: &[Option<Vec<u8>>]) -> crate::Result<()> {
        let read = |(rank, contact): (usize, &Option<Vec<u8>>)| {
            let reached = |rank| self.is_far(rank) || self.watched.is_some() && rank == self.me;
            let Some(contact) = contact.as_ref().filter(|_| reached(Rank::new(rank as u32))) else {
                return Ok(None);
            };
            Contact::from_bytes(contact).map(Some).ok_or(OfiError::Key { len: contact.len() })
        };
        let contacts = contacts.iter().enumerate().map(read).collect::<crate::Result<Vec<_>>>();
        self.with(|state| match (contacts, &mut state.link) {
            (Ok(contacts), Some(link)) => {
                link.meet(contacts);
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

    /// Tells the loss of ranks on this node and to whoever waits for them, and lets operations begin
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
            core.tell_later();
            state.flush_outbox();
        });
        self.part.wake();
    }

    /// Tells the loss of ranks that have said it of themselves, when nothing of theirs was under way:
    /// the endpoint stays open, and an epoch under way goes on.
    pub(super) fn lost(&self, lost: &[Rank]) {
        self.forget_arrivals(lost);
        self.part.lost(lost, false);
        self.with(|state| {
            state.core.lose(lost);
            state.core.end_with_lost();
        });
        self.part.wake();
    }

    /// Wakes whoever waits, since something has become of a rank.
    pub(super) fn rouse(&self) {
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
