//! Receives.

use super::Received;
use crate::{
    Communicator, FmplError, Result,
    area::{Channel, Ends, Kind, Record},
    cost,
    state::ChannelId,
};
use core::{fmt, future::Future, task::Context};
use rdma_fabric::{
    Caps, LocalSpan, Pod,
    fast_path::{FastPath, fast_path},
    provider::Boxed,
};

impl Communicator {
    /// Receives a message (`fmpl_recv`). It may be shorter than `into`.
    ///
    /// # Errors
    /// As [`Communicator::irecv`] and [`Receiving::wait`].
    pub async fn recv<T: Pod>(&self, into: &LocalSpan<T>, from: usize, index: usize) -> Result<Received> {
        self.irecv(into, from, index).await?.arrived().await
    }

    /// Posts a receive (`fmpl_irecv`): from now on the message is put into the buffer as soon as it
    /// is sent, without any call of this rank. Completes when the header is posted.
    ///
    /// # Errors
    /// [`FmplError::NoSuchMember`], [`FmplError::NoSuchIndex`], [`FmplError::IndexInUse`],
    /// [`FmplError::TooManyPeers`], with nothing posted; [`FmplError::Fabric`].
    #[inline(always)]
    pub fn irecv<'a: 'b, 'b, T: Pod>(
        &'a self,
        into: &'b LocalSpan<T>,
        from: usize,
        index: usize,
    ) -> impl Future<Output = Result<Receiving<'a>>> + use<'a, 'b, T> {
        fast_path(Post { comm: self, into, from, index }, Post::slow)
    }

    pub(super) async fn post_later<T: Pod>(
        &self,
        into: &LocalSpan<T>,
        from: usize,
        index: usize,
    ) -> Result<Receiving<'_>> {
        let channel = self.channel_of(index)?;
        self.fabric.charge(cost::INIT).await;
        let id = ChannelId { peer: self.met(from).await?, channel };
        self.forget_abandoned(id).await?;
        let (n, ends, header) = self.with(|state| {
            let n = state.begin_receive(id)?;
            let known = state.channel(id);
            let header = known.keep_buffer(into).map(posted);
            known.receiving = header.is_ok();
            Ok::<_, FmplError>((n, state.peers[id.peer].ends.clone(), header?))
        })??;
        let receiving = Receiving::new(self, id);
        self.post_header(id, &ends, n, header).await?;
        Ok(receiving)
    }
}

/// The number of times that a wait polls for a message before it prepares for a longer wait.
pub(crate) const SPIN_LIMIT: u32 = 300;

/// Returns how often a member polls before it prepares for a longer wait: `limit` times, but once in
/// an oversubscribed job, where the message may come from a rank that needs this CPU.
pub(crate) fn spin_limit(caps: &Caps, limit: u32) -> u32 {
    if caps.oversubscribed { 1 } else { limit }
}

/// A header is posted at least once in this number of receives.
pub(crate) const HEADERS: u64 = 1 << 14;

pub(crate) fn posted(into: &LocalSpan<u8>) -> Record {
    Record::of_span(Kind::Posted, into)
}

/// A receive that is posted (`fmpl_irecv_wait` is [`Receiving::wait`]). If it is dropped, its
/// message is still received, but lost, and the memory may be written until another receive with
/// this index completes.
#[must_use = "the message is there only when the receive is over"]
pub struct Receiving<'a> {
    comm: &'a Communicator,
    /// The bits of the [`ChannelId`], or [`OVER`]. Two words are passed between functions in
    /// registers; more would go through memory, and stall until all earlier stores complete.
    channel: u64,
}

/// The message has arrived.
const OVER: u64 = u64::MAX;

impl fmt::Debug for Receiving<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Receiving(index {})", self.id().channel)
    }
}

impl<'a> Receiving<'a> {
    /// The only incomplete receive of a channel.
    #[inline(always)]
    pub(super) fn new(comm: &'a Communicator, id: ChannelId) -> Self {
        Receiving { comm, channel: id.to_bits() }
    }

    #[inline(always)]
    fn id(&self) -> ChannelId {
        ChannelId::of_bits(self.channel)
    }

    /// The receive of a message that was offered and taken.
    pub(crate) fn of_offer(comm: &'a Communicator, id: ChannelId, into: &LocalSpan<u8>) -> Result<Self> {
        comm.with(|state| state.channel(id).keep_buffer(into).map(drop))??;
        Ok(Receiving::new(comm, id))
    }

