//! Receives.

use super::{Received, sending::as_bytes};
use crate::{
    Communicator, FmplError, Result,
    area::{Ends, Kind, Lane, Record, Taken},
    cost,
    state::LaneId,
};
use core::fmt;
use rdma_fabric::{LocalSpan, Pod, op::Get};

impl Communicator {
    /// Receives a message (`fmpl_recv`). It may be shorter than `into`.
    ///
    /// # Errors
    /// As [`Communicator::irecv`] and [`Receiving::wait`].
    pub async fn recv<T: Pod>(&self, into: &LocalSpan<T>, from: usize, index: usize) -> Result<Received> {
        self.irecv(into, from, index).await?.arrived().await
    }

    /// Posts a receive (`fmpl_irecv`): from now on the message is put into the buffer as soon as it
    /// is sent, without any call of this rank. Ends when it is posted.
    ///
    /// # Errors
    /// [`FmplError::NoSuchMember`], [`FmplError::NoSuchIndex`], [`FmplError::IndexInUse`],
    /// [`FmplError::TooManyPeers`], and nothing is posted; [`FmplError::Fabric`].
    #[inline]
    pub async fn irecv<T: Pod>(&self, into: &LocalSpan<T>, from: usize, index: usize) -> Result<Receiving<'_>> {
        let (into, lane) = (as_bytes(into)?, self.lane_of(index)?);
        match self.post_now(&into, from, lane) {
            Some((id, n)) => Ok(Receiving { comm: self, id, n, into: Some(into) }),
            None => self.post_later(into, from, lane).await,
        }
    }

    #[inline(always)]
    fn post_now(&self, into: &LocalSpan<u8>, from: usize, lane: usize) -> Option<(LaneId, u64)> {
        let mut state = self.enter().ok()?;
        let id = LaneId { peer: state.place_of(from)?, lane };
        let peer = &mut state.peers[id.peer];
        let (known, lane) = (&mut peer.lanes[id.lane], Lane::new(&self.fabric, &peer.ends, id.lane));
        let n = known.received;
        if known.receiving || known.abandoned.is_some() || known.unseen || lane.flag(n).ok()?.is_some() {
            return None;
        }
        if let Some((_, target)) = &known.target {
            // A receive often goes before a send.
            self.fabric.expect_put_at(target, 0);
        }
        if !lane.put_header_now(n, posted(into)) {
            return None;
        }
        (known.receiving, known.unseen) = (true, true);
        Some((id, n))
    }

    #[cold]
    async fn post_later(&self, into: LocalSpan<u8>, from: usize, lane: usize) -> Result<Receiving<'_>> {
        self.fabric.charge(cost::INIT).await;
        let id = LaneId { peer: self.met(from).await?, lane };
        self.forget_abandoned(id).await?;
        let (n, ends, unseen) = self.with(|state| {
            let n = state.begin_receive(id)?;
            Ok::<_, FmplError>((n, state.peers[id.peer].ends.clone(), state.lane(id).unseen))
        })??;
        let receiving = Receiving { comm: self, id, n, into: Some(into) };
        let lane = Lane::new(&self.fabric, &ends, lane);
        // Now and then a header is posted even though none is needed, so that the number of the last
        // one is never mistaken for a later one's.
        if lane.flag(n)?.is_none() || n % HEADERS == 0 {
            if unseen {
                // The last header may be on its way still, and must not come after this one.
                self.fabric.flush(lane.peer()).await?;
            }
            self.with(|state| state.lane(id).unseen = true)?;
            let into = receiving.into.as_ref().map(posted);
            lane.put_header(n, into.expect("the buffer of a receive that has just begun")).await?;
        }
        Ok(receiving)
    }

    /// Waits for the message of a receive that was dropped.
    async fn forget_abandoned(&self, id: LaneId) -> Result<()> {
        let Some((n, into)) = self.with(|state| {
            let lane = state.lane(id);
            lane.abandoned.take().map(|into| (lane.received, into))
        })?
        else {
            return Ok(());
        };
        match (Receiving { comm: self, id, n, into: Some(into) }).wait().await {
            Err(FmplError::TooLong { .. } | FmplError::BufferGone { .. }) => Ok(()),
            done => done.map(drop),
        }
    }

    /// Fetches a message that waits in its sender's memory.
    async fn fetch(&self, id: LaneId, lane: &Lane<'_>, n: u64, offer: Record, into: &LocalSpan<u8>) -> Result<bool> {
        let fits = offer.bytes <= into.len();
        if fits && offer.bytes > 0 {
            let from = self.fabric.remote_span::<u8>(offer.at(lane.peer()), offer.bytes)?;
            let to = LocalSpan::clone(&*into.part(0..offer.bytes)?);
            let get = self.fabric.post(Get { from: &from, to }).await?;
            self.progressing(get).await?;
        }
        let refused = self.with(|state| {
            let refused = &mut state.lane(id).refused;
            if !fits {
                *refused = Some(n);
            }
            *refused
        })?;
        lane.put_taken(Taken { messages: n + 1, refused }).await?;
        if !self.puts_in_order {
            // The next such word must not be overtaken by this one.
            self.fabric.flush(lane.peer()).await?;
        }
        Ok(fits)
    }
}

