//! A member's state about its peers.

use crate::{
    Direction, FmplError, Result,
    area::Ends,
    collective::Collectives,
    losses::Lost,
    point::{Pending, Windows},
    spool::{Queue, Reading, Spool},
};
use core::{fmt, task::Waker};
use rdma_fabric::{LocalSpan, Pod, RemoteAddr, RemoteSpan};
use std::collections::VecDeque;

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
    /// The number of indices; the channels after them are those for unknown senders.
    pub(crate) indices: usize,
    pub(crate) collectives: Collectives,
}

impl fmt::Debug for State {
    /// Formats the state that is kept between calls.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let State { peers, spool, pending, turn, collectives, .. } = self;
        let (peers, pending) = (peers.iter().map(|peer| (peer.member, &peer.any, &peer.channels)), pending.len());
        f.debug_struct("State")
            .field("peers", &peers.collect::<Vec<_>>())
            .field("spool", spool)
            .field("pending", &pending)
            .field("turn", turn)
            .field("collectives", collectives)
            .finish()
    }
}

/// The state of one peer.
pub(crate) struct Peer {
    /// Its number.
    pub(crate) member: usize,
    pub(crate) ends: Ends,
    pub(crate) channels: Box<[ChannelState]>,
    pub(crate) any: AnyIndex,
    /// When a send's patience expired: its channel, and the number of messages that the peer had taken
    /// from it.
    pub(crate) stalled: Option<(usize, u64)>,
}

/// The receives from one peer that take any index.
#[derive(Debug, Default)]
pub(crate) struct AnyIndex {
    /// The number of receives posted so far.
    pub(crate) made: u64,
    /// Those that are posted, by number.
    pub(crate) queue: VecDeque<u64>,
    /// The number of wanted messages last published to the peer.
    pub(crate) told: u64,
}

/// The messages of one channel in both directions.
#[derive(Debug, Default)]
pub(crate) struct ChannelState {
    /// The number of messages to the peer that have been put or spooled.
    pub(crate) sent: u64,
    /// How many of these the peer is known to have received.
    pub(crate) taken: u64,
    /// Whether a send is in progress.
    pub(crate) sending: bool,
    /// The messages to the peer that are not in a flag; `None` until there is one.
    pub(crate) queue: Option<Box<Queue>>,
    /// Why a spooled message could not be announced; none can be sent after it.
    pub(crate) failed: Option<FmplError>,
    /// The result of a send that [`Sending::wait`](crate::Sending::wait) returns, once there is
    /// one.
    pub(crate) isend: Option<Option<Result<()>>>,
    /// This member's place in the peer's queue.
    pub(crate) reading: Reading,
    /// The number of messages received from the peer.
    pub(crate) received: u64,
    /// Whether a receive is in progress.
    pub(crate) receiving: bool,
    /// The last message that was offered but too long.
    pub(crate) refused: Option<u64>,
    /// Whether the last header may still be in flight, because its message was offered.
    pub(crate) unseen: bool,
    /// The buffer of the last receive, kept so that a receive into the same buffer only compares
    /// it, without changing a reference count.
    pub(crate) into: Option<LocalSpan<u8>>,
    /// Whether that receive was dropped before its message arrived.
    pub(crate) abandoned: bool,
    /// The buffers of that receive, if it was one into any memory.
    pub(crate) window: Option<crate::point::Window>,
    /// The last receive buffer that was resolved, at the peer.
    pub(crate) target: Option<(RemoteAddr, RemoteSpan<u8>)>,
}

impl ChannelState {
    /// Records the buffer of a receive.
    #[inline(always)]
    pub(crate) fn keep_buffer<T: Pod>(&mut self, into: &LocalSpan<T>) -> Result<&LocalSpan<u8>> {
        let bytes = into.len() * size_of::<T>();
        match &mut self.into {
            Some(kept) if kept.addr() == into.addr() && kept.len() == bytes => {}
            other => *other = Some(into.as_bytes()?),
        }
        Ok(self.into.as_ref().expect("a buffer that has just been kept"))
    }

    /// Returns the buffer of `bytes` bytes at this address of the peer, if it is the last one that
    /// was resolved.
    pub(crate) fn target_at(&self, at: RemoteAddr, bytes: usize) -> Option<&RemoteSpan<u8>> {
        self.target.as_ref().filter(|(known, span)| *known == at && span.len() == bytes).map(|(_, span)| span)
    }

    /// Counts a message that was put into its receive buffer. The receive was posted after the peer
    /// had received all earlier messages; whether the peer has seen this one is unknown.
    #[inline(always)]
    pub(crate) fn count_direct(&mut self) {
        self.taken = self.sent;
        self.sent += 1;
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
            indices,
            collectives,
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
        self.peers.push(Peer {
            member,
            ends,
            channels: (0..channels).map(|_| ChannelState::default()).collect(),
            any: AnyIndex::default(),
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
            return Err(error.clone());
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
