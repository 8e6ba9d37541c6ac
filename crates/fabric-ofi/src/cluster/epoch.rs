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
    net::Net,
};
use crate::OfiError;
use rdma_fabric::{FabricError, Rank};

impl Core {
    /// Returns the epoch for which all that was under way is over, once.
    pub(super) fn has_drained(&mut self) -> Option<u64> {
        let Phase::Draining { epoch, told: false } = self.phase else { return None };
        let lost = &self.lost;
        if !self.has_sent_all() || !self.flights.those(|flight| !lost.contains(&flight.rank)).is_empty() {
            return None;
        }
        self.phase = Phase::Draining { epoch, told: true };
        Some(epoch)
    }

    fn lose(&mut self, lost: &[Rank]) {
        self.lost.extend(lost.iter().map(|rank| rank.number()));
        self.clear_outbox();
        let lost = self.lost.clone();
        self.revoking.retain(|head| !lost.contains(&head.from));
        for rank in &lost {
            self.far(*rank).held.clear();
        }
    }

    /// Ends what was under way with lost ranks.
    fn end_with_lost(&mut self) {
        let lost = self.lost.clone();
        for id in self.flights.those(|flight| lost.contains(&flight.rank)) {
            let rank = self.flights.get(id).map_or(self.me, |flight| flight.rank);
            self.end(id, Err(FabricError::PeerLost { rank: Rank::new(rank) }));
        }
        for rank in &lost {
            self.far(*rank).queued.clear();
        }
        self.directory.forget(&lost);
    }
}

impl Net {
    /// Lets nothing new begin, because these ranks are lost.
    pub(super) fn drain(&self, epoch: u64, lost: &[Rank]) {
        self.with(|state| {
            state.core.lose(lost);
            if state.core.phase != Phase::Broken {
                state.core.phase = Phase::Draining { epoch, told: false };
            }
        });
    }

    /// Closes the endpoint and opens another one; returns what to tell the others of it.
    pub(super) fn reopen(&self) -> crate::Result<Vec<u8>> {
        self.with(|state| {
            state.link = None;
            match Link::open(&self.domain, &self.heap) {
                Ok(link) => {
                    state.core.door = link.door;
                    let contact = link.contact().to_bytes();
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
            let Some(contact) = contact.as_ref().filter(|_| self.is_far(Rank::new(rank as u32))) else {
                return Ok(None);
            };
            Contact::from_bytes(contact).map(Some).ok_or(OfiError::Key { len: contact.len() })
        };
        let contacts = contacts.iter().enumerate().map(read).collect::<crate::Result<Vec<_>>>()?;
        self.with(|state| {
            if let Some(link) = &mut state.link {
                link.meet(contacts);
            }
        });
        Ok(())
    }

    /// Tells the loss of ranks on this node and to whoever waits for them, and lets operations begin
    /// again.
    pub(super) fn resume(&self, lost: &[Rank]) {
        self.part.lost(lost, true);
        self.with(|state| {
            state.core.lose(lost);
            state.core.end_with_lost();
            if state.core.phase != Phase::Broken {
                state.core.phase = Phase::Running;
            }
            let core = &mut state.core;
            core.woken.append(&mut core.waiters);
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
