//! The header of a receive of a specific index.

use super::{HEADERS, InParts, Receiving};
use crate::{
    Communicator, FmplError, Result,
    area::{Channel, Ends, Record},
    state::ChannelId,
};

impl Communicator {
    /// Posts the header for message `n` of a channel, unless the peer's record of the message has
    /// already arrived, or the message is in its queue.
    pub(super) async fn post_header(&self, id: ChannelId, ends: &Ends, n: u64, header: Record) -> Result<()> {
        let channel = Channel::new(&self.fabric, ends, id.channel);
        // Occasionally a header is posted although none is needed, so that the number of the last
        // header is never mistaken for that of a later one.
        let waits =
            self.with(|state| Ok::<_, FmplError>(state.channel(id).reading.may_hold(n, channel.queued()?)))??;
        if !waits && channel.flag(n)?.is_none() || n.is_multiple_of(HEADERS) {
            if self.with(|state| core::mem::replace(&mut state.channel(id).unseen, true))? {
                // The last header may still be in flight, and must not arrive after this one.
                self.fabric.flush(channel.peer()).await?;
            }
            channel.put_header(n, header).await?;
            self.before_any_index(id).await?;
        }
        Ok(())
    }

    /// Waits for the message of a receive that was dropped.
    pub(super) async fn forget_abandoned(&self, id: ChannelId) -> Result<()> {
        let (abandoned, window) = self.with(|state| {
            let channel = state.channel(id);
            let abandoned = core::mem::take(&mut channel.abandoned);
            // No receive of any index may take its message.
            channel.receiving |= abandoned;
            (abandoned, channel.window.take())
        })?;
        if !abandoned {
            return Ok(());
        }
        let done = match window {
            Some(window) => InParts::new(self, id, window, false).received(None).await,
            None => Receiving::new(self, id).arrived().await,
        };
        match done {
            Err(FmplError::TooLong { .. } | FmplError::BufferGone { .. } | FmplError::Cut { .. }) => Ok(()),
            done => done.map(drop),
        }
    }
}
