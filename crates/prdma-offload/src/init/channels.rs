//! Channels: edges in pairs, for the exchange of one member with another.
//!
//! The edges to a neighbour and those from it are sorted by their labels and paired in this order,
//! so that both ends form the same pairs with the same numbers. A pair that lacks one edge only
//! sends or only receives. As in an exchange with a neighbour, the READY for one direction of a
//! pair and the data of the other go to the same queue.

use super::Seal;
use crate::{PrdmaError, Result, publish::publish_sealed, topology::Topology};
use bytemuck::Pod;
use rdma_fabric::{Group, GroupMemory, Rank};

/// The exchange with one neighbour over one pair of edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Channel {
    /// The neighbour's number in the group.
    pub(crate) member: usize,
    /// The neighbour.
    pub(crate) rank: Rank,
    /// The channel's place among the channels of its request.
    pub(crate) place: usize,
    /// The number of this pair among those with this neighbour; the same at both ends.
    pub(crate) index: u32,
    /// The outgoing edge.
    pub(crate) out: Option<EdgeEnd>,
    /// The incoming edge.
    pub(crate) inn: Option<EdgeEnd>,
}

/// An edge of a channel at one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EdgeEnd {
    /// The edge's slot.
    pub(crate) slot: usize,
    /// The edge's label; the same at both ends.
    pub(crate) label: u32,
}

impl EdgeEnd {
    /// Returns 1 + the label; 0 for no edge.
    pub(crate) fn to_word(end: Option<EdgeEnd>) -> u64 {
        end.map_or(0, |end| u64::from(end.label) + 1)
    }
}

/// Returns the channels of a member, in the order of their slots.
pub(crate) fn channels(topology: &Topology, group: &Group) -> Result<Vec<Channel>> {
    let outs = sorted(topology.destinations());
    let ins = sorted(topology.sources());
    let mut channels: Vec<Channel> = Vec::with_capacity(outs.len().max(ins.len()));
    let (mut outs, mut ins) = (outs.into_iter().peekable(), ins.into_iter().peekable());
    loop {
        let member = match (outs.peek(), ins.peek()) {
            (Some((out, _)), Some((inn, _))) => *out.min(inn),
            (Some((member, _)), None) | (None, Some((member, _))) => *member,
            (None, None) => break,
        };
        let index = match channels.last() {
            Some(last) if last.member == member => last.index + 1,
            _ => 0,
        };
        let out = outs.next_if(|(to, _)| *to == member).map(|(_, end)| end);
        let inn = ins.next_if(|(from, _)| *from == member).map(|(_, end)| end);
        channels.push(Channel { member, rank: group.rank(member)?, place: 0, index, out, inn });
    }
    channels.sort_by_key(|channel| channel.out.or(channel.inn).map(|end| end.slot));
    for (place, channel) in channels.iter_mut().enumerate() {
        channel.place = place;
    }
    Ok(channels)
}

/// Returns the edges, sorted by member and label.
fn sorted(slots: &[Option<crate::Edge>]) -> Vec<(usize, EdgeEnd)> {
    let edges = slots.iter().enumerate().filter_map(|(slot, edge)| edge.map(|edge| (slot, edge)));
    let mut ends: Vec<_> = edges.map(|(slot, edge)| (edge.member, EdgeEnd { slot, label: edge.label })).collect();
    ends.sort_by_key(|(member, end)| (*member, end.label));
    ends
}

/// Returns the edges of a member one by one, each of them a separate request: the outgoing ones
/// first.
pub(crate) fn single(topology: &Topology, group: &Group) -> Result<Vec<Channel>> {
    let outs = sorted(topology.destinations()).into_iter().map(|(member, end)| (member, Some(end), None));
    let ins = sorted(topology.sources()).into_iter().map(|(member, end)| (member, None, Some(end)));
    let mut channels: Vec<Channel> = Vec::new();
    for (member, out, inn) in outs.chain(ins) {
        let sends = |channel: &&Channel| channel.member == member && channel.out.is_some() == out.is_some();
        let index = channels.iter().filter(sends).count() as u32;
        channels.push(Channel { member, rank: group.rank(member)?, place: 0, index, out, inn });
    }
    Ok(channels)
}

/// A member's name of a channel for the neighbour: the neighbour's number, the channel's number,
/// and 1 if the member only receives along it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(crate) struct Name {
    member: u64,
    index: u64,
    receives: u64,
}

impl Name {
    /// Returns the name that the member with the channel publishes.
    pub(crate) fn of(channel: &Channel) -> Self {
        let receives = u64::from(channel.out.is_none());
        Name { member: channel.member as u64, index: u64::from(channel.index), receives }
    }

    /// Returns the name that the neighbour of `me` publishes for the channel.
    pub(super) fn other(channel: &Channel, me: usize) -> Self {
        let receives = u64::from(channel.inn.is_none());
        Name { member: me as u64, index: u64::from(channel.index), receives }
    }
}

/// Publishes `mine`, and returns the neighbour's record of each of this member's channels.
/// Collective.
pub(crate) async fn contacts<T: Pod>(
    group: &mut Group,
    headers: &GroupMemory,
    channels: &[&Channel],
    mine: Result<Vec<T>>,
    name: impl Fn(&T) -> Name,
    seal: Option<&Seal>,
) -> Result<Vec<T>> {
    let (members, by) = neighbours(channels);
    let none = Vec::new();
    let tables = publish_sealed(group, headers, mine.as_ref().unwrap_or(&none), &members, seal).await?.tables;
    mine?;
    let me = group.me();
    let find = |(channel, at): (&&Channel, usize)| {
        let record = tables[at].1.iter().copied().find(|record| name(record) == Name::other(channel, me));
        record.ok_or(PrdmaError::Damaged { member: channel.member })
    };
    channels.iter().zip(by).map(find).collect()
}

/// Returns the members at the other ends of channels, each once, and for each channel the index of
/// its member.
pub(super) fn neighbours(channels: &[&Channel]) -> (Vec<usize>, Vec<usize>) {
    let mut members: Vec<usize> = channels.iter().map(|channel| channel.member).collect();
    members.sort_unstable();
    members.dedup();
    let by = channels.iter().map(|channel| members.partition_point(|member| *member < channel.member)).collect();
    (members, by)
}