    /// Waits until the message has arrived.
    ///
    /// # Errors
    /// [`FmplError::TooLong`], [`FmplError::BufferGone`]: the message is lost.
    /// [`FmplError::Fabric`].
    #[inline(always)]
    pub fn wait(self) -> impl Future<Output = Result<Received>> + use<'a> {
        fast_path(Wait::<true>(self), Wait::slow)
    }

    /// Waits as part of the call that posted the receive.
    #[inline(always)]
    pub(crate) fn arrived(self) -> impl Future<Output = Result<Received>> + use<'a> {
        fast_path(Wait::<false>(self), Wait::slow)
    }

    pub(super) async fn arrived_later<const APART: bool>(mut self) -> Result<Received> {
        let (id, comm) = (self.id(), self.comm);
        let (ends, from, n): (Ends, usize, u64) = comm.with(|state| {
            let peer = &state.peers[id.peer];
            (peer.ends.clone(), peer.member, peer.channels[id.channel].received)
        })?;
        let channel = Channel::new(&comm.fabric, &ends, id.channel);
        let flag = comm.until_reported(id, &channel, n).await?;
        let (mut fits, mut room) = (flag.kind == Kind::Arrived, 0);
        if let Some(into) = comm.with(|state| state.channel(id).into.clone())? {
            room = into.len();
            if flag.kind.is_offer() {
                fits = comm.fetch(id, &channel, n, flag, &into).await?;
            }
        }
        comm.with(|state| state.received(id, !flag.kind.is_offer()))?;
        self.channel = OVER;
        if APART {
            comm.fabric.charge(cost::WAIT).await;
        }
        match flag.kind {
            _ if fits => Ok(Received { from, index: id.channel, bytes: flag.bytes }),
            Kind::NotThere => Err(FmplError::BufferGone { from, index: id.channel }),
            _ => {
                let (to, index) = (comm.me(), comm.with(|state| state.index_of(id.channel))?);
                Err(FmplError::TooLong { from, to, index, bytes: flag.bytes, room })
            }
        }
    }

    /// Returns whether the message has arrived, or waits to be fetched.
    ///
    /// # Errors
    /// [`FmplError::Fabric`].
    pub fn is_there(&self) -> Result<bool> {
        let ChannelId { peer, channel } = self.id();
        self.comm.with(|state| {
            let peer = &state.peers[peer];
            let (known, channel) = (&peer.channels[channel], Channel::new(&self.comm.fabric, &peer.ends, channel));
            Ok(channel.flag(known.received)?.is_some() || known.reading.may_hold(known.received, channel.queued()?))
        })?
    }
}

impl Drop for Receiving<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.channel != OVER {
            self.abandon();
        }
    }
}

impl Receiving<'_> {
    #[cold]
    fn abandon(&self) {
        let _ = self.comm.with(|state| {
            let channel = state.channel(self.id());
            (channel.receiving, channel.abandoned) = (false, true);
            state.changed();
        });
    }
}

/// A call of [`Communicator::irecv`].
pub(super) struct Post<'a, 'b, T: Pod> {
    pub(super) comm: &'a Communicator,
    pub(super) into: &'b LocalSpan<T>,
    pub(super) from: usize,
    pub(super) index: usize,
}

impl<'a, T: Pod> FastPath for Post<'a, '_, T> {
    type Out = Result<Receiving<'a>>;
    type Stage = Self;

    #[inline(always)]
    fn fast(self, _: &mut Context<'_>) -> Result<Result<Receiving<'a>>, Self> {
        self.at_once().map(Ok).ok_or(self)
    }
}

impl<'a: 'b, 'b, T: Pod> Post<'a, 'b, T> {
    #[inline(always)]
    pub(super) fn at_once(&self) -> Option<Receiving<'a>> {
        let comm = self.comm;
        let mut state = comm.enter().ok()?;
        let id = ChannelId { peer: state.place_of(self.from)?, channel: self.index };
        if id.channel >= comm.layout.indices() {
            return None;
        }
        let peer = &mut state.peers[id.peer];
        if peer.slot.is_live() && !comm.puts_in_order {
            return None;
        }
        let (known, channel) = (&mut peer.channels[id.channel], Channel::new(&comm.fabric, &peer.ends, id.channel));
        let n = known.received;
        if known.receiving || known.abandoned || known.unseen || !channel.is_silent_now(n) {
            return None;
        }
        if let Some(target) = &known.target {
            // A receive often precedes a send.
            comm.fabric.direct().expect_put_at(target, 0);
        }
        if !channel.put_header_now(n, posted(known.keep_buffer(self.into).ok()?)) {
            return None;
        }
        (known.receiving, known.unseen) = (true, true);
        Some(Receiving::new(comm, id))
    }

    fn slow(self) -> Boxed<'b, Result<Receiving<'a>>> {
        Box::pin(self.comm.post_later(self.into, self.from, self.index))
    }
}

/// A wait, apart from the call that posted the receive or as part of it.
pub(super) struct Wait<'a, const APART: bool>(pub(super) Receiving<'a>);

impl<const APART: bool> FastPath for Wait<'_, APART> {
    type Out = Result<Received>;
    type Stage = Self;

    #[inline(always)]
    fn fast(mut self, _: &mut Context<'_>) -> Result<Result<Received>, Self> {
        self.at_once().map(Ok).ok_or(self)
    }
}

impl<'a, const APART: bool> Wait<'a, APART> {
    #[inline(always)]
    pub(super) fn at_once(&mut self) -> Option<Received> {
        let (comm, id) = (self.0.comm, self.0.id());
        let mut state = comm.enter().ok()?;
        let peer = &state.peers[id.peer];
        let (channel, n) = (Channel::new(&comm.fabric, &peer.ends, id.channel), peer.channels[id.channel].received);
        let bytes = (0..comm.receive_polls).find_map(|_| channel.arrived_now(n))?;
        let from = peer.member;
        state.received(id, true);
        self.0.channel = OVER;
        Some(Received { from, index: id.channel, bytes })
    }

    fn slow(self) -> Boxed<'a, Result<Received>> {
        Box::pin(self.0.arrived_later::<APART>())
    }
}
