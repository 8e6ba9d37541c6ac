//! Sends.

use super::{
    Doorbell, Source,
    deliver::{Body, FlagPlace, Message, deliver, refuse},
    matching::Receive,
    unsent::{At, Unsent},
};
use crate::{
    Communicator, FmplError, Result,
    area::{Channel, Ends, Kind, Layout, Record},
    cost,
    state::{ChannelId, State},
};
use core::{future::Future, task::Context, time::Duration};
use rdma_fabric::{
    Pod,
    fast_path::{FastPath, fast_path},
    join::{Either, race},
    provider::Boxed,
};

impl Communicator {
    /// Sends a message (`fmpl_send`). Completes when `source` may be reused: once its receive has
    /// been posted and the message has been sent, or, with a spool, at the latest after the
    /// time-out. If the future is dropped before it completes, the message is sent completely or
    /// not at all.
    ///
    /// # Errors
    /// [`FmplError::NoSuchMember`], [`FmplError::NoSuchIndex`], [`FmplError::IndexInUse`],
    /// [`FmplError::TooManyPeers`], with nothing sent; [`FmplError::TooLong`];
    /// [`FmplError::Fabric`].
    #[inline(always)]
    pub fn send<'a, T: Pod>(
        &'a self,
        source: &'a [T],
        to: usize,
        index: usize,
    ) -> impl Future<Output = Result<()>> + use<'a, T> {
        fast_path(Send { comm: self, bytes: bytemuck::cast_slice(source), to, index }, Send::slow)
    }

    /// Sends a message that could not be sent at the first poll.
    pub(crate) async fn send_source(&self, source: &mut dyn Source, to: usize, channel: usize) -> Result<()> {
        self.fabric.charge(cost::INIT).await;
        let id = ChannelId { peer: self.met(to).await?, channel };
        self.announced(id).await?;
        let (n, ends, time_out) = self.with(|state| {
            let n = state.begin_send(id)?;
            Ok::<_, FmplError>((n, state.peers[id.peer].ends.clone(), state.spool.time_out))
        })??;
        let mut unsent = Unsent { comm: self, id, at: At::Nowhere };
        match Box::pin(self.first_receive(&ends, id, n, time_out)).await? {
            Some(receive) => self.send_to(&mut unsent, &ends, n, receive, source).await,
            None => Box::pin(self.send_by_spool(&mut unsent, &ends, n, source, time_out.is_none())).await,
        }
    }

    /// Waits for a message's receive, for up to the spool's time-out, or until a receive of any index
    /// accepts offers.
    async fn first_receive(
        &self,
        ends: &Ends,
        id: ChannelId,
        n: u64,
        time_out: Option<Duration>,
    ) -> Result<Option<Receive>> {
        if let Some(receive) = self.with(|state| state.match_now(&self.fabric, id, n))?? {
            return Ok(Some(receive));
        }
        if time_out == Some(Duration::ZERO) {
            return Ok(None);
        }
        let beside = self.beside(id.peer, time_out.is_none())?;
        let waiting = self.progressing(Box::pin(self.until_matched(ends, id, n, beside)));
        match time_out {
            None if beside == 0 => waiting.await,
            None => Ok(None),
            Some(time_out) => {
                let at = self.fabric.now() + time_out;
                Ok(self.fabric.before(at, waiting).await.transpose()?.flatten())
            }
        }
    }

    /// Returns [`State::beside`] after a sweep, if one is due.
    fn beside(&self, peer: usize, synchronous: bool) -> Result<u64> {
        self.with(|state| {
            state.sweep_if_due(&self.fabric)?;
            Ok(state.beside(peer, synchronous))
        })?
    }

    /// Puts a message into the buffer of a posted receive.
    async fn send_to(
        &self,
        unsent: &mut Unsent<'_>,
        ends: &Ends,
        n: u64,
        receive: Receive,
        source: &mut dyn Source,
    ) -> Result<()> {
        let (id, len) = (unsent.id, source.bytes());
        let any = match receive {
            Receive::OfIndex(header) => return self.send_into(unsent, ends, n, header, source).await,
            Receive::OfAny(any) => any,
        };
        let (fabric, flag) = (&self.fabric, FlagPlace::Slot { index: id.channel });
        let message = Message { fabric, ends, flag, n: any.n };
        if len > any.record.bytes {
            refuse(message, len).await?;
            return Err(self.too_long(id, len, any.record.bytes)?);
        }
        deliver(message, any.record, None, Body::Part { source, at: 0, len }).await.map(drop)
    }

    /// Returns the error for a message that is longer than its receive.
    fn too_long(&self, id: ChannelId, bytes: usize, room: usize) -> Result<FmplError> {
        let to = self.with(|state| state.peers[id.peer].member)?;
        Ok(FmplError::TooLong { from: self.me(), to, index: id.channel, bytes, room })
    }

    /// Puts a message into its receive buffer: as a whole, or in parts if the receiver takes it in
    /// parts.
    async fn send_into(
        &self,
        unsent: &mut Unsent<'_>,
        ends: &Ends,
        mut n: u64,
        mut header: Record,
        source: &mut dyn Source,
    ) -> Result<()> {
        let (id, peer, mut at) = (unsent.id, ends.there.rank(), 0);
        let channel = Channel::new(&self.fabric, ends, id.channel);
        loop {
            let rest = source.bytes() - at;
            let in_parts = header.kind == Kind::Window && header.bytes > 0;
            let len = if in_parts { rest.min(header.bytes) } else { rest };
            unsent.at = At::Receiver { n, after: rest - len };
            let message = Message { fabric: &self.fabric, ends, flag: FlagPlace::Channel(id.channel), n };
            if len > header.bytes || !matches!(header.kind, Kind::Posted | Kind::Window) {
                refuse(message, rest).await?;
                return Err(self.too_long(id, source.bytes(), header.bytes)?);
            }
            let kept = self.with(|state| state.channel(id).target_at(header.at(peer), header.bytes).cloned())?;
            let delivered = deliver(message, header, kept, Body::Part { source: &mut *source, at, len }).await;
            // After an error, the receiver is notified that the message ends here.
            let after = if delivered.is_ok() { rest - len } else { 0 };
            unsent.at = At::Receiver { n, after };
            let target = delivered?;
            self.with(|state| state.channel(id).target = Some(target))?;
            if after == 0 {
                return Ok(());
            }
            (at, n) = (at + len, n + 1);
            self.with(|state| state.channel(id).count_direct())?;
            unsent.at = At::Between { n, rest: after };
            header = self.progressing(channel.until_header(n)).await?;
        }
    }

    /// Spools a message; until there is room, its receive may still be posted. One of a synchronous
    /// send is offered only to a receive of any index that waits for it.
    async fn send_by_spool(
        &self,
        unsent: &mut Unsent<'_>,
        ends: &Ends,
        n: u64,
        source: &mut dyn Source,
        synchronous: bool,
    ) -> Result<()> {
        let id = unsent.id;
        let channel = Channel::new(&self.fabric, ends, id.channel);
        self.not_too_far(channel, id, n).await?;
        loop {
            let mut beside = 0;
            let kept = self.spool(source.bytes(), true, |state| {
                // The state is read once: the waits below are for changes since then.
                state.sweep_if_due(&self.fabric)?;
                beside = state.beside(id.peer, synchronous);
                let wanted = channel.wanted()? > beside;
                if synchronous && !wanted {
                    return Ok(None);
                }
                state.spool(&self.fabric, id, (n, &mut *source), wanted, None)
            })?;
            if kept.is_some() {
                unsent.spooled();
                self.fabric.charge_bytes(cost::COPY, source.bytes()).await;
                return self.announced(id).await;
            }
            match self.progressing(race(Box::pin(self.until_matched(ends, id, n, beside)), self.one_fetched())).await {
                Either::First(Ok(Some(receive))) => return self.send_to(unsent, ends, n, receive, source).await,
                Either::First(wanted) => drop(wanted?),
                Either::Second(fetched) => fetched?,
            }
        }
    }

    /// Returns the doorbell's value for message `n` of a channel: unique among all members and all
    /// messages of a member.
    #[inline(always)]
    pub(crate) fn rings(&self, channel: usize, n: u64) -> u64 {
        let number = (n + 1) * self.layout.channels() as u64 + channel as u64;
        number * self.len() as u64 + self.me() as u64
    }

    /// Sends a message that its receiver will fetch.
    pub(crate) async fn send_offered(&self, bytes: &[u8], id: ChannelId, to: usize) -> Result<()> {
        self.fabric.charge(cost::INIT).await;
        let word = self.fabric.remote_word(self.memory.at(self.rank(to)?, Layout::DOORBELL as u64)?)?;
        self.with(|state| state.peers[id.peer].doorbell = Some(word.clone()))?;
        self.announced(id).await?;
        let (n, ends, time_out) = self.with(|state| {
            let n = state.begin_send(id)?;
            Ok::<_, FmplError>((n, state.peers[id.peer].ends.clone(), state.spool.time_out))
        })??;
        let mut unsent = Unsent { comm: self, id, at: At::Nowhere };
        let doorbell = || Doorbell { word: word.clone(), value: self.rings(id.channel, n) };
        // A message longer than the spool waits outside it, like a message that is sent without a
        // spool.
        let waits = time_out.is_none() || self.with(|state| !state.spool.may_hold(bytes.len()))?;
        let spool = |state: &mut State| {
            state.sweep_if_due(&self.fabric)?;
            state.spool(&self.fabric, id, (n, &mut &*bytes), waits, Some(doorbell()))
        };
        while self.spool(bytes.len(), false, spool)?.is_none() {
            self.progressing(self.one_fetched()).await?;
        }
        unsent.spooled();
        self.fabric.charge_bytes(cost::COPY, bytes.len()).await;
        self.announced(id).await?;
        if waits {
            let channel = Channel::new(&self.fabric, &ends, id.channel);
            self.progressing(channel.until_taken(n + 1)).await?;
            if self.was_refused(id, n)? {
                let index = self.with(|state| state.index_of(id.channel))?;
                return Err(FmplError::TooLong { from: self.me(), to, index, bytes: bytes.len(), room: 0 });
            }
        }
        Ok(())
    }
}

/// A call of [`Communicator::send`].
struct Send<'a> {
    comm: &'a Communicator,
    bytes: &'a [u8],
    to: usize,
    index: usize,
}

impl FastPath for Send<'_> {
    type Out = Result<()>;
    type Stage = Self;

    #[inline(always)]
    fn fast(self, _: &mut Context<'_>) -> Result<Result<()>, Self> {
        self.at_once().map(Ok).ok_or(self)
    }
}

impl<'a> Send<'a> {
    #[inline(always)]
    fn at_once(&self) -> Option<()> {
        if self.index >= self.comm.layout.indices() {
            return None;
        }
        self.comm.send_now(self.bytes, self.to, self.index)
    }

    fn slow(mut self) -> Boxed<'a, Result<()>> {
        match self.comm.channel_of(self.index) {
            Ok(channel) => Box::pin(async move { self.comm.send_source(&mut self.bytes, self.to, channel).await }),
            Err(error) => Box::pin(core::future::ready(Err(error))),
        }
    }
}
