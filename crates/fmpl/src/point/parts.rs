//! Messages in memory of any layout: neither a contiguous slice nor a span of fabric memory is
//! required.

use super::{
    InParts, Received, Receiving, Sink, Source,
    receiving::{Post, Wait},
};
use crate::{
    Communicator, Result,
    area::Channel,
    state::{ChannelId, State},
};
use core::{fmt, future::Future, task::Context};
use rdma_fabric::{
    LocalSpan,
    fast_path::{FastPath, fast_path},
    provider::Boxed,
};

impl Communicator {
    /// Sends a message as [`Communicator::send`] does, from any memory.
    ///
    /// # Errors
    /// As [`Communicator::send`].
    #[inline(always)]
    pub fn send_from<'a>(
        &'a self,
        source: &'a mut dyn Source,
        to: usize,
        index: usize,
    ) -> impl Future<Output = Result<()>> + Send + use<'a> {
        fast_path(SendFrom { comm: self, source, to, index }, SendFrom::slow)
    }

    /// Receives a message into any memory. It may be shorter than the sink. A long one is
    /// transferred through two [registered buffers](crate::Options::window), unless the sink is a
    /// [span](Sink::span).
    ///
    /// If the future is dropped, the message is still received, but lost, once another message is
    /// received with this index.
    ///
    /// # Errors
    /// As [`Communicator::recv`]; [`crate::FmplError::Cut`].
    #[inline(always)]
    pub fn recv_into<'a>(
        &'a self,
        sink: &'a mut dyn Sink,
        from: usize,
        index: usize,
    ) -> impl Future<Output = Result<Received>> + Send + use<'a> {
        fast_path(ReceiveInto { comm: self, sink, from, index, begun: None }, ReceiveInto::slow)
    }

    /// Sends a message if its receive is posted, or is posted within a tenth of a microsecond, and
    /// memory is mapped; returns whether it was sent.
    #[inline(always)]
    pub fn send_at_once(&self, bytes: &[u8], to: usize, index: usize) -> bool {
        index < self.layout.indices() && self.send_now(bytes, to, index).is_some()
    }

    /// Sends a message from registered memory as [`Communicator::send_at_once`] does.
    pub fn send_span_at_once(&self, span: &LocalSpan<u8>, to: usize, index: usize) -> bool {
        index < self.layout.indices() && self.send_now(span, to, index).is_some()
    }

    /// Receives a message if it arrives within about a third of a microsecond. Until it has
    /// arrived, no other message can be received with this index.
    #[inline(always)]
    pub fn try_recv_into(&self, sink: &mut dyn Sink, from: usize, index: usize) -> RecvAttempt<'_> {
        let begun = match sink.span() {
            Some(into) => self.recv_whole_now(into, from, index),
            None => self
                .recv_now(sink, from, index)
                .or_else(|| if self.took_over_window() { self.recv_now(sink, from, index) } else { None }),
        };
        begun.unwrap_or(RecvAttempt::NotBegun)
    }

    fn recv_whole_now(&self, into: &LocalSpan<u8>, from: usize, index: usize) -> Option<RecvAttempt<'_>> {
        let mut wait = Wait::<false>(Post { comm: self, into, from, index }.at_once()?);
        Some(match wait.at_once() {
            Some(received) => RecvAttempt::Received(received),
            None => RecvAttempt::Begun(ReceivingInto(Begun::Whole(wait.0))),
        })
    }

    #[inline(always)]
    fn recv_now(&self, sink: &mut dyn Sink, from: usize, index: usize) -> Option<RecvAttempt<'_>> {
        if index >= self.layout.indices() {
            return None;
        }
        let mut state = self.enter().ok()?;
        let id = ChannelId { peer: state.place_of(from)?, channel: index };
        let State { peers, windows, .. } = &mut *state;
        let (window, peer) = (windows.last()?, &mut peers[id.peer]);
        if peer.slot.is_live() && !self.puts_in_order {
            return None;
        }
        let (known, channel) = (&mut peer.channels[id.channel], Channel::new(&self.fabric, &peer.ends, id.channel));
        let n = known.received;
        if known.receiving || known.abandoned || known.unseen || !channel.is_silent_now(n) {
            return None;
        }
        if let Some(target) = &known.target {
            // A receive often precedes a send.
            self.fabric.direct().expect_put_at(target, 0);
        }
        if !channel.put_header_now(n, window.record()) {
            return None;
        }
        (known.receiving, known.unseen) = (true, true);
        let arrived = (0..self.receive_polls).find_map(|_| channel.arrived_now(n));
        let half = window.half();
        if let Some(bytes) = arrived
            && bytes <= half.len().min(sink.bytes())
            && self.empty(half, bytes, sink, 0).is_ok()
        {
            state.received(id, true);
            return Some(RecvAttempt::Received(Received { from, index, bytes }));
        }
        let window = windows.pop()?;
        Some(RecvAttempt::Begun(ReceivingInto(Begun::InParts(InParts::new(self, id, window, true)))))
    }
}