/// At least one in so many receives posts a header.
pub(crate) const HEADERS: u64 = 1 << 14;

pub(crate) fn posted(into: &LocalSpan<u8>) -> Record {
    let at = into.addr();
    Record { kind: Kind::Posted, bytes: into.len(), region: at.region, offset: at.offset }
}

/// A receive that is posted (`fmpl_irecv_wait` is [`Receiving::wait`]). If it is dropped, its message
/// is received all the same and lost, and the memory may be written until the index is received from
/// again.
#[must_use = "the message is there only when the receive is over"]
pub struct Receiving<'a> {
    comm: &'a Communicator,
    id: LaneId,
    n: u64,
    /// The buffer; `None` when the receive is over.
    into: Option<LocalSpan<u8>>,
}

impl fmt::Debug for Receiving<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Receiving(index {}, message {})", self.id.lane, self.n)
    }
}

impl<'a> Receiving<'a> {
    /// The receive of a message that was offered and taken.
    pub(crate) fn of_offer(comm: &'a Communicator, id: LaneId, n: u64, into: LocalSpan<u8>) -> Self {
        Receiving { comm, id, n, into: Some(into) }
    }
}

impl Receiving<'_> {
    /// Waits until the message is there.
    ///
    /// # Errors
    /// [`FmplError::TooLong`], [`FmplError::BufferGone`]: the message is lost.
    /// [`FmplError::Fabric`].
    #[inline]
    pub async fn wait(mut self) -> Result<Received> {
        match self.arrived_now() {
            Some(received) => Ok(received),
            None => {
                let received = self.arrived_later().await;
                self.comm.fabric.charge(cost::WAIT).await;
                received
            }
        }
    }

    /// Waits as part of the call that posted the receive.
    #[inline(always)]
    pub(crate) async fn arrived(mut self) -> Result<Received> {
        match self.arrived_now() {
            Some(received) => Ok(received),
            None => self.arrived_later().await,
        }
    }

    #[inline(always)]
    fn arrived_now(&mut self) -> Option<Received> {
        let mut state = self.comm.enter().ok()?;
        let peer = &state.peers[self.id.peer];
        let flag = Lane::new(&self.comm.fabric, &peer.ends, self.id.lane).flag(self.n).ok()??;
        let from = peer.member;
        if flag.kind != Kind::Arrived {
            return None;
        }
        state.received(self.id, true);
        drop(state);
        self.into = None;
        Some(Received { from, index: self.id.lane, bytes: flag.bytes })
    }

    #[cold]
    async fn arrived_later(&mut self) -> Result<Received> {
        let (id, n, comm) = (self.id, self.n, self.comm);
        let (ends, from): (Ends, usize) = comm.with(|state| {
            let peer = &state.peers[id.peer];
            (peer.ends.clone(), peer.member)
        })?;
        let lane = Lane::new(&comm.fabric, &ends, id.lane);
        let flag = match lane.flag(n)? {
            Some(flag) => flag,
            None => comm.progressing(lane.until_flag(n)).await?,
        };
        let room = self.into.as_ref().map_or(0, LocalSpan::len);
        let fits = match (flag.kind, &self.into) {
            (Kind::Offered, Some(into)) => comm.fetch(id, &lane, n, flag, into).await?,
            _ => flag.kind == Kind::Arrived,
        };
        comm.with(|state| state.received(id, flag.kind != Kind::Offered))?;
        self.into = None;
        match flag.kind {
            _ if fits => Ok(Received { from, index: id.lane, bytes: flag.bytes }),
            Kind::NotThere => Err(FmplError::BufferGone { from, index: id.lane }),
            _ => Err(comm.too_long(from, comm.me(), comm.with(|state| state.index_of(id.lane))?, flag.bytes, room)),
        }
    }

    /// Returns whether the message is there, or waits to be fetched.
    ///
    /// # Errors
    /// [`FmplError::Fabric`].
    pub fn is_there(&self) -> Result<bool> {
        let flag = self
            .comm
            .with(|state| Lane::new(&self.comm.fabric, &state.peers[self.id.peer].ends, self.id.lane).flag(self.n))??;
        Ok(flag.is_some())
    }
}

impl Drop for Receiving<'_> {
    fn drop(&mut self) {
        if let Some(into) = self.into.take() {
            let _ = self.comm.with(|state| {
                let lane = state.lane(self.id);
                (lane.receiving, lane.abandoned) = (false, Some(into));
                state.changed();
            });
        }
    }
}
