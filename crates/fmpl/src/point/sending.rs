//! Sends.

use super::{
    Bell, Pending,
    deliver::{Body, Message, deliver},
};
use crate::{
    Communicator, FmplError, Result,
    area::{Ends, Kind, Lane, Layout, Record},
    state::{LaneId, State},
};
use core::{fmt, time::Duration};
use rdma_fabric::{
    LocalSpan, Pod,
    join::{Either, race},
    provider::{Boxed, SHORT},
};

impl Communicator {
    /// Sends a message (`fmpl_send`). Ends when `source` may be used again: when its receive was
    /// posted and it has left, or, with a spool, at the latest after the time-out. If the future is
    /// dropped before it is over, the message is sent whole or not at all.
    ///
    /// # Errors
    /// [`FmplError::NoSuchMember`], [`FmplError::NoSuchIndex`], [`FmplError::IndexInUse`],
    /// [`FmplError::TooManyPeers`], and nothing is sent; [`FmplError::TooLong`];
    /// [`FmplError::Fabric`].
    #[inline]
    pub async fn send<T: Pod>(&self, source: &[T], to: usize, index: usize) -> Result<()> {
        let (bytes, lane) = (bytemuck::cast_slice(source), self.lane_of(index)?);
        match self.send_now(bytes, to, lane) {
            Some(()) => Ok(()),
            None => self.send_later(bytes, to, lane).await,
        }
    }

    /// Sends a short message whose receive is there, into a buffer that was used before.
    #[inline(always)]
    pub(crate) fn send_now(&self, bytes: &[u8], to: usize, lane: usize) -> Option<()> {
        if bytes.len() > SHORT {
            return None;
        }
        let mut state = self.enter().ok()?;
        let place = state.place_of(to)?;
        let peer = &mut state.peers[place];
        let (known, lane) = (&mut peer.lanes[lane], Lane::new(&self.fabric, &peer.ends, lane));
        let header = lane.header(known.sent).ok()??;
        let (at, target) = known.target.as_ref()?;
        if known.sending || header.kind != Kind::Posted || header.at(lane.peer()) != *at || target.len() < header.bytes
        {
            return None;
        }
        if header.bytes < bytes.len() {
            return None;
        }
        lane.expect_put();
        self.fabric.put_slice_at(target, 0, bytes)?;
        if !self.puts_in_order {
            self.fabric.barrier();
        }
        // If the flag can't be put at once, the body is put once more.
        let word = Record::first_word(Kind::Arrived, bytes.len(), known.sent);
        if !lane.put_flag_now(known.sent, word) {
            return None;
        }
        known.count_direct();
        Some(())
    }

    #[cold]
    pub(crate) fn send_later<'a>(&'a self, bytes: &'a [u8], to: usize, lane: usize) -> Boxed<'a, Result<()>> {
        Box::pin(async move {
            let id = LaneId { peer: self.met(to).await?, lane };
            let (n, ends) = self.with(|state| {
                let n = state.begin_send(id)?;
                Ok::<_, FmplError>((n, state.peers[id.peer].ends.clone()))
            })??;
            let mut unsent = Unsent { comm: self, id, sent: false };
            match self.first_header(&ends, id, n).await? {
                Some(header) => self.send_into(&mut unsent, &ends, n, header, bytes).await,
                None => self.send_by_spool(&mut unsent, &ends, n, bytes).await,
            }
        })
    }

    /// Waits for the header of a message's receive, as long as the spool's time-out, or until a
    /// receive of any index takes what is offered.
    async fn first_header(&self, ends: &Ends, id: LaneId, n: u64) -> Result<Option<Record>> {
        let lane = Lane::new(&self.fabric, ends, id.lane);
        if let Some(header) = lane.header(n)? {
            return Ok(Some(header));
        }
        let beside = self.beside(id.peer)?;
        let waiting = self.progressing(lane.until_header_or_wanted(n, beside));
        match self.options.time_out {
            None if beside == 0 => waiting.await,
            None | Some(Duration::ZERO) => Ok(None),
            Some(time_out) => {
                let at = self.fabric.now() + time_out;
                Ok(self.fabric.before(at, waiting).await.transpose()?.flatten())
            }
        }
    }

