//! A member's state about its peers.

use crate::{
    Direction, FmplError, Result,
    any::{AnySlot, Senders},
    area::Ends,
    collective::{Collectives, Scratch},
    losses::Lost,
    peer::AnyIndex,
    peer_channels::Channels,
    point::{Pending, Windows},
    spool::Spool,
};
use core::{fmt, task::Waker};

pub(crate) use crate::peer::{ChannelState, Peer};

/// A channel of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChannelId {
    /// The peer's index among the known peers.
    pub(crate) peer: usize,
    pub(crate) channel: usize,
}

impl ChannelId {
    /// Returns a number that is not `u64::MAX`.
    #[inline(always)]
    pub(crate) fn to_bits(self) -> u64 {
        (self.peer as u64) << 32 | self.channel as u64
    }

    #[inline(always)]
    pub(crate) fn of_bits(bits: u64) -> Self {
        ChannelId { peer: (bits >> 32) as usize, channel: bits as u32 as usize }
    }
}

pub(crate) struct State {
    /// This member's number.
    pub(crate) me: usize,
    /// The known peers, in the order of first contact.
    pub(crate) peers: Vec<Peer>,
    /// A hash table of their numbers and indices, at most half full. Its size is a power of two.
    places: Vec<Option<(u32, u32)>>,
    pub(crate) spool: Spool,
    /// The members that it continues without.
    pub(crate) lost: Lost,
    /// Whether it is among the communicators of the rank that keep buffers.
    pub(crate) keeps_buffers: bool,
    /// Buffers of receives into any memory.
    pub(crate) windows: Windows,
    /// Sends that continue without a call that waits for them.
    pub(crate) pending: Vec<Pending>,
    /// The tasks that wait, while sends are pending.
    pub(crate) waiting: Vec<Waker>,
    /// The number of completed receives for which other tasks may have waited.
    pub(crate) changes: u64,
    /// The tasks that check again after a change.
    pub(crate) watching: Vec<Waker>,
    /// The area at which a receive from any sender starts its search.
    pub(crate) turn: usize,
    /// What such a receive reads of this member's memory, once it is resolved.
    pub(crate) senders: Option<Senders>,
    /// The number of indices; the channels after them are those for unknown senders.
    pub(crate) indices: usize,
    pub(crate) collectives: Collectives,
    /// Elements that reductions combine.
    pub(crate) scratch: Scratch,
}

impl fmt::Debug for State {
    /// Formats the state that is kept between calls.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let State { peers, spool, pending, turn, collectives, .. } = self;
        let kept = peers.iter().map(|peer| (peer.member, &peer.any, &peer.slot, &peer.channels));
        let (peers, pending) = (kept, pending.len());
        f.debug_struct("State")
            .field("peers", &peers.collect::<Vec<_>>())
            .field("spool", spool)
            .field("pending", &pending)
            .field("turn", turn)
            .field("collectives", collectives)
            .finish()
    }
}

impl State {
    pub(crate) fn new(me: usize, indices: usize, spool: Spool, collectives: Collectives) -> Self {
        let places = vec![None; 2];
        State {
            me,
            peers: Vec::new(),
            places,
            spool,
            lost: Lost::default(),
            keeps_buffers: false,
            windows: Windows::default(),
            pending: Vec::new(),
            waiting: Vec::new(),
            changes: 0,
            watching: Vec::new(),
            turn: 0,
            senders: None,
            indices,
            collectives,
            scratch: Scratch::default(),
        }
    }

    /// Returns the index of a known peer.
    #[inline(always)]
    pub(crate) fn place_of(&self, member: usize) -> Option<usize> {
        let mut slot = member;
        loop {
            match self.places[slot & (self.places.len() - 1)] {
                Some((there, place)) if there as usize == member => return Some(place as usize),
                Some(_) => slot += 1,
                None => return None,
            }
        }
    }

