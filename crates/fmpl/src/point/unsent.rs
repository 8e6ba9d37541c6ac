//! The state of a send that completes or is dropped.

use crate::{
    Communicator,
    area::{Channel, Kind, Record},
    state::ChannelId,
};

/// A channel whose send has not completed.
pub(super) struct Unsent<'a> {
    pub(super) comm: &'a Communicator,
    pub(super) id: ChannelId,
    pub(super) at: At,
}

/// The location of a message that is being sent.
#[derive(Clone, Copy, Debug)]
pub(super) enum At {
    /// Only at its sender.
    Nowhere,
    /// In transit to the receiver as message `n` of the channel, even if the future is dropped, except
    /// for `after` bytes that are to follow.
    Receiver { n: u64, after: usize },
    /// All parts before message `n` of the channel have been sent; `rest` bytes are to follow.
    Between { n: u64, rest: usize },
    /// In the spool, so the send has completed.
    Spool,
}

impl Unsent<'_> {
    pub(super) fn spooled(&mut self) {
        self.at = At::Spool;
    }

    /// Reports to the receiver, in place of message `n`, that the rest will not arrive.
    fn cut(&self, n: u64, rest: usize) {
        let Ok(ends) = self.comm.with(|state| {
            state.channel(self.id).count_direct();
            state.peers[self.id.peer].ends.clone()
        }) else {
            return;
        };
        let (fabric, channel) = (self.comm.fabric.clone(), self.id.channel);
        self.comm.fabric.detach(async move {
            let word = Record::first_word(Kind::NotThere, rest, n);
            // Errors are ignored, since no call is left to return them.
            let _ = Channel::new(&fabric, &ends, channel).put_deferred_flag(n, word).await;
        });
    }
}

impl Drop for Unsent<'_> {
    fn drop(&mut self) {
        match self.at {
            At::Spool => return,
            At::Nowhere => {}
            At::Receiver { n, after } => {
                let _ = self.comm.with(|state| state.channel(self.id).count_direct());
                if after > 0 {
                    self.cut(n + 1, after);
                }
            }
            At::Between { n, rest } => self.cut(n, rest),
        }
        let _ = self.comm.with(|state| state.channel(self.id).sending = false);
    }
}