    /// Returns how many messages wait for a peer beside the spool, as so many of its receives of any
    /// index were posted.
    fn beside(&self, peer: usize) -> Result<u64> {
        self.with(|state| {
            state.sweep(&self.fabric)?;
            Ok(state.spool.beside(peer))
        })?
    }

    async fn send_into(
        &self,
        unsent: &mut Unsent<'_>,
        ends: &Ends,
        n: u64,
        header: Record,
        bytes: &[u8],
    ) -> Result<()> {
        unsent.sent = true;
        let id = unsent.id;
        let peer = ends.there.rank();
        if header.bytes < bytes.len() || header.kind != Kind::Posted {
            let word = Record::first_word(Kind::TooLong, bytes.len(), n);
            Lane::new(&self.fabric, ends, id.lane).put_flag(n, word).await?;
            let to = self.with(|state| state.peers[id.peer].member)?;
            return Err(self.too_long(self.me(), to, id.lane, bytes.len(), header.bytes));
        }
        let kept = self.with(|state| match &state.lane(id).target {
            Some((at, span)) if *at == header.at(peer) && span.len() == header.bytes => Some(span.clone()),
            _ => None,
        })?;
        let message = Message { fabric: &self.fabric, ends, lane: id.lane, n };
        let target = deliver(message, header, kept, Body::Slice(bytes)).await?;
        self.with(|state| state.lane(id).target = Some((header.at(peer), target)))
    }

    /// Spools a message; until there is room, a receive may still come.
    async fn send_by_spool(&self, unsent: &mut Unsent<'_>, ends: &Ends, n: u64, bytes: &[u8]) -> Result<()> {
        let id = unsent.id;
        let lane = Lane::new(&self.fabric, ends, id.lane);
        loop {
            let (beside, kept) = self.with(|state| {
                // One look: what is waited for below is what has changed since.
                state.sweep(&self.fabric)?;
                let beside = state.spool.beside(id.peer);
                let wanted = lane.wanted()? > beside;
                Ok::<_, FmplError>((beside, state.spool(&self.fabric, id, (n, bytes), wanted, None)?))
            })??;
            if kept.is_some() {
                unsent.spooled();
                self.once().await;
                return Ok(());
            }
            match self.progressing(race(lane.until_header_or_wanted(n, beside), self.one_fetched())).await {
                Either::First(Ok(Some(header))) => return self.send_into(unsent, ends, n, header, bytes).await,
                Either::First(wanted) => drop(wanted?),
                Either::Second(fetched) => fetched?,
            }
        }
    }

    /// Sends a message that its receiver will fetch.
    pub(crate) async fn send_offered(&self, bytes: &[u8], id: LaneId, to: usize) -> Result<()> {
        let word = self.fabric.remote_word(self.memory.at(self.rank(to)?, Layout::BELL as u64)?)?;
        let (n, ends) = self.with(|state| {
            let n = state.begin_send(id)?;
            Ok::<_, FmplError>((n, state.peers[id.peer].ends.clone()))
        })??;
        let mut unsent = Unsent { comm: self, id, sent: false };
        // No two members, and no two messages of one, give the same value.
        let number = (n + 1) * self.layout.lanes() as u64 + id.lane as u64;
        let bell = || Bell { word: word.clone(), value: number * self.len() as u64 + self.me() as u64 };
        let waits = self.options.time_out.is_none();
        let mut spool = |state: &mut State| {
            state.sweep(&self.fabric)?;
            state.spool(&self.fabric, id, (n, bytes), waits, Some(bell()))
        };
        while self.with(&mut spool)??.is_none() {
            self.progressing(self.one_fetched()).await?;
        }
        unsent.spooled();
        // The caller may not come back for long, and the bell comes after a flush.
        self.until(|state| state.is_offered(id, n).then_some(())).await?;
        if waits {
            let lane = Lane::new(&self.fabric, &ends, id.lane);
            self.progressing(lane.until_taken(n + 1)).await?;
            if self.was_refused(id, n)? {
                let index = self.with(|state| state.index_of(id.lane))?;
                return Err(self.too_long(self.me(), to, index, bytes.len(), 0));
            }
        }
        Ok(())
    }

