//! What a member tells of its edges to other nodes.

use super::{Wish, nodes::Nodes};
use crate::{
    buffer::Width,
    init::{Agreed, Block, Channel},
};
use bytemuck::{Pod, Zeroable};

/// An edge of a member that crosses to another node and may travel with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Crossing {
    /// The member at the other end.
    pub(super) other: u64,
    /// Which of the edges in this direction between both.
    pub(super) index: u64,
    /// Bytes of the block, at least 1.
    pub(super) bytes: u64,
    /// Bytes of a cell of it: what both buffers allow.
    pub(super) width: u64,
    /// 1 if the member receives along it.
    pub(super) inward: u64,
    /// 1 + where in the member's buffer the block is, if it is contiguous; 0 if not.
    pub(super) place: u64,
}

/// The edges of `me` that may travel with others.
pub(super) fn crossings(
    channels: &[Channel],
    agreed: &[Agreed],
    blocks: (&[Block], &[Block]),
    nodes: &Nodes,
    me: usize,
    wish: Wish,
) -> Vec<Crossing> {
    let (sends, receives) = blocks;
    let mut crossings = Vec::new();
    for (channel, agreed) in channels.iter().zip(agreed).filter(|(channel, _)| nodes.of(channel.member) != nodes.of(me))
    {
        let mut cross = |inward: u64, block: &Block, bytes: u64, width: Width| {
            if (1..=wish.longest).contains(&bytes) {
                let place = if block.layout.is_contiguous() { 1 + block.layout.offset } else { 0 };
                let (other, index, width) = (channel.member as u64, u64::from(channel.index), width.bytes());
                crossings.push(Crossing { other, index, bytes, width, inward, place });
            }
        };
        if let Some((end, out)) = channel.out.zip(agreed.out.as_ref()) {
            cross(0, &sends[end.slot], out.bytes, out.width);
        }
        if let Some((end, inn)) = channel.inn.zip(agreed.inn.as_ref()) {
            cross(1, &receives[end.slot], inn.bytes, inn.width);
        }
    }
    crossings
}
