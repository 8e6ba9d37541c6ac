//! The contact of a channel, with which the neighbour's CPU can put into the memory of the member
//! that publishes it, and the puts created from it.

use crate::{
    PrdmaError, Result,
    buffer::{Memory, Width},
    init::{Agreed, Binding, Channel, Connections, Handles, Name, Outgoing},
};
use bytemuck::{Pod, Zeroable};
use fabric_offload::triggered::{Spans, Transfer, TriggeredPut};
use rdma_fabric::{Blocks, Fabric, LocalWord, Rank, RegionKey, RemoteAddr, RemoteSpan};

/// The location of a channel's words and data at the member that publishes it, for a neighbour
/// whose CPU executes the puts.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct CpuContact {
    pub(crate) name: Name,
    /// The region of the words.
    words: u64,
    /// Offset of the word for the neighbour's READY.
    ready: u64,
    /// Offset of the word for the neighbour's END.
    end: u64,
    /// The region that data is received in.
    data: u64,
    /// The tables that the member has compared for the channel, its own first.
    compared: [u64; 2],
    /// The member's rank, and that at the other end.
    ranks: [u64; 2],
    /// The number after which words start.
    first: u64,
}

impl CpuContact {
    /// The kind of tables of contacts.
    pub(crate) const KIND: u64 = 0x636f_6e74_6163_7473;

    pub(crate) fn of((me, channel): (Rank, &Channel), agreed: &Agreed, connections: &Connections, first: u64) -> Self {
        CpuContact {
            compared: [agreed.binding.mine, agreed.binding.theirs],
            ranks: [me, channel.rank].map(|rank| u64::from(rank.number())),
            first,
            name: Name::of(channel),
            words: connections.words.region().key().to_bits(),
            ready: connections.ready_word(channel),
            end: connections.end_word(channel),
            data: connections.receiving(channel).map_or(0, |memory| memory.region().key().to_bits()),
        }
    }
}

impl CpuContact {
    /// Checks that the neighbour has compared the same tables for `channel` of rank `me`, and counts from
    /// the same number.
    ///
    /// # Errors
    /// [`PrdmaError::Damaged`].
    pub(crate) fn check(&self, (me, channel): (Rank, &Channel), agreed: &Agreed, first: u64) -> Result<()> {
        let [mine, theirs] = self.compared;
        let is_bound = Binding { mine, theirs } == agreed.binding.turned();
        let is_between = self.ranks == [channel.rank, me].map(|rank| u64::from(rank.number()));
        match is_bound && is_between && self.first == first {
            true => Ok(()),
            false => Err(PrdmaError::Damaged { member: channel.member }),
        }
    }
}

/// A channel whose neighbour's contact is known.
pub(super) struct CpuChannel<'a> {
    pub(super) handles: &'a Handles,
    pub(super) channel: &'a Channel,
    /// The neighbour's contact.
    pub(super) contact: &'a CpuContact,
    pub(super) connections: &'a Connections,
}

impl CpuChannel<'_> {
    fn there(&self, region: u64, offset: u64) -> RemoteAddr {
        RemoteAddr { rank: self.channel.rank, region: RegionKey::from_bits(region), offset }
    }

    /// Resolves the neighbour's word to which READY is put.
    ///
    /// # Errors
    /// As [`Fabric::remote_span`].
    pub(super) fn ready(&self) -> Result<RemoteSpan<u64>> {
        Ok(self.handles.words.remote_span(self.there(self.contact.words, self.contact.ready), 1)?)
    }

    /// Resolves this member's word in which the sender reports END.
    ///
    /// # Errors
    /// As [`Fabric::remote_span`].
    pub(super) fn end(&self) -> Result<LocalWord<u64>> {
        self.connections.end(self.channel)
    }

    /// Makes the put of the block, followed by END, that leaves when the receiver's READY has
    /// arrived in the word of channel `by` and the words `fed` have reached the number; `None` if
    /// no data are sent along the channel.
    ///
    /// # Errors
    /// As [`Fabric::remote_span`].
    pub(super) fn put(&self, by: &Channel, agreed: &Agreed, fed: Vec<LocalWord<u64>>) -> Result<Option<TriggeredPut>> {
        let Some(block) = self.block(agreed)? else { return Ok(None) };
        let mut needs = vec![self.connections.words.word(self.connections.ready_word(by))?];
        needs.extend(fed);
        let end = self.handles.words.remote_word(self.there(self.contact.words, self.contact.end))?;
        // READY(k + 1) comes from a member that has seen END(k).
        Ok(Some(TriggeredPut::new(needs, block, end).answered()))
    }
}

