//! The spool: messages that wait, in their sender's memory, to be fetched by their receivers.

mod calls;
mod idle;
mod memory;
mod queue;
mod settings;
mod siblings;

use crate::{
    FmplError, Result,
    area::{Channel, INLINE, OFFERS, Record, Taken},
    point::{Doorbell, Offer, Pending, Source},
    state::{ChannelId, State},
};
pub(crate) use calls::no_memory;
use core::time::Duration;
pub(crate) use idle::Idle;
pub(crate) use memory::Room;
use memory::{Memory, Otherwise};
pub(crate) use queue::{Announced, Queue, Reading};
use rdma_fabric::Fabric;
pub(crate) use siblings::Siblings;

/// Spooled messages, counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spooled {
    /// The number of messages received since the last check.
    pub received: usize,
    /// The number of messages that wait to be received.
    pub waiting: usize,
}

/// A rank's spool in one communicator.
#[derive(Debug)]
pub(crate) struct Spool {
    memory: Memory,
    /// The memory of the queues' nodes.
    nodes: Memory,
    /// How long a send waits for its receive before it is spooled; `None` if it is not spooled.
    pub(crate) time_out: Option<Duration>,
    /// The longest time that a send waits before the spool grows; `None` if it never grows.
    patience: Option<Duration>,
    held: Vec<Held>,
    /// The number of messages that a growing spool may hold before the next sweep, which checks all
    /// of them.
    due: usize,
    /// The number of received messages that have not been reported yet.
    received: usize,
    /// Why a message was not received: its receiver refused it, or was lost; not reported yet.
    refused: Option<FmplError>,
}

/// A message that waits.
#[derive(Debug)]
struct Held {
    id: ChannelId,
    n: u64,
    bytes: usize,
    /// Its place in the spool; `None` if it is in its offer.
    room: Option<Room>,
    /// Its node, if it is in its channel's queue.
    node: Option<Room>,
}

/// A spool grows by at least this number of bytes, and so does the memory of queues.
const GROWTH: usize = 256 << 10;
const NODES: usize = 4 << 10;

impl Spool {
    pub(crate) fn new(
        fabric: &Fabric,
        bytes: usize,
        time_out: Option<Duration>,
        patience: Option<Duration>,
    ) -> Result<Self> {
        let (memory, nodes) = (Memory::new(fabric, bytes, GROWTH)?, Memory::new(fabric, 0, NODES)?);
        Ok(Spool { memory, nodes, time_out, patience, held: Vec::new(), due: 0, received: 0, refused: None })
    }

    /// Returns whether a message of `bytes` bytes fits into the spool when nothing else is held.
    pub(crate) fn may_hold(&self, bytes: usize) -> bool {
        self.grows() || self.memory.may_hold(bytes)
    }

    /// Returns the number of waiting messages, and the number of their bytes.
    fn load(&self) -> (usize, usize) {
        (self.held.len(), self.held.iter().map(|held| held.bytes).fold(0, usize::saturating_add))
    }

    fn grows(&self) -> bool {
        self.patience.is_some()
    }
}

impl State {
    /// Returns the number of messages that wait for receives of any index although their sends
    /// would not have spooled them: those in separate pieces of memory, and, for a send that is
    /// `synchronous`, all others.
    pub(crate) fn beside(&self, peer: usize, synchronous: bool) -> u64 {
        let Spool { memory, held, .. } = &self.spool;
        let is_named = |id: ChannelId| id.peer == peer && id.channel < self.indices;
        let counts = |held: &&Held| {
            is_named(held.id) && (synchronous || held.room.as_ref().is_some_and(|room| memory.is_single(room)))
        };
        held.iter().filter(counts).count() as u64
    }

    /// Spools message `n`, whose send then completes; a short one travels in its offer, if its flag is
    /// free. `None` if there is no room, counting as free
    /// the messages received at the last [sweep](State::sweep). If the receiver has a doorbell, it
    /// is changed when the message is offered.
    pub(crate) fn spool(
        &mut self,
        fabric: &Fabric,
        id: ChannelId,
        (n, source): (u64, &mut dyn Source),
        must: bool,
        doorbell: Option<Doorbell>,
    ) -> Result<Option<()>> {
        if source.bytes() <= INLINE
            && self.flag_is_free(fabric, id, n)?
            && let Some(record) = self.inline_offer_of(id, source)
        {
            self.count_offer(id);
            self.announce(fabric, id, Offer { n, record, announced: Announced::AtReceiver, doorbell });
            self.hold(id, n, record.bytes, None, None);
            return Ok(Some(()));
        }
        let grows = self.spool.grows();
        let otherwise = if must && !grows { Otherwise::Alone } else { Otherwise::Nowhere };
        let mut kept = self.spool.memory.keep(fabric, source, otherwise)?;
        if kept.is_none() && grows {
            self.sweep(fabric)?;
            kept = self.spool.memory.keep(fabric, source, Otherwise::Grow)?;
        }
        let Some((room, span)) = kept else { return Ok(None) };
        let record = self.offer_of(id, &span);
        let (announced, node) = match self.place(fabric, id, n, record) {
            Ok(place) => place,
            Err(error) => {
                self.spool.memory.give_back(room);
                return Err(error);
            }
        };
        self.hold(id, n, span.len(), Some(room), node);
        self.announce(fabric, id, Offer { n, record, announced, doorbell });
        Ok(Some(()))
    }

