//! Outgoing messages: requests and answers, which are sent in order, and the queue of those that
//! wait for room.

use super::{
    core::{Core, Phase, State},
    flight::{Flight, Job},
    message::Head,
    mutant::Mutant,
    registered::network,
};
use rdma_fabric::{FabricError, Rank, Result};
use std::{collections::VecDeque, time::Instant};

/// Set in the tag of a message. The bits below hold the flight of a request, or the rank that an
/// answer is sent to: see [`answer_tag`].
pub(super) const SENT: u64 = 1 << 63;

/// A message that waits for room.
#[derive(Debug)]
struct Waiting {
    rank: u32,
    tag: u64,
    head: Head,
    bytes: Vec<u8>,
}

/// Capacity for waiting messages that stays allocated.
const KEPT: usize = 8;

/// Messages that have not been sent.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    waiting: VecDeque<Waiting>,
    /// Requests without a waiting caller that were made while no new operation may start.
    later: VecDeque<(Flight, Head, Vec<u8>)>,
}

/// The result of sending a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sending {
    Sent,
    /// There is no room, or the contact data of the other ranks is not known yet.
    Full,
    /// The rank no longer exists.
    Nobody,
}

/// Returns the tag of an answer to a rank. Tags of flights differ from it in their lower half,
/// which is never 0.
pub(super) fn answer_tag(rank: u32) -> u64 {
    SENT | u64::from(rank) << 32
}

/// Returns the rank that the answer with this tag was sent to; `None` if it was not an answer.
pub(super) fn answered_rank(tag: u64) -> Option<u32> {
    (tag & SENT != 0 && tag as u32 == 0).then_some(((tag & !SENT) >> 32) as u32)
}

impl Core {
    /// Sends a message that is acknowledged, without waiting for the acknowledgement. While no new
    /// operation may start, the message is deferred, because its answer might arrive at an endpoint
    /// that has been closed.
    pub(super) fn send_message(&mut self, rank: u32, head: Head, bytes: Vec<u8>) {
        self.dispatch(Flight::new(rank, Job::Ask), head, bytes);
    }

    /// Sends a message like [`Core::tell`]; the answer completes `flight`.
    pub(super) fn dispatch(&mut self, flight: Flight, head: Head, bytes: Vec<u8>) {
        let rank = flight.rank;
        match self.phase {
            _ if self.lost.contains(&rank) => self.never_began(flight),
            Phase::Running => {
                let id = self.flights.add(flight);
                self.send_soon(rank, id | SENT, Head { id, ..head }, bytes);
            }
            Phase::Draining => self.outbox.later.push_back((flight, head, bytes)),
            Phase::Broken => self.never_began(flight),
        }
    }

    /// Fails a flight that can no longer start.
    fn never_began(&mut self, mut flight: Flight) {
        flight.outcome = Some(Err(FabricError::PeerLost { rank: Rank::new(flight.rank) }));
        self.leave_region(None, flight.own.take());
        self.ended(flight);
    }

    /// Sends the deferred messages, because operations may start again.
    pub(super) fn send_deferred(&mut self) {
        for (flight, head, bytes) in core::mem::take(&mut self.outbox.later) {
            self.dispatch(flight, head, bytes);
        }
    }

    /// Returns whether all messages have been sent, except for the deferred ones.
    pub(super) fn has_sent_all(&self) -> bool {
        self.outbox.waiting.is_empty()
    }

