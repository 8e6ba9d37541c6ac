//! What a member says of a channel to who puts into its memory by itself, and what is made of it.

use super::transfer;
use crate::{
    Result,
    init::{Agreed, Channel, Name, Wires},
};
use bytemuck::{Pod, Zeroable};
use rdma_fabric::{Fabric, LocalWord, RegionKey, RemoteAddr, RemoteSpan, triggered::TriggeredPut};

/// See the [module](self).
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Desk {
    pub(crate) name: Name,
    /// The region of the words.
    words: u64,
    /// Offset of the word for the neighbour's READY.
    ready: u64,
    /// Offset of the word for the neighbour's END.
    end: u64,
    /// The region that data is received in.
    data: u64,
}

/// The ends of a channel at the neighbour's and here.
pub(crate) struct Ends<'a> {
    pub(crate) fabric: &'a Fabric,
    pub(crate) channel: &'a Channel,
    /// The neighbour's.
    pub(crate) desk: &'a Desk,
    pub(crate) wires: &'a Wires,
}

impl Desk {
    pub(crate) fn of(channel: &Channel, wires: &Wires) -> Self {
        Desk {
            name: Name::of(channel),
            words: wires.words.region().key().to_bits(),
            ready: wires.ready_word(channel),
            end: wires.end_word(channel),
            data: wires.receiving(channel).map_or(0, |memory| memory.region().key().to_bits()),
        }
    }
}

impl Ends<'_> {
    fn there(&self, region: u64, offset: u64) -> RemoteAddr {
        RemoteAddr { rank: self.channel.rank, region: RegionKey::from_bits(region), offset }
    }

    /// There goes READY: one word.
    ///
    /// # Errors
    /// As [`Fabric::locate`].
    pub(crate) fn ready(&self) -> Result<RemoteSpan<u64>> {
        Ok(self.fabric.remote_span(self.there(self.desk.words, self.desk.ready), 1)?)
    }

    /// Here the sender says END.
    ///
    /// # Errors
    /// As [`Fabric::locate`].
    pub(crate) fn end(&self) -> Result<LocalWord<u64>> {
        Ok(self.wires.words.region().word(self.fabric, self.wires.end_word(self.channel) as usize)?)
    }

    /// The block, when the receiver has said READY in the word of channel `by` and the words `fed` have come, and END behind it; `None` if nothing is sent
    /// along the channel.
    ///
    /// # Errors
    /// As [`Fabric::locate`].
    pub(crate) fn put(&self, by: &Channel, agreed: &Agreed, fed: Vec<LocalWord<u64>>) -> Result<Option<TriggeredPut>> {
        let Some(out) = &agreed.out else { return Ok(None) };
        let from = self.wires.sending(self.channel).unwrap_or(&self.wires.words);
        let mut needs = vec![self.wires.words.region().word(self.fabric, self.wires.ready_word(by) as usize)?];
        needs.extend(fed);
        let block = transfer(self.fabric, out, from, self.there(self.desk.data, 0))?;
        let end = self.fabric.remote_word(self.there(self.desk.words, self.desk.end))?;
        // READY(k + 1) comes from who has seen END(k).
        Ok(Some(TriggeredPut::new(needs, block, end).answered()))
    }
}
