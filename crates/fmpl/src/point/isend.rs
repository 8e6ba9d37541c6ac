//! Sends that go on by themselves.

use super::Pending;
use crate::{Communicator, FmplError, Result, cost, state::LaneId};
use core::fmt;
use rdma_fabric::{LocalSpan, Pod};

impl Communicator {
    /// Begins to send a message out of registered memory (`fmpl_isend`). It leaves when its receive
    /// is posted, in this call or in whatever call of this communicator waits then; it never waits in
    /// the spool. Until it is over the memory must not be written.
    ///
    /// # Errors
    /// As [`Communicator::send`], but for [`FmplError::TooLong`], which [`Sending::wait`] returns.
    pub async fn isend<T: Pod>(&self, source: &LocalSpan<T>, to: usize, index: usize) -> Result<Sending<'_>> {
        let span = source.as_bytes()?;
        self.fabric.charge(cost::INIT).await;
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
