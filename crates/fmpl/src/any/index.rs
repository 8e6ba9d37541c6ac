//! Receives that take a message of any index.

use crate::{
    Communicator, Received, Receiving, Result,
    area::{Channel, Ends},
    cost,
    state::{ChannelId, State},
};
use core::fmt;
use rdma_fabric::{LocalSpan, Pod, join::race_all};

impl Communicator {
    /// Posts a receive for a message of any index (`fmpl_irecv` with `FMPL_TAG_ANY`). Such receives
    /// from one sender are matched in the order in which they were posted. A receive with a
    /// specific index takes precedence, regardless of which was posted first. Among several other
    /// messages, the one with the lowest index is taken, and messages with different indices may
    /// overtake each other. These messages are copied once, at the sender, unless it uses
    /// [`Communicator::isend`]; such a send completes once this receive has been awaited.
    /// [`Communicator::irecv_any_index_direct`] needs no copy.
    ///
    /// # Errors
    /// As [`Communicator::irecv`].
    pub async fn irecv_any_index<T: Pod>(&self, into: &LocalSpan<T>, from: usize) -> Result<ReceivingAny<'_>> {
        let (into, peer) = (into.as_bytes()?, self.met(from).await?);
        self.fabric.charge(cost::INIT).await;
        let ticket = self.with(|state| {
            let any = &mut state.peers[peer].any;
            any.made += 1;
            any.queue.push_back(any.made);
            any.made
        })?;
        let receiving = ReceivingAny { comm: self, peer, ticket, into };
        self.announce_wanted(peer).await?;
        Ok(receiving)
    }

    /// Publishes the number of wanted messages to a sender, if it has changed.
    async fn announce_wanted(&self, peer: usize) -> Result<()> {
        let change = self.with(|state| {
            let peer = &mut state.peers[peer];
            let wanted = peer.any.queue.len() as u64;
            (wanted != peer.any.told).then(|| {
                peer.any.told = wanted;
                (peer.ends.clone(), wanted)
            })
        })?;
        if let Some((ends, wanted)) = change {
            let channel = Channel::new(&self.fabric, &ends, 0);
            if !self.puts_in_order {
                // This put must not be overtaken by the previous value.
                self.fabric.flush(channel.peer()).await?;
            }
            channel.put_wanted(wanted).await?;
        }
        Ok(())
    }
}

/// A posted receive for a message of any index. If it is dropped, it takes no message.
#[must_use = "the message is there only when the receive is over"]
pub struct ReceivingAny<'a> {
    comm: &'a Communicator,
    peer: usize,
    ticket: u64,
    into: LocalSpan<u8>,
}

impl fmt::Debug for ReceivingAny<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReceivingAny({} bytes)", self.into.len())
    }
}

/// A channel from which a receive of any index may take message `n`.
struct Free {
    channel: usize,
    n: u64,
    /// The number of known messages in the sender's queue; `None` if its next one comes after
    /// message `n`.
    known: Option<u64>,
}

impl ReceivingAny<'_> {
    /// Waits until a message has arrived. If the future is dropped while a message is being
    /// fetched, that message is lost.
    ///
    /// # Errors
    /// As [`Receiving::wait`].
    pub async fn wait(self) -> Result<Received> {
        let id = self.comm.progressing(self.matched()).await?;
        let received = Receiving::of_offer(self.comm, id, &self.into)?.wait().await;
        let (comm, peer) = (self.comm, self.peer);
        drop(self);
        comm.announce_wanted(peer).await?;
        received
    }

    /// Waits until one of the sender's messages matches this receive.
    async fn matched(&self) -> Result<ChannelId> {
        loop {
            let (matched, changes) = self.comm.with(|state| (self.take(state), state.changes))?;
            if let Some(matched) = matched? {
                return Ok(matched);
            }
            let (ends, channels) = self.free_channels()?;
            if self.read_queues(&ends, &channels).await? {
                continue;
            }
            let channel = |free: &Free| Channel::new(&self.comm.fabric, &ends, free.channel);
            let flags = channels.iter().map(|free| channel(free).until_flag_or_queued(free.n, free.known));
            let flagged =
                async { if channels.is_empty() { core::future::pending().await } else { race_all(flags).await } };
            self.comm.or_changed(changes, flagged).await?;
        }
    }

    /// Returns the channels from which this receive may take the next message, if this receive is
    /// next.
    fn free_channels(&self) -> Result<(Ends, Vec<Free>)> {
        self.comm.with(|state| {
            let peer = &state.peers[self.peer];
            let first = peer.any.queue.front() == Some(&self.ticket);
            let channels = peer.channels.first(self.comm.layout.indices()).enumerate();
            let free = channels.filter(|(_, known)| first && !known.receiving && !known.abandoned);
            let free = free.map(|(channel, known)| Free { channel, n: known.received, known: known.reading.known() });
            (peer.ends.clone(), free.collect())
        })
    }

    /// Reads the sender's queues of these channels; returns whether there was a new message.
    async fn read_queues(&self, ends: &Ends, channels: &[Free]) -> Result<bool> {
        let mut found = false;
        for free in channels {
            let channel = Channel::new(&self.comm.fabric, ends, free.channel);
            if let Some(known) = free.known
                && channel.queued()?.after(known) > 0
            {
                self.comm.read_queue(ChannelId { peer: self.peer, channel: free.channel }, &channel).await?;
                found = true;
            }
        }
        Ok(found)
    }

    /// Takes an offered message that no other receive will take.
    fn take(&self, state: &mut State) -> Result<Option<ChannelId>> {
        let peer = &mut state.peers[self.peer];
        if peer.any.queue.front() != Some(&self.ticket) {
            return Ok(None);
        }
        for channel in 0..self.comm.layout.indices() {
            let known = &mut peer.channels[channel];
            if known.receiving || known.abandoned {
                continue;
            }
            let flag = Channel::new(&self.comm.fabric, &peer.ends, channel).flag(known.received)?;
            if flag.or_else(|| known.reading.record(known.received)).is_some_and(|flag| flag.kind.is_offer()) {
                known.receiving = true;
                return Ok(Some(ChannelId { peer: self.peer, channel }));
            }
        }
        Ok(None)
    }
}

impl Drop for ReceivingAny<'_> {
    fn drop(&mut self) {
        let _ = self.comm.with(|state| {
            state.peers[self.peer].any.queue.retain(|ticket| *ticket != self.ticket);
            state.changed();
        });
    }
}
