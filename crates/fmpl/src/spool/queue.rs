//! The queue of a channel: any number of waiting messages that the receiver can find by itself.
//!
//! The receiver's memory has room for two offers of a channel. Further messages are listed in the
//! sender's memory, so that no message waits for another call of its sender.

use super::{Spool, memory::Room};
use crate::{
    Communicator, Result,
    area::{Channel, INLINE, Kind, NODE, Node, OFFERS, Queued, Record},
    point::Source,
    state::{ChannelId, State},
};
use rdma_fabric::{Fabric, LocalSpan, RemoteAddr};

/// The sender's end of a queue.
#[derive(Debug)]
pub(crate) struct Queue {
    /// The number of messages ever added to it.
    queued: u64,
    /// The node of the next message.
    next: (Room, LocalSpan<u8>),
}

/// Where a message is announced.
#[derive(Debug)]
pub(crate) enum Announced {
    /// In its flag at the receiver.
    AtReceiver,
    /// In the sender's queue. If it is the first one, the receiver does not know yet where the queue
    /// begins.
    InQueue { queued: Queued, start: Option<RemoteAddr> },
}

/// The receiver's end of a queue.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// The number of messages taken out of it.
    taken: u64,
    /// `None` until a node has been read.
    place: Option<Box<Place>>,
}

#[derive(Debug)]
enum Place {
    /// The next node has been read.
    Read(Node),
    /// The next node is at this address.
    At(RemoteAddr),
}

impl Reading {
    /// Returns the next node, if it has been read.
    fn head(&self) -> Option<&Node> {
        match self.place.as_deref() {
            Some(Place::Read(node)) => Some(node),
            _ => None,
        }
    }

    /// Returns the record of message `n`, if that is known to be the next one in the queue.
    pub(crate) fn record(&self, n: u64) -> Option<Record> {
        self.head().filter(|head| head.n == n).map(|head| head.record)
    }

    /// Takes message `n` out, if it is in the queue.
    pub(crate) fn take(&mut self, n: u64) {
        if let Some(place) = self.place.as_deref_mut()
            && let Place::Read(head) = place
            && head.n == n
        {
            self.taken += 1;
            *place = Place::At(head.next);
        }
    }

    /// Returns the address of the next node, unless the peer has yet to give it or the node has been read.
    fn next(&self) -> Option<RemoteAddr> {
        match self.place.as_deref() {
            Some(Place::At(next)) => Some(*next),
            _ => None,
        }
    }

    /// Returns whether message `n` has been sent and waits, given the number of messages that the
    /// peer has queued: the queue contains only this message and later ones.
    pub(crate) fn may_hold(&self, n: u64, queued: Queued) -> bool {
        self.record(n).is_some() || self.head().is_none() && queued.after(self.taken) > 0
    }

    /// Returns the number of messages taken out of it.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// Returns the number of messages that the peer must have queued before another check can
    /// succeed; `None` if the next queued message is known to be later than the awaited one.
    pub(crate) fn known(&self) -> Option<u64> {
        self.head().is_none().then_some(self.taken)
    }
}

impl State {
    /// Determines where message `n` is announced, and adds it to the channel's queue unless its flag
    /// is free; returns the node, which is kept until the message is taken.
    pub(crate) fn place(
        &mut self,
        fabric: &Fabric,
        id: ChannelId,
        n: u64,
        record: Record,
    ) -> Result<(Announced, Option<Room>)> {
        if self.flag_is_free(fabric, id, n)? {
            self.count_offer(id);
            return Ok((Announced::AtReceiver, None));
        }
        let State { spool: Spool { nodes, .. }, peers, .. } = self;
        let queue = &mut peers[id.peer].channels[id.channel].queue;
        let queue = match queue {
            Some(queue) => queue,
            None => queue.insert(Box::new(Queue { queued: 0, next: nodes.reserve(fabric, NODE)? })),
        };
        let next = nodes.reserve(fabric, NODE)?;
        let words = Node { n, record, next: next.1.addr() }.to_words();
        fabric.write(&*queue.next.1.part_as::<u64>(0, words.len())?, &words)?;
        let (room, node) = core::mem::replace(&mut queue.next, next);
        let start = (queue.queued == 0).then(|| node.addr());
        queue.queued += 1;
        let queued = Queued::new(queue.queued, record.before);
        self.count_offer(id);
        Ok((Announced::InQueue { queued, start }, Some(room)))
    }

