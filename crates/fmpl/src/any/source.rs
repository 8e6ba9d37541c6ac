//! Messages whose receiver does not name their sender.

use crate::{
    Communicator, FmplError, Received, Receiving, Result,
    area::{Kind, Lane, Layout},
    cost,
    state::LaneId,
};
use rdma_fabric::{LocalSpan, Pod};

impl Communicator {
    /// Sends a message to a receive that does not name its sender (`fmpl_send_any`); messages of
    /// [`Communicator::send`] go elsewhere. The message is copied. With a
    /// [spool](crate::Options::spool), this ends when there is room in it; without one, and for a
    /// message that is longer than it, when the message was received.
    ///
    /// # Errors
    /// As [`Communicator::send`]; the indices are [those for unknown
    /// senders](crate::Options::any_indices).
    pub async fn send_any<T: Pod>(&self, source: &[T], to: usize, index: usize) -> Result<()> {
        let lane = self.any_lane_of(index)?;
        let id = LaneId { peer: self.met(to).await?, lane };
        self.send_offered(bytemuck::cast_slice(source), id, to).await
    }

    fn any_lane_of(&self, index: usize) -> Result<usize> {
        let indices = self.layout.any_indices();
        if index < indices { Ok(self.layout.any_lane(index)) } else { Err(FmplError::NoSuchIndex { index, indices }) }
    }

    /// Receives a message from whoever sends one to this index by [`Communicator::send_any`]
    /// (`fmpl_recv_any`). Messages of one sender come in the order sent; senders take turns. If the
    /// future is dropped while a message is being fetched, that message is lost.
    ///
    /// # Errors
    /// [`FmplError::NoSuchIndex`], [`FmplError::TooLong`], [`FmplError::Fabric`].
    pub async fn recv_any<T: Pod>(&self, into: &LocalSpan<T>, index: usize) -> Result<Received> {
        let (into, lane) = (into.as_bytes()?, self.any_lane_of(index)?);
        let me = self.memory.member(self.me())?;
        let bell = self.fabric.local_word::<u64>(self.memory.at(me, Layout::BELL as u64)?)?;
        self.fabric.charge(cost::INIT).await;
        loop {
            let rung = self.fabric.load(&bell)?;
            if let Some(id) = self.offered(lane).await? {
                let received = Receiving::of_offer(self, id, &into)?.arrived().await?;
                return Ok(Received { index, ..received });
            }
            let again = self.fabric.wait_until(&bell, self.memory.deps(), |word| word != rung);
            self.progressing(again).await?;
        }
    }

    /// Takes a message that was offered in a lane, of the sender whose turn is next.
    async fn offered(&self, lane: usize) -> Result<Option<LaneId>> {
        let (areas, first) = (self.layout.peers(), self.with(|state| state.turn)?);
        for probe in 0..areas {
            let area = (first + probe) % areas;
            let Some(member) = self.user_of(area)? else { continue };
            // A member that has never sent anything need not be met.
            if self.layout.is_by_number() && !self.has_offered(area, lane)? {
                continue;
            }
            let id = LaneId { peer: self.met(member).await?, lane };
            let ends = self.with(|state| state.peers[id.peer].ends.clone())?;
            self.read_queue(id, &Lane::new(&self.fabric, &ends, lane)).await?;
            let taken = self.with(|state| {
                let peer = &mut state.peers[id.peer];
                let known = &mut peer.lanes[lane];
                let flag = Lane::new(&self.fabric, &peer.ends, lane).flag(known.received)?;
                let flag = flag.or_else(|| known.reading.record(known.received));
                if known.receiving || flag.is_none_or(|flag| flag.kind != Kind::Offered) {
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

    /// Returns who uses an area of this member.
    fn user_of(&self, area: usize) -> Result<Option<usize>> {
        if self.layout.is_by_number() {
            return Ok(Some(area));
        }
        let me = self.memory.member(self.me())?;
        let owner = self.fabric.local_word::<u64>(self.memory.at(me, self.layout.owner(area) as u64)?)?;
        let key = self.fabric.load(&owner)?;
        Ok((1..=self.len() as u64).contains(&key).then(|| key as usize - 1))
    }

    /// Returns whether anything was ever offered in a lane of an area of this member.
    fn has_offered(&self, area: usize, lane: usize) -> Result<bool> {
        let me = self.memory.member(self.me())?;
        let at = self.layout.area(area) + Lane::first_flag(lane);
        let word = self.fabric.local_word::<u64>(self.memory.at(me, at as u64)?)?;
        Ok(self.fabric.load(&word)? != 0)
    }
}