impl CpuChannel<'_> {
    /// Resolves the puts of the block; `None` if no data are sent along the channel.
    ///
    /// # Errors
    /// As [`Fabric::remote_span`].
    pub(super) fn block(&self, agreed: &Agreed) -> Result<Option<Transfer>> {
        let Some(out) = &agreed.out else { return Ok(None) };
        let from = self.connections.sending(self.channel).unwrap_or(&self.connections.words);
        transfer(&self.handles.data, out, from, self.there(self.contact.data, 0)).map(Some)
    }
}

/// Resolves the puts of `out`, from `from` to the memory at `at`.
///
/// # Errors
/// As [`Fabric::remote_span`].
pub(crate) fn transfer(fabric: &Fabric, out: &Outgoing, from: &Memory, at: RemoteAddr) -> Result<Transfer> {
    Ok(match out.width {
        Width::One => Transfer::One(spans(fabric, out, from, at)?),
        Width::Two => Transfer::Two(spans(fabric, out, from, at)?),
        Width::Four => Transfer::Four(spans(fabric, out, from, at)?),
        Width::Eight => Transfer::Eight(spans(fabric, out, from, at)?),
    })
}

fn spans<W: Pod>(fabric: &Fabric, out: &Outgoing, from: &Memory, at: RemoteAddr) -> Result<Spans<W>> {
    let (mut pairs, mut strided) = (Vec::new(), Vec::new());
    for piece in out.pieces.iter().filter(|piece| piece.len > 0) {
        let (blocks, len) = (Blocks { count: piece.count, stride: piece.stride }, piece.len as usize);
        let cells = |bytes: usize| bytes / size_of::<W>();
        // An extent that overflows is out of bounds.
        let extent = cells(blocks.extent(len).unwrap_or(usize::MAX));
        let here = from.span::<W>(piece.from, extent)?;
        let there = fabric.remote_span::<W>(RemoteAddr { offset: at.offset + piece.at, ..at }, extent)?;
        match piece.count {
            1 => pairs.push((here, there)),
            _ => strided.push((here, there, cells(len), blocks)),
        }
    }
    let mut spans = Spans::new(pairs);
    strided.into_iter().try_for_each(|(here, there, cells, blocks)| spans.add_blocks(here, there, cells, blocks))?;
    Ok(spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contact_is_of_one_channel_between_two_ranks() {
        let (me, rank) = (Rank::new(3), Rank::new(4));
        let channel = Channel { member: 1, rank, place: 0, index: 0, out: None, inn: None };
        let agreed = Agreed { binding: Binding { mine: 5, theirs: 7 }, ..Agreed::default() };
        let right = CpuContact { compared: [7, 5], ranks: [4, 3], first: 9, ..CpuContact::zeroed() };
        let check = |contact: CpuContact| contact.check((me, &channel), &agreed, 9);
        assert_eq!(check(right), Ok(()));
        let wrong = [
            CpuContact { first: 10, ..right },
            CpuContact { compared: [7, 6], ..right },
            CpuContact { compared: [6, 5], ..right },
            CpuContact { compared: [5, 7], ..right },
            // Tables of different ranks may have the same keys.
            CpuContact { ranks: [4, 2], ..right },
            CpuContact { ranks: [5, 3], ..right },
        ];
        for contact in wrong {
            assert_eq!(check(contact), Err(PrdmaError::Damaged { member: 1 }), "{contact:?}");
        }
    }
}
