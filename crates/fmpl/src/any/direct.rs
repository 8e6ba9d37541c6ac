//! Receives of any index that the sender matches: without a copy.

use super::slot::Step;
use crate::{
    Communicator, FmplError, Received, Receiving, Result,
    area::{Channel, Kind, Slot, SlotFlag},
    cost,
    state::ChannelId,
};
use core::fmt;
use rdma_fabric::{LocalSpan, Pod, join::race_all};

impl Communicator {
    /// Posts a receive for a message of any index that the *sender* matches (`fmpl_irecv` with
    /// `FMPL_TAG_ANY`; paper, sections 2.5 and 3.2.1): the header goes to the sender, and the next
    /// message whose own receive is not posted is put directly into `into`.
    ///
    /// # Which message it takes
    /// A receive of a specific index takes precedence, regardless of which was posted first, if it
    /// is posted when the message is sent. If it is posted at the same moment, either receive may
    /// take the message; the other one remains posted for the next. A message that was sent earlier
    /// is taken first, the one with the lowest index among several. Messages of one index are
    /// taken in the order sent.
    ///
    /// Several such receives from one sender are matched in the order in which they were posted.
    /// Only the header of the first is posted; that of the next follows when the first one's
    /// [`wait`](ReceivingAnyDirect::wait) returns. So wait for them in this order, or for several at
    /// once. A receive of [`Communicator::irecv_any_index`] may take a message in between.
    ///
    /// # Cost
    /// As [`Communicator::irecv`], no matter how many messages were sent: one put for the header, one
    /// each for body and flag; the sender copies nothing and does not wait for the receiver's
    /// call. Only a message that was sent before the header arrived is copied (if it was spooled) and
    /// fetched. Each call checks all indices; if a receive of a specific index is posted as well, the
    /// two headers are separated by a flush.
    ///
    /// [`Communicator::irecv_any_index`] posts no header: each of its messages is copied and fetched, a
    /// dropped one takes no message, and several are visible to the sender at once.
    ///
    /// # Errors
    /// As [`Communicator::irecv`].
    ///
    /// ```
    /// use fmpl::Fmpl;
    /// use rdma_fabric::{Fabric, ProgramResult};
    ///
    /// async fn any(fabric: Fabric) -> ProgramResult<()> {
    ///     let fmpl = Fmpl::init(&fabric).await?;
    ///     let world = fmpl.world();
    ///     let (any, third) = (world.buffer::<u64>(1)?, world.buffer::<u64>(1)?);
    ///     if world.me() == 1 {
    ///         let one = world.irecv_any_index_direct(&any, 0).await?;
    ///         let other = world.irecv(&third, 0, 3).await?;
    ///         world.barrier().await?;
    ///         // The receive of index 3 takes its message, although it was posted later.
    ///         assert_eq!((one.wait().await?.index, other.wait().await?.index), (5, 3));
    ///     } else {
    ///         world.barrier().await?;
    ///         world.send(&[30u64], 1, 3).await?;
    ///         world.send(&[50u64], 1, 5).await?;
    ///     }
    ///     Ok(fmpl.finalize().await?)
    /// }
    /// # checks::documented::run(2, &any);
    /// ```
    pub async fn irecv_any_index_direct<T: Pod>(
        &self,
        into: &LocalSpan<T>,
        from: usize,
    ) -> Result<ReceivingAnyDirect<'_>> {
        let (into, peer) = (into.as_bytes()?, self.met(from).await?);
        self.fabric.charge(cost::INIT).await;
        let ticket = self.with(|state| state.peers[peer].slot.add(into.clone()))?;
        let receiving = ReceivingAnyDirect { comm: self, peer, ticket, into };
        self.post_slot(peer).await?;
        Ok(receiving)
    }

    /// Posts the header of the first receive of a peer's queue, if there is none yet and it would be
    /// valid. If the future is dropped, the header is put again later, since it may have been sent.
    async fn post_slot(&self, peer: usize) -> Result<()> {
        let posting = self.with(|state| {
            let header = state.next_header(&self.fabric, peer)?;
            Ok::<_, FmplError>(header.map(|header| (header, state.peers[peer].ends.clone())))
        })??;
        let Some((header, ends)) = posting else { return Ok(()) };
        if header.after_flush {
            self.fabric.flush(ends.there.rank()).await?;
        }
        Slot::new(&self.fabric, &ends).put_header(header.n, header.record).await?;
        self.with(|state| state.peers[peer].slot.sent(header.n))
    }

    /// After a receive of a specific index was posted: waits until its header is visible, so that the
    /// sender of a later message prefers it to one of any index.
    pub(crate) async fn before_any_index(&self, id: ChannelId) -> Result<()> {
        let rank = self.with(|state| {
            let peer = &state.peers[id.peer];
            peer.slot.is_live().then(|| peer.ends.there.rank())
        })?;
        match rank {
            Some(rank) => Ok(self.fabric.flush(rank).await?),
            None => Ok(()),
        }
    }
}

