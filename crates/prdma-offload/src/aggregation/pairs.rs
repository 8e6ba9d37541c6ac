//! The blocks from one node to another, which both ends derive independently from the edges that
//! the members of both publish.

use super::AgreedAggregation;
use crate::{
    PrdmaError, Result,
    buffer::Width,
    init::{Agreed, Block, Channel},
    nodes::Nodes,
};
use bytemuck::{Pod, Zeroable};
use std::collections::HashMap;

/// An edge of a member that crosses to another node and may travel with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct CrossNodeEdge {
    /// The member at the other end.
    pub(super) other: u64,
    /// The edge's number among those in this direction between both members.
    pub(super) index: u64,
    /// Bytes of the block, at least 1.
    pub(super) bytes: u64,
    /// Width in bytes of the cells in which the block can be accessed.
    pub(super) width: u64,
    /// 1 if the member receives along the edge, otherwise 0.
    pub(super) inward: u64,
    /// 1 + the block's offset in the member's buffer if it is contiguous; 0 if not.
    pub(super) place: u64,
}

/// Returns the edges of `me` that may travel with others.
pub(super) fn cross_node_edges(
    channels: &[Channel],
    agreed: &[Agreed],
    blocks: (&[Block], &[Block]),
    nodes: &Nodes,
    me: usize,
    agreed_aggregation: AgreedAggregation,
) -> Vec<CrossNodeEdge> {
    let (sends, receives) = blocks;
    let mut cross_node_edges = Vec::new();
    for (channel, agreed) in channels.iter().zip(agreed).filter(|(channel, _)| nodes.of(channel.member) != nodes.of(me))
    {
        let mut cross = |inward: u64, block: &Block, bytes: u64, width: Width| {
            if (1..=agreed_aggregation.longest).contains(&bytes) {
                let place = if block.layout.is_contiguous() { 1 + block.layout.offset } else { 0 };
                let (other, index, width) = (channel.member as u64, u64::from(channel.index), width.bytes());
                cross_node_edges.push(CrossNodeEdge { other, index, bytes, width, inward, place });
            }
        };
        if let Some((end, out)) = channel.out.zip(agreed.out.as_ref()) {
            cross(0, &sends[end.slot], out.bytes, out.width);
        }
        if let Some((end, inn)) = channel.inn.zip(agreed.inn.as_ref()) {
            cross(1, &receives[end.slot], inn.bytes, inn.width);
        }
    }
    cross_node_edges
}

/// A block in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
    /// The edge's number among those between both members.
    pub(super) index: u32,
    pub(super) bytes: u64,
    /// See [`CrossNodeEdge::place`]; at the end that published it.
    pub(super) place: u64,
    /// The block's offset in the message.
    pub(super) at: u64,
}

/// All blocks from one node to another in one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    /// Sorted by sender, receiver, index: in the order of their bytes in the message.
    pub(super) edges: Vec<Edge>,
    /// The width of the cells in which the whole message can be accessed.
    pub(super) width: Width,
}

/// Bytes of a message that one command puts to one receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    /// Their offset in the message.
    pub(super) from: u64,
    /// Their offset in the receiver's memory.
    pub(super) at: u64,
    pub(super) bytes: u64,
}

impl Pair {
    /// Makes a pair; `None` if no two blocks share a message.
    fn new(mut edges: Vec<Edge>, width: u64) -> Option<Self> {
        if edges.len() < 2 {
            return None;
        }
        edges.sort_by_key(|edge| (edge.from, edge.to, edge.index));
        let mut bytes = 0;
        for edge in &mut edges {
            edge.at = bytes;
            bytes += edge.bytes;
        }
        Some(Pair { edges, width: Width::of_bytes(width) })
    }

    /// Returns the number of bytes of the message.
    pub(super) fn bytes(&self) -> u64 {
        self.edges.last().map_or(0, |edge| edge.at + edge.bytes)
    }

    pub(super) fn senders(&self) -> Vec<usize> {
        let mut senders: Vec<usize> = self.edges.iter().map(|edge| edge.from).collect();
        senders.dedup();
        senders
    }

    pub(super) fn receivers(&self) -> Vec<usize> {
        let mut receivers: Vec<usize> = self.edges.iter().map(|edge| edge.to).collect();
        receivers.sort_unstable();
        receivers.dedup();
        receivers
    }

    pub(super) fn sent_by(&self, member: usize) -> Vec<Edge> {
        self.edges.iter().filter(|edge| edge.from == member).copied().collect()
    }

    pub(super) fn received_by(&self, member: usize) -> Vec<Edge> {
        self.edges.iter().filter(|edge| edge.to == member).copied().collect()
    }

    /// Returns the stretches of a receiver's blocks: blocks that are at most `gap` bytes apart form
    /// one stretch.
    pub(super) fn stretches(&self, member: usize, gap: u64) -> Vec<Stretch> {
        let mut stretches: Vec<Stretch> = Vec::new();
        for edge in self.received_by(member) {
            match stretches.last_mut() {
                Some(last) if edge.at - (last.from + last.bytes) <= gap => {
                    last.bytes = edge.at + edge.bytes - last.from
                }
                last => {
                    let at = last.map_or(0, |last| last.at + last.bytes);
                    stretches.push(Stretch { from: edge.at, at, bytes: edge.bytes });
                }
            }
        }
        stretches
    }
}

