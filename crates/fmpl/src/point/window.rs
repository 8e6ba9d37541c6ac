//! Receives into any memory: long messages are transferred through a window, part by part.
//!
//! A window has two buffers in the receiver's registered memory. While the receiver empties one,
//! the sender fills the other. Each part is a separate message in the channel, so a part's header is
//! the permission to send it.

use super::{Received, Sink};
use crate::{
    Communicator, FmplError, Result,
    area::{Channel, Ends, Kind, Record},
    cost,
    spool::no_memory,
    state::{ChannelId, State},
};
use rdma_fabric::{LocalSpan, Region};

/// Two buffers through which a message is transferred.
#[derive(Debug)]
pub(crate) struct Window {
    buffers: Box<Buffers>,
    /// The buffer for the next part.
    turn: usize,
}

#[derive(Debug)]
struct Buffers {
    _region: Region,
    halves: [LocalSpan<u8>; 2],
}

impl Window {
    fn new(comm: &Communicator) -> Result<Self> {
        let bytes = comm.window;
        let region = comm.fabric.alloc(2 * bytes)?;
        let half = |n: usize| region.span(&comm.fabric, n * bytes, bytes);
        let halves = [half(0)?, half(1)?];
        Ok(Window { buffers: Box::new(Buffers { _region: region, halves }), turn: 0 })
    }

    /// Returns the buffer for the next part.
    #[inline(always)]
    pub(super) fn half(&self) -> &LocalSpan<u8> {
        &self.buffers.halves[self.turn]
    }

    #[inline(always)]
    pub(super) fn record(&self) -> Record {
        Record::of_span(Kind::Window, self.half())
    }
}

/// The windows of a communicator.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    idle: Vec<Window>,
    /// The number of windows held by receives, or by channels whose receive was dropped.
    in_use: usize,
}

impl Windows {
    /// Returns the window that [`Windows::pop`] would return.
    #[inline(always)]
    pub(super) fn last(&self) -> Option<&Window> {
        self.idle.last()
    }

    pub(super) fn pop(&mut self) -> Option<Window> {
        let window = self.idle.pop()?;
        self.in_use += 1;
        Some(window)
    }

    /// Takes back a window that is no longer in use.
    fn push(&mut self, window: Window) {
        self.in_use -= 1;
        self.idle.push(window);
    }

    pub(crate) fn is_any_in_use(&self) -> bool {
        self.in_use > 0
    }

    pub(crate) fn take_idle(&mut self) -> Vec<Window> {
        core::mem::take(&mut self.idle)
    }

    pub(crate) fn add(&mut self, idle: Vec<Window>) {
        self.idle.extend(idle);
    }
}

impl Communicator {
    /// Takes over a window of another communicator of the rank, if this one has none and may have
    /// one.
    #[cold]
    pub(super) fn took_over_window(&self) -> bool {
        let lacks = self.with(|state| state.windows.last().is_none() && !state.keeps_buffers);
        lacks.unwrap_or(false)
            && self.keep_buffers().is_ok()
            && self.with(|state| state.windows.last().is_some()).unwrap_or(false)
    }

    /// Counts a window in use.
    fn new_window(&self, window: Window) -> Result<Window> {
        self.with(|state| state.windows.in_use += 1)?;
        Ok(window)
    }

    pub(super) async fn recv_into_later(&self, sink: &mut dyn Sink, from: usize, channel: usize) -> Result<Received> {
        self.fabric.charge(cost::INIT).await;
        let id = ChannelId { peer: self.met(from).await?, channel };
        self.forget_abandoned(id).await?;
        let mut window = self.with(|state| state.windows.pop())?;
        if window.is_none() {
            self.keep_buffers()?;
            window = self.with(|state| state.windows.pop())?;
        }
        let window = match window {
            Some(window) => window,
            None => match Window::new(self) {
                Err(error) if no_memory(&error).is_some() => {
                    self.siblings.trim(&self.fabric);
                    self.new_window(Window::new(self)?)?
                }
                window => self.new_window(window?)?,
            },
        };
        let begun = self.with(|state| state.begin_receive(id));
        let window = match begun {
            Ok(Ok(_)) => window,
            refused => {
                self.with(|state| state.windows.push(window))?;
                return Err(refused.and_then(|begun| begun).expect_err("a receive that was refused"));
            }
        };
        InParts::new(self, id, window, false).received(Some(sink)).await
    }
}

/// A receive through a window that has not completed. If the future is dropped, the channel keeps the
/// window until the message has arrived.
pub(crate) struct InParts<'a> {
    comm: &'a Communicator,
    id: ChannelId,
    /// Whether the header of its first part is posted.
    posted: bool,
    /// `None` when the receive has completed.
    window: Option<Window>,
}

/// The progress of a message.
struct Progress {
    ends: Ends,
    from: usize,
    n: u64,
    at: usize,
    /// Its length, once known.
    bytes: Option<usize>,
}