/// A posted receive for a message of any index, which the sender matches. If it is dropped while its
/// header is posted, the next message that would be put into its buffer is lost, and the memory may
/// be written until another such receive from this sender completes; if a message was offered
/// before, the header is void and none is lost.
#[must_use = "the message is there only when the receive is over"]
pub struct ReceivingAnyDirect<'a> {
    comm: &'a Communicator,
    peer: usize,
    ticket: u64,
    into: LocalSpan<u8>,
}

impl fmt::Debug for ReceivingAnyDirect<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReceivingAnyDirect({} bytes)", self.into.len())
    }
}

/// How a receive was matched.
enum Matched {
    ByHeader(SlotFlag),
    ByOffer(ChannelId),
}

impl ReceivingAnyDirect<'_> {
    /// Waits until the message has arrived. If the future is dropped while a message that was sent
    /// earlier is being fetched, that message is lost.
    ///
    /// # Errors
    /// As [`Receiving::wait`].
    pub async fn wait(self) -> Result<Received> {
        let (comm, peer) = (self.comm, self.peer);
        let received = match comm.progressing(self.matched()).await? {
            Matched::ByHeader(flag) => {
                comm.fabric.charge(cost::WAIT).await;
                self.received(flag)
            }
            Matched::ByOffer(id) => Receiving::of_offer(comm, id, &self.into)?.wait().await,
        };
        drop(self);
        // If this fails, the next receive returns the error.
        let _ = comm.post_slot(peer).await;
        received
    }

    fn received(&self, SlotFlag { kind, bytes, index }: SlotFlag) -> Result<Received> {
        let (from, room) = (self.comm.with(|state| state.peers[self.peer].member)?, self.into.len());
        match kind {
            Kind::Arrived if bytes <= room => Ok(Received { from, index, bytes }),
            Kind::NotThere => Err(FmplError::BufferGone { from, index }),
            _ => Err(FmplError::TooLong { from, to: self.comm.me(), index, bytes, room }),
        }
    }

    async fn matched(&self) -> Result<Matched> {
        let (comm, fabric) = (self.comm, &self.comm.fabric);
        loop {
            let (step, changes) = comm.with(|state| {
                let step = state.next_step(fabric, self.peer, self.ticket)?;
                Ok::<_, FmplError>((step, state.changes))
            })??;
            match step {
                Step::Arrived(flag) => return Ok(Matched::ByHeader(flag)),
                Step::Take(id) => return Ok(Matched::ByOffer(id)),
                Step::Post => comm.post_slot(self.peer).await?,
                Step::Read(id) => {
                    let ends = comm.with(|state| state.peers[id.peer].ends.clone())?;
                    comm.read_queue(id, &Channel::new(fabric, &ends, id.channel)).await?;
                }
                Step::Wait(_, awaited) if awaited.is_empty() => {
                    comm.or_changed(changes, core::future::pending()).await?;
                }
                Step::Wait(ends, awaited) => {
                    let arrived = race_all(awaited.into_iter().map(|record| record.arrived(fabric, &ends)));
                    comm.or_changed(changes, arrived).await?;
                }
            }
        }
    }
}

impl Drop for ReceivingAnyDirect<'_> {
    fn drop(&mut self) {
        let _ = self.comm.with(|state| {
            state.peers[self.peer].slot.drop_receive(self.ticket);
            state.changed();
        });
    }
}