    /// Returns whether message `n` may be offered in its flag: the message before it in that flag was
    /// taken.
    pub(super) fn flag_is_free(&self, fabric: &Fabric, id: ChannelId, n: u64) -> Result<bool> {
        Ok(self.taken(fabric, id.peer, id.channel)? + OFFERS > n)
    }

    pub(super) fn count_offer(&mut self, id: ChannelId) {
        if id.channel < self.indices {
            self.peers[id.peer].slot.count_offer();
        }
    }

    /// Returns the record that offers a message in this member's memory to the peer.
    pub(crate) fn offer_of(&self, id: ChannelId, span: &LocalSpan<u8>) -> Record {
        Record { before: self.peers[id.peer].slot.used(), ..Record::of_span(Kind::Offered, span) }
    }

    /// Returns the record that contains a message, if it is short.
    pub(crate) fn inline_offer_of(&self, id: ChannelId, source: &mut dyn Source) -> Option<Record> {
        let (mut body, bytes) = ([0; INLINE], source.bytes());
        if bytes > INLINE || source.span().is_some() {
            return None;
        }
        let mut at = 0;
        while at < bytes {
            let chunk = source.chunk(at, bytes - at);
            body.get_mut(at..at + chunk.len())?.copy_from_slice(chunk);
            at += chunk.len();
        }
        Record::inline(&body[..bytes], self.peers[id.peer].slot.used())
    }

    /// Returns whether all messages sent in a channel have been announced, so that their receiver
    /// needs no further call of this member.
    pub(crate) fn is_announced(&self, id: ChannelId) -> bool {
        !self.pending.iter().any(|pending| pending.id == id && pending.is_posting())
    }

    /// Frees a node whose message was taken, or is given up.
    pub(crate) fn free_node(&mut self, node: Option<Room>) {
        if let Some(node) = node {
            self.spool.nodes.give_back(node);
        }
    }
}

impl Communicator {
    /// Waits until all messages sent in a channel have been announced, which depends on no other
    /// member.
    pub(crate) async fn announced(&self, id: ChannelId) -> Result<()> {
        if self.with(|state| state.is_announced(id))? {
            return Ok(());
        }
        self.until(|state| state.is_announced(id).then_some(())).await
    }

    /// Returns the peer's record of its message `n`, from a flag or from its queue.
    pub(crate) async fn report_of(&self, id: ChannelId, channel: &Channel<'_>, n: u64) -> Result<Option<Record>> {
        if let Some(flag) = channel.flag(n)? {
            return Ok(Some(flag));
        }
        self.read_queue(id, channel).await?;
        self.with(|state| state.channel(id).reading.record(n))
    }

    /// Waits for the peer's record of its message `n`.
    pub(crate) async fn until_reported(&self, id: ChannelId, channel: &Channel<'_>, n: u64) -> Result<Record> {
        loop {
            if let Some(record) = self.report_of(id, channel, n).await? {
                return Ok(record);
            }
            let known = self.with(|state| state.channel(id).reading.known())?;
            self.progressing(channel.until_flag_or_queued(n, known)).await?;
        }
    }

    /// Reads the next node of the peer's queue, unless it is known or there is none.
    pub(crate) async fn read_queue(&self, id: ChannelId, channel: &Channel<'_>) -> Result<()> {
        let (known, next) = self.with(|state| {
            let reading = &state.channel(id).reading;
            (reading.known(), reading.next())
        })?;
        let Some(taken) = known else { return Ok(()) };
        if channel.queued()?.after(taken) == 0 {
            return Ok(());
        }
        let at = match next {
            Some(at) => at,
            None => channel.queue_start()?,
        };
        let mut words = [0; NODE / 8];
        self.fabric.get_slice(&self.fabric.remote_span::<u64>(at, NODE / 8)?, &mut words).await?;
        self.with(|state| {
            let reading = &mut state.channel(id).reading;
            // Another receive of this member may have read it in the meantime.
            if reading.known() == Some(taken) {
                let read = Place::Read(Node::of_words(words, channel.peer()));
                match &mut reading.place {
                    Some(place) => **place = read,
                    none => *none = Some(Box::new(read)),
                }
            }
        })
    }
}
