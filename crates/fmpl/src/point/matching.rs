//! Matching at the sender: the receive that a message uses.

use crate::{
    Communicator, Result,
    any::SlotHeader,
    area::{Channel, Ends, Record, Slot},
    state::{ChannelId, State},
};
use rdma_fabric::{
    Fabric,
    join::{Either, race},
};

/// A receive that is posted at the peer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Receive {
    /// One of the message's index, by its header.
    OfIndex(Record),
    /// One of any index.
    OfAny(SlotHeader),
}

impl State {
    /// Returns the posted receive for message `n` of a channel: that of the index, or else one of any
    /// index, whose header is then used.
    pub(crate) fn match_now(&mut self, fabric: &Fabric, id: ChannelId, n: u64) -> Result<Option<Receive>> {
        let peer = &mut self.peers[id.peer];
        // Loaded first: a receive of the index that was posted before is then visible as well.
        let any = Slot::new(fabric, &peer.ends).words()?.header();
        if let Some(header) = Channel::new(fabric, &peer.ends, id.channel).header(n)? {
            return Ok(Some(Receive::OfIndex(header)));
        }
        Ok(any.and_then(|header| peer.slot.take(header)).map(Receive::OfAny))
    }
}

impl Communicator {
    /// Waits until there is a receive for message `n` of a channel, or until the peer waits for more
    /// than `beside` messages of any index that are offered.
    pub(super) async fn until_matched(
        &self,
        ends: &Ends,
        id: ChannelId,
        n: u64,
        beside: u64,
    ) -> Result<Option<Receive>> {
        let (channel, slot) = (Channel::new(&self.fabric, ends, id.channel), Slot::new(&self.fabric, ends));
        loop {
            // Read before the state, so that no change after it is missed.
            let seen = slot.words()?;
            if let Some(receive) = self.with(|state| state.match_now(&self.fabric, id, n))?? {
                return Ok(Some(receive));
            }
            if channel.wanted()? > beside {
                return Ok(None);
            }
            match race(channel.until_header_or_wanted(n, beside), slot.until_changed(seen)).await {
                Either::First(arrived) => drop(arrived?),
                Either::Second(changed) => changed?,
            }
        }
    }
}