    /// Adds a peer, unless it has been added in the meantime; returns its index.
    pub(crate) fn keep(&mut self, member: usize, ends: Ends, channels: usize) -> usize {
        if let Some(place) = self.place_of(member) {
            return place;
        }
        let place = self.peers.len();
        if place == self.peers.capacity() {
            // A peer is large, and most members have few.
            self.peers.reserve_exact(place.div_ceil(2).max(1));
        }
        self.peers.push(Peer {
            member,
            ends,
            doorbell: None,
            channels: Channels::new(channels),
            any: AnyIndex::default(),
            slot: AnySlot::default(),
            stalled: None,
        });
        let places = (2 * self.peers.len() + 2).next_power_of_two();
        if places > self.places.len() {
            self.places = vec![None; places];
            (0..place).for_each(|place| self.note(place));
        }
        self.note(place);
        place
    }

    fn note(&mut self, place: usize) {
        let member = self.peers[place].member;
        let mut slot = member;
        while self.places[slot & (self.places.len() - 1)].is_some() {
            slot += 1;
        }
        let last = self.places.len() - 1;
        self.places[slot & last] = Some((member as u32, place as u32));
    }

    #[inline(always)]
    pub(crate) fn channel(&mut self, id: ChannelId) -> &mut ChannelState {
        &mut self.peers[id.peer].channels[id.channel]
    }

    /// Returns the message index of a channel.
    pub(crate) fn index_of(&self, channel: usize) -> usize {
        channel.checked_sub(self.indices).unwrap_or(channel)
    }

    /// Wakes the tasks that wait for other receives to complete.
    #[inline(always)]
    pub(crate) fn changed(&mut self) {
        self.changes += 1;
        if !self.watching.is_empty() {
            self.watching.drain(..).for_each(Waker::wake);
        }
    }

    /// Begins a send; returns its message's number.
    #[inline(always)]
    pub(crate) fn begin_send(&mut self, id: ChannelId) -> Result<u64> {
        let channel = self.channel(id);
        if channel.sending {
            return Err(self.in_use(id, Direction::To));
        }
        if let Some(error) = &channel.failed {
            return Err((**error).clone());
        }
        channel.sending = true;
        Ok(channel.sent)
    }

    /// Begins a receive; returns its message's number.
    #[inline(always)]
    pub(crate) fn begin_receive(&mut self, id: ChannelId) -> Result<u64> {
        let channel = self.channel(id);
        if channel.receiving {
            return Err(self.in_use(id, Direction::From));
        }
        channel.receiving = true;
        Ok(channel.received)
    }

    /// Counts a part of a message that has arrived; the next part is received as well.
    /// `posted_once` states that no other header for it can be in flight.
    pub(crate) fn received_part(&mut self, id: ChannelId, posted_once: bool) {
        let channel = self.channel(id);
        channel.received += 1;
        channel.unseen &= !posted_once;
    }

    #[cold]
    fn in_use(&self, id: ChannelId, direction: Direction) -> FmplError {
        FmplError::IndexInUse { peer: self.peers[id.peer].member, index: self.index_of(id.channel), direction }
    }

    /// Counts a received message; `direct` states whether it was put into the buffer of its header.
    #[inline(always)]
    pub(crate) fn received(&mut self, id: ChannelId, direct: bool) {
        let channel = self.channel(id);
        (channel.received, channel.receiving) = (channel.received + 1, false);
        if direct {
            channel.unseen = false;
        }
        self.changed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdma_fabric::Rank;

    #[test]
    fn peers_are_found_by_their_numbers() {
        let job = tofu2_sim::virt::Job::new(&tofu2_sim::virt::Platform::fx100(), 1);
        job.run(&async |fabric: rdma_fabric::Fabric| {
            let region = fabric.alloc(64)?;
            let ends = Ends::new(region.span(&fabric, 0, 8)?, region.span_of(&fabric, Rank::new(0), 0, 8)?);
            let mut state = State::new(0, 1, Spool::new(&fabric, 0, None, None)?, Collectives::default());
            for n in 0..100 {
                assert_eq!(state.place_of(n * 64), None);
                assert_eq!((state.keep(n * 64, ends.clone(), 1), state.keep(n * 64, ends.clone(), 1)), (n, n));
            }
            assert!((0..100).all(|n| state.place_of(n * 64) == Some(n)));
            Ok(())
        })
        .expect("no rank fails");
    }
}
