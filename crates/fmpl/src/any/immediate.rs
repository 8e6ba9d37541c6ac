//! Messages to receives from any sender that complete in the call that starts them: short ones, which
//! travel in their offers.

use crate::{
    Communicator, Received, Result,
    area::{Channel, INLINE, Layout, OfferNow, Record, Taken},
    state::{ChannelId, Peer, State},
};
use core::task::Context;
use rdma_fabric::{LocalSpan, Pod, fast_path::FastPath, provider::Boxed};

/// This member's memory from its doorbell to the owners of its areas.
#[derive(Debug)]
pub(crate) struct Senders(LocalSpan<u64>);

impl Communicator {
    /// Resolves the memory in which this member finds senders, unless areas have no owners.
    pub(super) fn find_senders(&self) -> Result<()> {
        if self.layout.is_by_number() || self.with(|state| state.senders.is_some())? {
            return Ok(());
        }
        let head = self.memory.at(self.memory.member(self.me())?, 0)?;
        let senders = Senders(self.fabric.local_span(head, self.layout.owner(self.layout.peers()) / 8)?);
        self.with(|state| state.senders = Some(senders))
    }
}

/// A short message that waits for a receive from any sender.
struct ShortOffer {
    area: usize,
    peer: usize,
    n: u64,
    record: Record,
    body: [u8; INLINE],
}

impl State {
    /// Polls for a short message from the sender whose turn is next; `None` if the other path has to
    /// receive, or none arrives.
    #[inline(always)]
    fn poll_senders(&self, comm: &Communicator, channel: usize) -> Option<ShortOffer> {
        let Senders(head) = self.senders.as_ref()?;
        let direct = comm.fabric.direct();
        let mut seen = None;
        for _ in 0..comm.receive_polls {
            let [rung] = direct.load_words_at(head, Layout::DOORBELL)?;
            if seen != Some(rung) {
                seen = Some(rung);
                if let Some(offer) = self.short_offer(comm, head, channel)? {
                    return Some(offer);
                }
            }
        }
        None
    }

    /// Checks all areas in turn; the outer `None` leaves that to the other path.
    #[inline(always)]
    fn short_offer(&self, comm: &Communicator, head: &LocalSpan<u64>, channel: usize) -> Option<Option<ShortOffer>> {
        let areas = comm.layout.peers();
        for probe in self.turn..self.turn + areas {
            let area = if probe < areas { probe } else { probe - areas };
            let [owner] = comm.fabric.direct().load_words_at(head, comm.layout.owner(area))?;
            if owner == 0 {
                continue;
            }
            let peer = self.place_of(owner as usize - 1)?;
            let Peer { ends, channels, .. } = &self.peers[peer];
            let (known, channel) = (&channels[channel], Channel::new(&comm.fabric, ends, channel));
            let n = known.received;
            match channel.offer_now(n)? {
                _ if known.receiving => {}
                OfferNow::NotInFlag(queued) if !known.reading.may_hold(n, queued) => {}
                OfferNow::InFlag(record) if !known.abandoned => {
                    return Some(Some(ShortOffer { area, peer, n, record, body: record.body()? }));
                }
                _ => return None,
            }
        }
        Some(None)
    }
}

/// A call of [`Communicator::send_any`].
pub(super) struct SendAny<'a> {
    pub(super) comm: &'a Communicator,
    pub(super) bytes: &'a [u8],
    pub(super) to: usize,
    pub(super) index: usize,
}

impl FastPath for SendAny<'_> {
    type Out = Result<()>;
    type Stage = Self;

    #[inline(always)]
    fn fast(self, _: &mut Context<'_>) -> Result<Result<()>, Self> {
        self.at_once().map(Ok).ok_or(self)
    }
}

impl<'a> SendAny<'a> {
    #[inline(always)]
    fn at_once(&self) -> Option<()> {
        let comm = self.comm;
        if self.bytes.len() > INLINE || self.index >= comm.layout.any_indices() {
            return None;
        }
        let mut state = comm.enter().ok()?;
        let id = ChannelId { peer: state.place_of(self.to)?, channel: comm.layout.any_channel(self.index) };
        let n = state.offer_now(&comm.fabric, id, self.bytes)?;
        if !comm.puts_in_order {
            // A check after the doorbell must see the offer.
            comm.fabric.direct().barrier();
        }
        // If the doorbell can't be changed immediately, the same offer is put again.
        comm.fabric.direct().put_word(state.peers[id.peer].doorbell.as_ref()?, comm.rings(id.channel, n))?;
        state.hold(id, n, self.bytes.len(), None, None);
        Some(())
    }

    pub(super) fn slow(self) -> Boxed<'a, Result<()>> {
        Box::pin(self.comm.send_any_later(self.bytes, self.to, self.index))
    }
}

/// A call of [`Communicator::recv_any`].
pub(super) struct RecvAny<'a, 'b, T: Pod> {
    pub(super) comm: &'a Communicator,
    pub(super) into: &'b LocalSpan<T>,
    pub(super) index: usize,
}

impl<T: Pod> FastPath for RecvAny<'_, '_, T> {
    type Out = Result<Received>;
    type Stage = Self;

    #[inline(always)]
    fn fast(self, _: &mut Context<'_>) -> Result<Result<Received>, Self> {
        self.at_once().map(Ok).ok_or(self)
    }
}

impl<'a: 'b, 'b, T: Pod> RecvAny<'a, 'b, T> {
    #[inline(always)]
    fn at_once(&self) -> Option<Received> {
        let comm = self.comm;
        if self.index >= comm.layout.any_indices() {
            return None;
        }
        let mut state = comm.enter().ok()?;
        // Lost members are skipped, and pending sends are polled, by the other path.
        if !state.pending.is_empty() || !state.lost.is_empty() {
            return None;
        }
        let channel = comm.layout.any_channel(self.index);
        let ShortOffer { area, peer, n, record, body } = state.poll_senders(comm, channel)?;
        let Peer { member, ends, channels, .. } = &mut state.peers[peer];
        let (from, bytes, known) = (*member, record.bytes, &mut channels[channel]);
        // The other path refuses a message that is too long.
        let into = known.keep_buffer(self.into).ok()?.part(0..bytes).ok()?;
        comm.fabric.write(&*into, &body[..bytes]).ok()?;
        let taken = Taken { messages: n + 1, refused: known.refused };
        if !Channel::new(&comm.fabric, ends, channel).put_taken_now(taken) {
            return None;
        }
        if !comm.puts_in_order {
            // The next such word must not be overtaken by this one.
            comm.fabric.direct().barrier();
        }
        known.offers.add(n);
        state.turn = area + 1;
        state.received(ChannelId { peer, channel }, false);
        Some(Received { from, index: self.index, bytes })
    }

    pub(super) fn slow(self) -> Boxed<'b, Result<Received>> {
        match self.into.as_bytes() {
            Ok(into) => Box::pin(self.comm.recv_any_later(into, self.index)),
            Err(error) => Box::pin(core::future::ready(Err(error.into()))),
        }
    }
}
