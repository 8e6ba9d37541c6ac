//! Messages for receivers that do not specify their sender.

use super::immediate::{RecvAny, SendAny};
use crate::{
    Communicator, FmplError, Received, Receiving, Result,
    area::{Channel, Layout},
    cost,
    state::ChannelId,
};
use core::future::Future;
use rdma_fabric::{FabricError, LocalSpan, Pod, fast_path::fast_path};

impl Communicator {
    /// Sends a message to a receive from any sender (`fmpl_send_any`); such a receive does not
    /// match messages of [`Communicator::send`]. The message is copied; one of up to 16 bytes travels in its offer,
    /// so the receiver needs no transfer. With a
    /// [spool](crate::Options::spool), the send completes when the spool has room for the message;
    /// without one, or if the message is longer than the spool, when the message has been received.
    ///
    /// # Errors
    /// As [`Communicator::send`]; the indices are [those for unknown
    /// senders](crate::Options::any_indices).
    #[inline(always)]
    pub fn send_any<'a, T: Pod>(
        &'a self,
        source: &'a [T],
        to: usize,
        index: usize,
    ) -> impl Future<Output = Result<()>> + use<'a, T> {
        fast_path(SendAny { comm: self, bytes: bytemuck::cast_slice(source), to, index }, SendAny::slow)
    }

    pub(super) async fn send_any_later(&self, bytes: &[u8], to: usize, index: usize) -> Result<()> {
        let channel = self.any_channel_of(index)?;
        let id = ChannelId { peer: self.met(to).await?, channel };
        self.send_offered(bytes, id, to).await
    }

    fn any_channel_of(&self, index: usize) -> Result<usize> {
        let indices = self.layout.any_indices();
        if index < indices {
            Ok(self.layout.any_channel(index))
        } else {
            Err(FmplError::NoSuchIndex { index, indices })
        }
    }

    /// Receives a message that any member sends to this index with [`Communicator::send_any`]
    /// (`fmpl_recv_any`). Messages of one sender arrive in the order sent; senders are served in
    /// turn. If the future is dropped while a message is being fetched, that message is lost.
    ///
    /// The receive may wait for any member, so the loss of each is an error, until it is
    /// [acknowledged](Communicator::acknowledge_losses).
    ///
    /// # Errors
    /// [`FmplError::NoSuchIndex`], [`FmplError::TooLong`], [`FmplError::NoneLeft`], [`FmplError::Fabric`].
    /// [`FmplError::Cut`] if the sender has dropped its communicator together with the message, which is
    /// reported once.
    #[inline(always)]
    pub fn recv_any<'a: 'b, 'b, T: Pod>(
        &'a self,
        into: &'b LocalSpan<T>,
        index: usize,
    ) -> impl Future<Output = Result<Received>> + use<'a, 'b, T> {
        fast_path(RecvAny { comm: self, into, index }, RecvAny::slow)
    }

    pub(super) async fn recv_any_later(&self, into: LocalSpan<u8>, index: usize) -> Result<Received> {
        let channel = self.any_channel_of(index)?;
        let me = self.memory.member(self.me())?;
        let doorbell = self.fabric.local_word::<u64>(self.memory.at(me, Layout::DOORBELL as u64)?)?;
        self.find_senders()?;
        self.fabric.charge(cost::INIT).await;
        let living = self.living()?;
        loop {
            let rung = self.fabric.load(&doorbell)?;
            if let Some(id) = self.offered(channel).await? {
                let received = Receiving::of_offer(self, id, &into)?.arrived().await;
                return self.unless_departed(id, received).map(|received| Received { index, ..received });
            }
            let again = self.fabric.wait_until(&doorbell, living.deps(), |word| word != rung);
            self.progressing(again).await?;
        }
    }

    /// Removes a message whose sender has dropped it together with its communicator. The loss is
    /// reported once; afterwards it no longer blocks the messages of other senders.
    fn unless_departed(&self, id: ChannelId, received: Result<Received>) -> Result<Received> {
        let Err(FmplError::Fabric(FabricError::StaleRegion { rank, .. })) = received else { return received };
        self.with(|state| {
            let (from, index, peer) =
                (state.peers[id.peer].member, state.index_of(id.channel), &mut state.peers[id.peer]);
            if peer.ends.there.rank() != rank {
                return received;
            }
            let known = &mut peer.channels[id.channel];
            let n = known.received;
            let flag = Channel::new(&self.fabric, &peer.ends, id.channel).flag(n)?.or_else(|| known.reading.record(n));
            known.reading.take(n);
            (known.received, known.abandoned) = (n + 1, false);
            state.changed();
            Err(FmplError::Cut { from, index, missing: flag.map_or(0, |flag| flag.bytes) })
        })?
    }

    /// Takes a message offered in a channel, from the sender whose turn is next.
    async fn offered(&self, channel: usize) -> Result<Option<ChannelId>> {
        let (areas, first) = (self.layout.peers(), self.with(|state| state.turn)?);
        for probe in 0..areas {
            let area = (first + probe) % areas;
            let Some(member) = self.user_of(area)? else { continue };
            // A member that has never sent anything need not be contacted.
            if self.layout.is_by_number() && !self.has_offered(area, channel)? {
                continue;
            }
            if self.with(|state| state.lost.contains(member))? {
                continue;
            }
            let id = ChannelId { peer: self.met(member).await?, channel };
            let ends = self.with(|state| state.peers[id.peer].ends.clone())?;
            self.read_queue(id, &Channel::new(&self.fabric, &ends, channel)).await?;
            let taken = self.with(|state| {
                let peer = &mut state.peers[id.peer];
                let known = &mut peer.channels[channel];
                let flag = Channel::new(&self.fabric, &peer.ends, channel).flag(known.received)?;
                let flag = flag.or_else(|| known.reading.record(known.received));
                if known.receiving || flag.is_none_or(|flag| !flag.kind.is_offer()) {
                    return Ok::<_, FmplError>(None);
                }
                known.receiving = true;
                state.turn = area + 1;
                Ok(Some(id))
            })??;
            if taken.is_some() {
                return Ok(taken);
            }
        }
        Ok(None)
    }

    /// Returns the peer that uses an area of this member.
    fn user_of(&self, area: usize) -> Result<Option<usize>> {
        if self.layout.is_by_number() {
            return Ok(Some(area));
        }
        let me = self.memory.member(self.me())?;
        let owner = self.fabric.local_word::<u64>(self.memory.at(me, self.layout.owner(area) as u64)?)?;
        let key = self.fabric.load(&owner)?;
        Ok((1..=self.len() as u64).contains(&key).then(|| key as usize - 1))
    }

    /// Returns whether any message has ever been offered in a channel of an area of this member.
    fn has_offered(&self, area: usize, channel: usize) -> Result<bool> {
        let me = self.memory.member(self.me())?;
        let at = self.layout.area(area) + Channel::first_flag(channel);
        let word = self.fabric.local_word::<u64>(self.memory.at(me, at as u64)?)?;
        Ok(self.fabric.load(&word)? != 0)
    }
}
