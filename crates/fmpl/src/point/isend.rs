//! Sends that are awaited separately from the call that starts them.

use super::{Offer, Pending};
use crate::{Communicator, FmplError, Result, cost, state::ChannelId};
use core::fmt;
use rdma_fabric::{LocalSpan, Pod};

impl Communicator {
    /// Begins to send a message from registered memory (`fmpl_isend`). If its receive is posted,
    /// this call puts the message into the receive buffer; otherwise it is offered, and the
    /// receiver fetches it from the source memory, without another call of this member. It is never
    /// spooled. Until the send is complete the memory must stay registered and must not be written.
    ///
    /// # Errors
    /// As [`Communicator::send`], except for [`FmplError::TooLong`], which [`Sending::wait`]
    /// returns.
    pub async fn isend<T: Pod>(&self, source: &LocalSpan<T>, to: usize, index: usize) -> Result<Sending<'_>> {
        let span = source.as_bytes()?;
        self.fabric.charge(cost::INIT).await;
        let id = ChannelId { channel: self.channel_of(index)?, peer: self.met(to).await? };
        self.announced(id).await?;
        self.with(|state| {
            let n = state.begin_send(id)?;
            let (fabric, ends) = (self.fabric.clone(), state.peers[id.peer].ends.clone());
            let pending = match state.match_now(&self.fabric, id, n) {
                Ok(Some(receive)) => Ok(Pending::direct(fabric, ends, id, n, span, receive)),
                Ok(None) => {
                    let record = state.offer_of(id, &span);
                    state.place(&self.fabric, id, n, record).map(|(announced, node)| {
                        let offer = Offer { n, record, announced, doorbell: None };
                        Pending::offered(fabric, ends, id, offer, span, node)
                    })
                }
                Err(error) => Err(error),
            };
            let channel = state.channel(id);
            channel.sending = pending.is_ok();
            channel.isend = pending.is_ok().then_some(None);
            state.pending.push(pending?);
            Ok::<_, FmplError>(())
        })??;
        let sending = Sending { comm: self, id, over: false };
        self.announced(id).await?;
        Ok(sending)
    }
}

/// A message that is being sent (`fmpl_isend_wait` is [`Sending::wait`]). If it is dropped, the
/// message is still sent, and the index is free again afterwards.
#[must_use = "the memory may be written again only when the send is over"]
pub struct Sending<'a> {
    comm: &'a Communicator,
    id: ChannelId,
    over: bool,
}

impl fmt::Debug for Sending<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sending(index {})", self.id.channel)
    }
}

impl Sending<'_> {
    /// Waits until the message has been sent: its memory may then be modified again.
    ///
    /// # Errors
    /// [`FmplError::TooLong`], [`FmplError::Fabric`].
    pub async fn wait(mut self) -> Result<()> {
        let id = self.id;
        let outcome = self.comm.until(|state| state.channel(id).isend.as_mut().and_then(Option::take)).await?;
        self.over = true;
        self.comm.with(|state| (state.channel(id).isend, state.channel(id).sending) = (None, false))?;
        outcome.map_err(|error| *error)
    }

    /// Returns whether [`Sending::wait`] would complete immediately.
    pub fn is_complete(&self) -> bool {
        let over = self.comm.with(|state| matches!(state.channel(self.id).isend, Some(Some(_))));
        over.unwrap_or(true)
    }
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        if !self.over {
            let _ = self.comm.with(|state| {
                let channel = state.channel(self.id);
                if channel.isend.take().is_some_and(|result| result.is_some()) {
                    channel.sending = false;
                }
            });
        }
    }
}