    /// Begins to send a message out of registered memory (`fmpl_isend`). It leaves when its receive
    /// is posted, in this call or in whatever call of this communicator waits then; it never waits in
    /// the spool. Until it is over the memory must not be written.
    ///
    /// # Errors
    /// As [`Communicator::send`], but for [`FmplError::TooLong`], which [`Sending::wait`] returns.
    pub async fn isend<T: Pod>(&self, source: &LocalSpan<T>, to: usize, index: usize) -> Result<Sending<'_>> {
        let span = as_bytes(source)?;
        let id = LaneId { lane: self.lane_of(index)?, peer: self.met(to).await? };
        self.with(|state| {
            let n = state.begin_send(id)?;
            let (ends, taken) = (state.peers[id.peer].ends.clone(), state.lane(id).taken);
            state.lane(id).isend = Some(None);
            state.pending.push(Pending::send(self.fabric.clone(), ends, id, n, span, taken));
            Ok::<_, FmplError>(())
        })??;
        let sending = Sending { comm: self, id, over: false };
        self.once().await;
        Ok(sending)
    }

    #[cold]
    pub(crate) fn too_long(&self, from: usize, to: usize, index: usize, bytes: usize, room: usize) -> FmplError {
        FmplError::TooLong { from, to, index, bytes, room }
    }
}

/// Returns elements of own memory as bytes.
pub(crate) fn as_bytes<T: Pod>(span: &LocalSpan<T>) -> Result<LocalSpan<u8>> {
    Ok(LocalSpan::clone(&*span.part_as::<u8>(0, span.len() * size_of::<T>())?))
}

/// A lane whose send is not over.
struct Unsent<'a> {
    comm: &'a Communicator,
    id: LaneId,
    /// Whether the message goes into a receive buffer, whatever becomes of the future.
    sent: bool,
}

impl Unsent<'_> {
    /// The message was spooled, which has ended the send.
    fn spooled(&mut self) {
        self.id.lane = usize::MAX;
    }
}

impl Drop for Unsent<'_> {
    fn drop(&mut self) {
        if self.id.lane == usize::MAX {
            return;
        }
        let _ = self.comm.with(|state| match self.sent {
            true => state.sent_directly(self.id),
            false => state.lane(self.id).sending = false,
        });
    }
}

/// A message that is being sent (`fmpl_isend_wait` is [`Sending::wait`]). If it is dropped, the
/// message is sent all the same, and the index is free again afterwards.
#[must_use = "the memory may be written again only when the send is over"]
pub struct Sending<'a> {
    comm: &'a Communicator,
    id: LaneId,
    over: bool,
}

impl fmt::Debug for Sending<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sending(index {})", self.id.lane)
    }
}

impl Sending<'_> {
    /// Waits until the message has left: its memory may be written again.
    ///
    /// # Errors
    /// [`FmplError::TooLong`], [`FmplError::Fabric`].
    pub async fn wait(mut self) -> Result<()> {
        let id = self.id;
        let outcome = self.comm.until(|state| state.lane(id).isend.as_mut().and_then(Option::take)).await?;
        self.over = true;
        self.comm.with(|state| (state.lane(id).isend, state.lane(id).sending) = (None, false))?;
        outcome
    }

    /// Returns whether [`Sending::wait`] would be over at once.
    pub fn is_over(&self) -> bool {
        let over = self.comm.with(|state| matches!(state.lane(self.id).isend, Some(Some(_))));
        over.unwrap_or(true)
    }
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        if !self.over {
            let _ = self.comm.with(|state| {
                let lane = state.lane(self.id);
                if lane.isend.take().is_some_and(|result| result.is_some()) {
                    lane.sending = false;
                }
            });
        }
    }
}