    /// Counts message `n` as sent; it waits for its receiver.
    pub(crate) fn hold(&mut self, id: ChannelId, n: u64, bytes: usize, room: Option<Room>, node: Option<Room>) {
        self.spool.held.push(Held { id, n, bytes, room, node });
        let channel = self.channel(id);
        (channel.sent, channel.sending) = (n + 1, false);
    }

    /// Offers a short message by puts that complete immediately; returns its number. It is not counted
    /// yet, and without a number it may be sent again.
    #[inline(always)]
    pub(crate) fn offer_now(&mut self, fabric: &Fabric, id: ChannelId, body: &[u8]) -> Option<u64> {
        if !self.pending.is_empty() || self.spool.time_out.is_none() {
            return None;
        }
        self.sweep_if_due(fabric).ok()?;
        let peer = &self.peers[id.peer];
        let (known, channel) = (&peer.channels[id.channel], Channel::new(fabric, &peer.ends, id.channel));
        let n = known.sent;
        if known.sending || known.failed.is_some() || channel.taken_now()?.messages.max(known.taken) + OFFERS <= n {
            return None;
        }
        channel.put_offer_now(n, Record::inline(body, peer.slot.used())?).then_some(n)
    }

    fn announce(&mut self, fabric: &Fabric, id: ChannelId, offer: Offer) {
        let ends = self.peers[id.peer].ends.clone();
        self.pending.push(Pending::of_spool(fabric.clone(), ends, id, offer));
    }

    /// Discards the spooled messages of a channel because one of them could not be announced, and
    /// reports the error.
    pub(crate) fn fail(&mut self, id: ChannelId, error: FmplError) {
        if !self.lost.contains(self.peers[id.peer].member) {
            self.spool.refused = Some(error.clone());
        }
        self.give_up(id, error);
    }

    /// Discards the spooled messages of a channel; no message can be sent after it.
    pub(crate) fn give_up(&mut self, id: ChannelId, error: FmplError) {
        let (given_up, held): (Vec<_>, _) = self.spool.held.drain(..).partition(|held| held.id == id);
        self.spool.held = held;
        for Held { room, node, .. } in given_up {
            self.free_room(room, node);
        }
        self.channel(id).failed = Some(Box::new(error));
    }

    /// Returns the number of messages of a channel that the peer is known to have taken.
    fn taken(&self, fabric: &Fabric, peer: usize, channel: usize) -> Result<u64> {
        let peer = &self.peers[peer];
        let Taken { messages, .. } = Channel::new(fabric, &peer.ends, channel).taken()?;
        Ok(messages.max(peer.channels[channel].taken))
    }

    /// Returns how long the send of message `n` should wait for its peer; `None` if the peer can
    /// fetch the message by itself, or has stalled.
    fn patience(&self, fabric: &Fabric, id: ChannelId, n: u64) -> Result<Option<Duration>> {
        let Some(patience) = self.spool.patience else { return Ok(None) };
        let is_far_ahead = self.taken(fabric, id.peer, id.channel)? + OFFERS <= n;
        let stands_still = match self.peers[id.peer].stalled {
            Some((channel, then)) => self.taken(fabric, id.peer, channel)? == then,
            None => false,
        };
        Ok((is_far_ahead && !stands_still).then_some(patience))
    }

    fn free_room(&mut self, room: Option<Room>, node: Option<Room>) {
        if let Some(room) = room {
            self.spool.memory.give_back(room);
        }
        self.free_node(node);
    }

    /// Frees the space of received messages, if a sweep is due: sends do not wait for room in a
    /// spool that grows, so it is swept when it holds twice as much as after the last sweep, and
    /// before it grows.
    pub(crate) fn sweep_if_due(&mut self, fabric: &Fabric) -> Result<()> {
        let is_due = !self.spool.grows() || self.spool.held.len() >= self.spool.due;
        if is_due { self.sweep(fabric) } else { Ok(()) }
    }

    /// Frees the space of received messages.
    pub(crate) fn sweep(&mut self, fabric: &Fabric) -> Result<()> {
        let mut at = 0;
        while at < self.spool.held.len() {
            let Held { id, n, bytes, .. } = self.spool.held[at];
            let peer = &mut self.peers[id.peer];
            let Taken { messages, refused } = Channel::new(fabric, &peer.ends, id.channel).taken()?;
            let channel = &mut peer.channels[id.channel];
            if channel.taken.max(messages) <= n {
                at += 1;
                continue;
            }
            channel.taken = channel.taken.max(messages);
            if refused == Some(n) {
                let (from, to, index) =
                    (self.me, peer.member, id.channel.checked_sub(self.indices).unwrap_or(id.channel));
                self.spool.refused = Some(FmplError::TooLong { from, to, index, bytes, room: 0 });
            }
            let Held { room, node, .. } = self.spool.held.swap_remove(at);
            self.free_room(room, node);
            self.spool.received += 1;
        }
        self.spool.due = 2 * self.spool.held.len() + 8;
        Ok(())
    }
}