impl<'a> InParts<'a> {
    /// The only incomplete receive of a channel.
    pub(crate) fn new(comm: &'a Communicator, id: ChannelId, window: Window, posted: bool) -> Self {
        InParts { comm, id, posted, window: Some(window) }
    }

    /// Receives a message, or, if there is no sink, its rest, which is discarded.
    pub(crate) async fn received(mut self, mut sink: Option<&mut dyn Sink>) -> Result<Received> {
        let (comm, id) = (self.comm, self.id);
        let (ends, from, n) = comm.with(|state| {
            let peer = &state.peers[id.peer];
            (peer.ends.clone(), peer.member, peer.channels[id.channel].received)
        })?;
        let mut progress = Progress { ends, from, n, at: 0, bytes: None };
        let room = sink.as_ref().map_or(0, |sink| sink.bytes());
        // The header of a dropped receive may already have been posted, and this one must not
        // overtake it.
        let posted_once = sink.is_some();
        if !self.posted {
            self.post(&progress).await?;
        }
        let direct = loop {
            match self.part(&mut progress, &mut sink, room).await? {
                Part::Last { direct } => break direct,
                Part::More => {}
            }
        };
        comm.with(|state| self.over(state, direct && posted_once))?;
        let (bytes, index) = (progress.bytes.unwrap_or(0), id.channel);
        if bytes <= room {
            return Ok(Received { from, index, bytes });
        }
        Err(FmplError::TooLong { from, to: comm.me(), index, bytes, room })
    }

    async fn post(&self, progress: &Progress) -> Result<()> {
        let Some(window) = &self.window else { return Ok(()) };
        self.comm.post_header(self.id, &progress.ends, progress.n, window.record()).await
    }

    /// Takes the next part of a message; posts the receive of the part after it before emptying the
    /// buffer.
    async fn part(&mut self, progress: &mut Progress, sink: &mut Option<&mut dyn Sink>, room: usize) -> Result<Part> {
        let (comm, id) = (self.comm, self.id);
        let ends = progress.ends.clone();
        let channel = Channel::new(&comm.fabric, &ends, id.channel);
        let (n, at) = (progress.n, progress.at);
        let flag = comm.until_reported(id, &channel, n).await?;
        let bytes = *progress.bytes.get_or_insert(flag.bytes);
        let fits = bytes <= room;
        let Some(window) = &mut self.window else { unreachable!("a receive that is not over") };
        match flag.kind {
            Kind::Arrived if flag.bytes == bytes - at => {
                let half = window.half().clone();
                let len = flag.bytes.min(half.len());
                let is_last = len == flag.bytes;
                if !is_last {
                    window.turn ^= 1;
                    comm.with(|state| state.received_part(id, sink.is_some()))?;
                    (progress.n, progress.at) = (n + 1, at + len);
                    self.post(progress).await?;
                }
                if let Some(sink) = sink.as_deref_mut().filter(|_| fits) {
                    comm.empty(&half, len, sink, at)?;
                }
                Ok(if is_last { Part::Last { direct: true } } else { Part::More })
            }
            kind if kind.is_offer() && at == 0 => {
                if let Some(sink) = sink.as_deref_mut().filter(|_| fits) {
                    comm.fetch_into(&channel, flag, sink).await?;
                }
                comm.take_offer(id, &channel, n, fits).await?;
                Ok(Part::Last { direct: false })
            }
            _ => {
                let missing = bytes - at.min(bytes);
                comm.with(|state| self.over(state, sink.is_some()))?;
                Err(FmplError::Cut { from: progress.from, index: id.channel, missing })
            }
        }
    }

    fn over(&mut self, state: &mut State, direct: bool) {
        if let Some(mut window) = self.window.take() {
            window.turn = 0;
            state.windows.push(window);
        }
        state.received(self.id, direct);
    }
}

/// The outcome of receiving a part.
enum Part {
    More,
    /// `direct` states whether it was put into a buffer of this member.
    Last {
        direct: bool,
    },
}

impl Drop for InParts<'_> {
    fn drop(&mut self) {
        let Some(window) = self.window.take() else { return };
        let _ = self.comm.with(|state| {
            let channel = state.channel(self.id);
            (channel.receiving, channel.abandoned, channel.window) = (false, true, Some(window));
            state.changed();
        });
    }
}

impl Communicator {
    /// Passes the contents of a buffer to a sink.
    #[inline(always)]
    pub(crate) fn empty(&self, half: &LocalSpan<u8>, len: usize, sink: &mut dyn Sink, at: usize) -> Result<()> {
        let mut done = 0;
        while done < len {
            let chunk = sink.chunk(at + done, len - done);
            let bytes = chunk.len();
            self.fabric.read(&*half.part(done..done + bytes)?, chunk)?;
            sink.filled(at + done, bytes);
            done += bytes;
        }
        Ok(())
    }
}