/// The outcome of [`Communicator::try_recv_into`].
#[derive(Debug)]
pub enum RecvAttempt<'a> {
    /// The message.
    Received(Received),
    /// The receive is posted.
    Begun(ReceivingInto<'a>),
    /// Only [`Communicator::recv_into`] can receive the message.
    NotBegun,
}

/// A receive into any memory that is posted. If it is dropped, its message is still received, but
/// lost.
#[must_use = "the message is there only when the receive is over"]
pub struct ReceivingInto<'a>(Begun<'a>);

/// A receive whose header is posted.
enum Begun<'a> {
    InParts(InParts<'a>),
    Whole(Receiving<'a>),
}

impl fmt::Debug for ReceivingInto<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReceivingInto")
    }
}

impl ReceivingInto<'_> {
    /// Waits until the message has arrived.
    ///
    /// # Errors
    /// As [`Communicator::recv_into`].
    pub async fn wait(self, sink: &mut dyn Sink) -> Result<Received> {
        match self.0 {
            Begun::InParts(begun) => begun.received(Some(sink)).await,
            Begun::Whole(receiving) => receiving.arrived_later::<false>().await,
        }
    }
}

/// A call of [`Communicator::send_from`].
struct SendFrom<'a> {
    comm: &'a Communicator,
    source: &'a mut dyn Source,
    to: usize,
    index: usize,
}

impl FastPath for SendFrom<'_> {
    type Out = Result<()>;
    type Stage = Self;

    #[inline(always)]
    fn fast(mut self, _: &mut Context<'_>) -> Result<Result<()>, Self> {
        self.at_once().map(Ok).ok_or(self)
    }
}

impl<'a> SendFrom<'a> {
    #[inline(always)]
    fn at_once(&mut self) -> Option<()> {
        let bytes = self.source.bytes();
        if self.index >= self.comm.layout.indices() {
            return None;
        }
        if let Some(span) = self.source.span() {
            return self.comm.send_now(span, self.to, self.index);
        }
        let chunk = if bytes == 0 { &[] } else { self.source.chunk(0, bytes) };
        if chunk.len() < bytes {
            return None;
        }
        self.comm.send_now(chunk, self.to, self.index)
    }

    fn slow(self) -> Boxed<'a, Result<()>> {
        match self.comm.channel_of(self.index) {
            Ok(channel) => Box::pin(self.comm.send_source(self.source, self.to, channel)),
            Err(error) => Box::pin(core::future::ready(Err(error))),
        }
    }
}

/// A call of [`Communicator::recv_into`].
struct ReceiveInto<'a> {
    comm: &'a Communicator,
    sink: &'a mut dyn Sink,
    from: usize,
    index: usize,
    begun: Option<ReceivingInto<'a>>,
}

impl FastPath for ReceiveInto<'_> {
    type Out = Result<Received>;
    type Stage = Self;

    #[inline(always)]
    fn fast(mut self, _: &mut Context<'_>) -> Result<Result<Received>, Self> {
        self.at_once().map(Ok).ok_or(self)
    }
}

impl<'a> ReceiveInto<'a> {
    #[inline(always)]
    fn at_once(&mut self) -> Option<Received> {
        match self.comm.try_recv_into(self.sink, self.from, self.index) {
            RecvAttempt::Received(received) => return Some(received),
            RecvAttempt::Begun(begun) => self.begun = Some(begun),
            RecvAttempt::NotBegun => {}
        }
        None
    }

    fn slow(self) -> Boxed<'a, Result<Received>> {
        let ReceiveInto { comm, sink, from, index, begun } = self;
        match begun {
            Some(begun) => Box::pin(begun.wait(sink)),
            None => Box::pin(async move {
                let channel = comm.channel_of(index)?;
                match sink.span().cloned() {
                    Some(span) => comm.post_later(&span, from, index).await?.arrived_later::<false>().await,
                    None => comm.recv_into_later(sink, from, channel).await,
                }
            }),
        }
    }
}