/// A neighbour of a node, and the messages exchanged with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Neighbour {
    pub(super) node: usize,
    /// The message to the neighbour.
    pub(super) out: Option<Pair>,
    /// The message from the neighbour.
    pub(super) inn: Option<Pair>,
}

/// Returns the neighbours of node `home` in order, from the tables of its members.
///
/// # Errors
/// [`PrdmaError::Damaged`].
pub(super) fn neighbours(nodes: &Nodes, home: usize, tables: &[Vec<CrossNodeEdge>]) -> Result<Vec<Neighbour>> {
    let mut pairs: HashMap<(usize, bool), (Vec<Edge>, u64)> = HashMap::new();
    for (member, table) in nodes.members(home).iter().copied().zip(tables) {
        for CrossNodeEdge { other, index, bytes, width, inward, place } in table.iter().copied() {
            let damaged = || PrdmaError::Damaged { member };
            let other = usize::try_from(other).map_err(|_| damaged())?;
            let node = nodes.of(other).filter(|node| *node != home).ok_or_else(damaged)?;
            let index = u32::try_from(index).map_err(|_| damaged())?;
            let (edges, least) = pairs.entry((node, inward == 1)).or_insert((Vec::new(), 8));
            let (from, to) = if inward == 1 { (other, member) } else { (member, other) };
            edges.push(Edge { from, to, index, bytes, place, at: 0 });
            *least = width.min(*least);
        }
    }
    let mut pairs: Vec<_> = pairs.into_iter().collect();
    pairs.sort_unstable_by_key(|(neighbour, _)| *neighbour);
    let mut neighbours: Vec<Neighbour> = Vec::new();
    for ((node, inward), (edges, width)) in pairs {
        let Some(pair) = Pair::new(edges, width) else { continue };
        if neighbours.last().is_none_or(|last| last.node != node) {
            neighbours.push(Neighbour { node, out: None, inn: None });
        }
        let neighbour = neighbours.last_mut().expect("one was pushed");
        *if inward { &mut neighbour.inn } else { &mut neighbour.out } = Some(pair);
    }
    Ok(neighbours)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(from: usize, to: usize, bytes: u64) -> Edge {
        Edge { from, to, index: 0, bytes, place: 0, at: 0 }
    }

    #[test]
    fn small_blocks_of_a_receiver_are_one_stretch_and_long_ones_several() {
        let edges = vec![edge(1, 7, 8), edge(0, 7, 8), edge(0, 6, 8), edge(1, 6, 8)];
        let pair = Pair::new(edges, 8).expect("four blocks");
        assert_eq!((pair.bytes(), pair.senders(), pair.receivers()), (32, vec![0, 1], vec![6, 7]));
        assert_eq!(pair.stretches(6, 8), [Stretch { from: 0, at: 0, bytes: 24 }]);
        assert_eq!(pair.stretches(7, 8), [Stretch { from: 8, at: 0, bytes: 24 }]);
        let apart = [Stretch { from: 8, at: 0, bytes: 8 }, Stretch { from: 24, at: 8, bytes: 8 }];
        assert_eq!(pair.stretches(7, 7), apart);
    }

    #[test]
    fn a_block_that_would_be_alone_is_no_pair() {
        assert_eq!(Pair::new(vec![edge(0, 7, 8)], 8), None);
    }

    #[test]
    fn both_ends_work_out_the_same_message() {
        let nodes = Nodes::new([5, 5, 9, 9].into_iter());
        let cross = |other, index, inward, bytes| CrossNodeEdge { other, index, bytes, width: 4, inward, place: 0 };
        // 0 -> 2 twice, 0 -> 3, 1 -> 3; 3 -> 0 alone.
        let here = [
            vec![cross(2, 0, 0, 4), cross(3, 0, 0, 8), cross(2, 1, 0, 12), cross(3, 0, 1, 4)],
            vec![cross(3, 0, 0, 16)],
        ];
        let there = [
            vec![cross(0, 1, 1, 12), cross(0, 0, 1, 4)],
            vec![cross(1, 0, 1, 16), cross(0, 0, 1, 8), cross(0, 0, 0, 4)],
        ];
        let here = neighbours(&nodes, 0, &here).unwrap();
        let there = neighbours(&nodes, 1, &there).unwrap();
        assert_eq!((here.len(), here[0].node, there.len(), there[0].node), (1, 1, 1, 0));
        assert_eq!(here[0].out, there[0].inn);
        assert_eq!((&here[0].inn, &there[0].out), (&None, &None));
        let at: Vec<u64> = here[0].out.as_ref().unwrap().edges.iter().map(|edge| edge.at).collect();
        assert_eq!(at, [0, 4, 16, 24]);
        let wrong = [vec![cross(9, 0, 0, 4)], vec![]];
        assert_eq!(neighbours(&nodes, 0, &wrong), Err(PrdmaError::Damaged { member: 0 }));
    }
}