    /// Returns whether no operation of this rank is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.flights.in_flight() == 0 && self.has_sent_all() && self.outbox.later.is_empty() && self.arrivals.is_empty()
    }

    /// Returns the number of messages that wait for room.
    pub(super) fn unsent(&self) -> usize {
        self.outbox.waiting.len()
    }

    /// Queues a message, to be sent when there is room.
    pub(super) fn send_soon(&mut self, rank: u32, tag: u64, head: Head, bytes: Vec<u8>) {
        if !self.lost.contains(&rank) {
            self.outbox.waiting.push_back(Waiting { rank, tag, head, bytes });
        }
    }

    /// Drops messages to lost ranks.
    pub(super) fn clear_outbox(&mut self) {
        let lost = &self.lost;
        self.outbox.waiting.retain(|waiting| !lost.contains(&waiting.rank));
        let later = core::mem::take(&mut self.outbox.later);
        let (gone, kept): (Vec<_>, Vec<_>) = later.into_iter().partition(|(flight, ..)| lost.contains(&flight.rank));
        self.outbox.later.extend(kept);
        gone.into_iter().for_each(|(flight, ..)| self.never_began(flight));
    }

    /// Handles a message that failed. A lost answer leaves its rank waiting: unless the rank is
    /// reported lost in time, the endpoint is considered unusable.
    pub(super) fn failed_to_send(&mut self, tag: u64, error: FabricError) {
        match answered_rank(tag) {
            Some(rank) if !self.lost.contains(&rank) => {
                self.unanswered.entry(rank).or_insert((Instant::now(), error));
                self.trouble = true;
            }
            Some(_) => {}
            None => self.refuse(tag & !SENT, error),
        }
    }
}

impl State {
    /// Sends the waiting messages for which there is room.
    pub(super) fn flush_outbox(&mut self) {
        let waited = !self.core.has_sent_all();
        while let Some(waiting) = self.core.outbox.waiting.pop_front() {
            match self.send(waiting.rank, waiting.tag, waiting.head, &waiting.bytes) {
                Ok(Sending::Sent) => {}
                Ok(Sending::Full) => return self.core.outbox.waiting.push_front(waiting),
                Ok(Sending::Nobody) => {
                    let rank = Rank::new(waiting.rank);
                    self.core.end(waiting.tag & !SENT, Err(FabricError::PeerLost { rank }));
                }
                Err(error) => self.core.failed_to_send(waiting.tag, network(&error)),
            }
        }
        if waited {
            let core = &mut self.core;
            core.outbox.waiting.shrink_to(KEPT);
            // Wakes the tasks that found no room because of these messages.
            core.woken.append(&mut core.waiters);
        }
    }

    fn send(&mut self, rank: u32, tag: u64, head: Head, bytes: &[u8]) -> crate::Result<Sending> {
        let Some(link) = &mut self.link else { return Ok(Sending::Full) };
        if !link.is_connected() && !self.core.has_mutant(Mutant::DropsUnmet) {
            return Ok(Sending::Full);
        }
        let (Some(peer), Some(door)) = (link.reach(rank)?, self.core.keys.door(rank)) else {
            return Ok(Sending::Nobody);
        };
        let sent = link.endpoint.send(peer, &[&Head { door, ..head }.to_bytes(), bytes], tag)?;
        self.core.counters.messages += u64::from(sent);
        Ok(if sent { Sending::Sent } else { Sending::Full })
    }

    /// Sends a request to a rank of another node if there is room. Returns the request's id.
    ///
    /// # Errors
    /// [`FabricError::System`], [`FabricError::PeerLost`].
    pub(super) fn request(&mut self, flight: Flight, mut head: Head, bytes: &[u8]) -> Result<Option<u64>> {
        self.core.is_whole()?;
        if !self.core.has_room() {
            return Ok(None);
        }
        let rank = flight.rank;
        let id = self.core.flights.add(flight);
        head.id = id;
        let sent = self.send(rank, id | SENT, head, bytes).map_err(|error| network(&error));
        if let Ok(Sending::Sent) = sent {
            return Ok(Some(id));
        }
        self.core.flights.remove(id);
        match sent? {
            Sending::Nobody => Err(FabricError::PeerLost { rank: Rank::new(rank) }),
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_and_requests_are_told_apart() {
        assert_eq!(answered_rank(answer_tag(0)), Some(0));
        assert_eq!(answered_rank(answer_tag(70_000)), Some(70_000));
        assert_eq!(answered_rank(SENT | 5 << 32 | 1), None);
        assert_eq!(answered_rank(5 << 32), None);
    }
}
