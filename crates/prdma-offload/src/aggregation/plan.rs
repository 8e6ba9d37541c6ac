//! The plan of a member: its channels, their relays, and the memory that they address.
//!
//! Members exchange no messages about this. Both ends of a channel derive it from the same
//! [pairs](super::pairs).

use super::pairs::{Edge, Neighbour, Pair, Stretch};
use crate::{
    PrdmaError, Result,
    buffer::Width,
    engine::{Data, Demand, Relay},
    init::{Agreed, Channel, EdgeEnd, Incoming, Outgoing},
    layout::{Layout, Piece, pieces},
    nodes::Nodes,
};
use rdma_fabric::Rank;

/// The memory that a channel sends from, or receives into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Backing {
    /// The blocks of its edges, as without aggregation.
    Edges,
    /// The memory for a neighbour, by its index, for [data sent there](Plan::out).
    Out(usize),
    /// The memory for a neighbour, by its index, for [data received from there](Plan::inn).
    In(usize),
    /// The program's block of a send slot.
    Send(usize),
    /// The program's block of a receive slot.
    Receive(usize),
}

/// A channel.
#[derive(Clone, Debug)]
pub(super) struct PlannedChannel {
    pub(super) channel: Channel,
    pub(super) agreed: Agreed,
    pub(super) demand: Demand,
    pub(super) backing: Backing,
}

/// A block of the program, and its location while in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packed {
    pub(super) slot: usize,
    /// The neighbour's place.
    pub(super) neighbour: usize,
    pub(super) start: u64,
}

/// The number of bytes, and the width of the cells in which they are accessed.
pub(super) type StagingSize = (u64, Width);

/// A member's part.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    pub(super) channels: Vec<PlannedChannel>,
    /// For each neighbour: this member's blocks or, at the representative, all blocks of the node.
    pub(super) out: Vec<Option<StagingSize>>,
    pub(super) inn: Vec<Option<StagingSize>>,
    pub(super) packs: Vec<Packed>,
    pub(super) unpacks: Vec<Packed>,
}

/// The inputs of a member's plan.
pub(super) struct Planner<'a> {
    pub(super) nodes: &'a Nodes,
    pub(super) me: usize,
    pub(super) neighbours: &'a [Neighbour],
    /// For each neighbour: its representative, if this member represents its own node.
    pub(super) opposite: &'a [Option<usize>],
    pub(super) channels: &'a [Channel],
    pub(super) agreed: &'a [Agreed],
    /// The largest gap, in bytes, between two blocks for one receiver that are put together with
    /// the gap.
    pub(super) gap: u64,
    /// The maximum size of one transfer in bytes.
    pub(super) longest: u32,
}

/// The steps of a pair, which determine the numbers of their channels.
enum Leg {
    Up,
    Across,
    Down,
}

/// Returns the number of a leg's channel, above those of all edges. Each leg up or down between two
/// members belongs to one neighbour.
fn index(step: Leg, neighbour: usize) -> u32 {
    let step = match step {
        Leg::Up => 0,
        Leg::Across => 1,
        Leg::Down => 2,
    };
    1 << 30 | step << 28 | neighbour as u32
}

impl Planner<'_> {
    /// Makes the plan of this member; `rank` yields members' ranks.
    ///
    /// # Errors
    /// [`PrdmaError::Damaged`].
    pub(super) fn plan(&self, rank: impl Fn(usize) -> Result<Rank>) -> Result<Plan> {
        let mut plan = Plan::default();
        self.alone(&mut plan);
        for (place, neighbour) in self.neighbours.iter().enumerate() {
            let (out, inn) = (self.outgoing(&mut plan, place, neighbour)?, self.incoming(&mut plan, place, neighbour)?);
            plan.out.push(out);
            plan.inn.push(inn);
        }
        for (place, planned) in plan.channels.iter_mut().enumerate() {
            planned.channel.place = place;
            planned.channel.rank = rank(planned.channel.member)?;
        }
        Ok(plan)
    }

    /// Plans the channels that are not aggregated, and the other direction of channels with one
    /// aggregated edge.
    fn alone(&self, plan: &mut Plan) {
        let pair = |member: usize| {
            let neighbour = self.neighbours.iter().find(|neighbour| Some(neighbour.node) == self.nodes.of(member));
            neighbour.map(|neighbour| (neighbour.out.as_ref(), neighbour.inn.as_ref()))
        };
        let has = |pair: Option<&Pair>, from, to, index| {
            let same = |edge: &Edge| (edge.from, edge.to, edge.index) == (from, to, index);
            pair.is_some_and(|pair| pair.edges.iter().any(same))
        };
        for (channel, agreed) in self.channels.iter().zip(self.agreed) {
            let (out, inn) = pair(channel.member).unwrap_or((None, None));
            let (mut channel, mut agreed) = (channel.clone(), agreed.clone());
            if has(out, self.me, channel.member, channel.index) {
                (channel.out, agreed.out) = (None, None);
            }
            if has(inn, channel.member, self.me, channel.index) {
                (channel.inn, agreed.inn) = (None, None);
            }
            if channel.out.is_some() || channel.inn.is_some() {
                let demand = Demand::of(&agreed);
                plan.channels.push(PlannedChannel { channel, agreed, demand, backing: Backing::Edges });
            }
        }
    }

    /// Plans legs A and B of the message to a neighbour, and returns the memory that they need
    /// here.
    fn outgoing(&self, plan: &mut Plan, place: usize, neighbour: &Neighbour) -> Result<Option<StagingSize>> {
        let Some(pair) = &neighbour.out else { return Ok(None) };
        let (mine, up) = (pair.sent_by(self.me), index(Leg::Up, neighbour.node));
        let slot = |edge: &Edge| self.slot(edge.to, edge.index, |channel| channel.out);
        let first = mine.first().map_or(0, |edge| edge.at);
        let representative = self.representative(place);
        if representative != self.me {
            let Some(last) = mine.last() else { return Ok(None) };
            let bytes = last.at + last.bytes - first;
            let (backing, from, room) = match &mine[..] {
                [edge] if edge.place > 0 => (Backing::Send(slot(edge)?), edge.place - 1, None),
                _ => (Backing::Out(place), 0, Some((bytes, pair.width))),
            };
            if room.is_some() {
                self.pack(&mut plan.packs, &mine, place, |edge| edge.at - first, slot)?;
            }
            plan.channels.push(self.sends(representative, up, pair, &[(from, first, bytes)], None, backing));
            return Ok(room);
        }
        self.pack(&mut plan.packs, &mine, place, |edge| edge.at, slot)?;
        let others: Vec<usize> = pair.senders().into_iter().filter(|sender| *sender != self.me).collect();
        let relay = Relay { stage: 1, number: place as u32 };
        for sender in &others {
            plan.channels.push(receives(*sender, up, pair, Some(relay), false, Backing::Out(place)));
        }
        let (to, across) = (self.opposite(place, neighbour)?, index(Leg::Across, 0));
        let relay = Some(relay).filter(|_| !others.is_empty());
        plan.channels.push(self.sends(to, across, pair, &[(0, 0, pair.bytes())], relay, Backing::Out(place)));
        Ok(Some((pair.bytes(), pair.width)))
    }

    /// Plans legs B and C of the message from a neighbour, and returns the memory that they need
    /// here.
    fn incoming(&self, plan: &mut Plan, place: usize, neighbour: &Neighbour) -> Result<Option<StagingSize>> {
        let Some(pair) = &neighbour.inn else { return Ok(None) };
        let (mine, down) = (pair.received_by(self.me), index(Leg::Down, neighbour.node));
        let slot = |edge: &Edge| self.slot(edge.from, edge.index, |channel| channel.inn);
        let representative = self.representative(place);
        if representative != self.me {
            let stretches = pair.stretches(self.me, self.gap);
            let Some(last) = stretches.last() else { return Ok(None) };
            let (backing, room) = match &mine[..] {
                [edge] if edge.place > 0 => (Backing::Receive(slot(edge)?), None),
                _ => (Backing::In(place), Some((last.at + last.bytes, pair.width))),
            };
            if room.is_some() {
                let at = |edge: &Edge| {
                    let inside = stretches.iter().find(|stretch| edge.at < stretch.from + stretch.bytes);
                    inside.map_or(0, |stretch| stretch.at + edge.at - stretch.from)
                };
                self.pack(&mut plan.unpacks, &mine, place, at, slot)?;
            }
            plan.channels.push(receives(representative, down, pair, None, true, backing));
            return Ok(room);
        }
        self.pack(&mut plan.unpacks, &mine, place, |edge| edge.at, slot)?;
        let others: Vec<usize> = pair.receivers().into_iter().filter(|receiver| *receiver != self.me).collect();
        let relay = Some(Relay { stage: 2, number: place as u32 }).filter(|_| !others.is_empty());
        let (from, across) = (self.opposite(place, neighbour)?, index(Leg::Across, 0));
        plan.channels.push(receives(from, across, pair, relay, true, Backing::In(place)));
        for receiver in others {
            let moves: Vec<_> = match &pair.received_by(receiver)[..] {
                [edge] if edge.place > 0 => vec![(edge.at, edge.place - 1, edge.bytes)],
                _ => {
                    let stretches = pair.stretches(receiver, self.gap).into_iter();
                    stretches.map(|Stretch { from, at, bytes }| (from, at, bytes)).collect()
                }
            };
            plan.channels.push(self.sends(receiver, down, pair, &moves, relay, Backing::In(place)));
        }
        Ok(Some((pair.bytes(), pair.width)))
    }

    /// Returns the member that represents this node to a neighbour.
    fn representative(&self, place: usize) -> usize {
        self.nodes.of(self.me).map_or(self.me, |node| self.nodes.representative(node, place))
    }

    fn opposite(&self, place: usize, neighbour: &Neighbour) -> Result<usize> {
        let first = self.nodes.members(neighbour.node)[0];
        self.opposite[place].ok_or(PrdmaError::Damaged { member: first })
    }

    /// Returns the slot of an edge here.
    fn slot(&self, member: usize, index: u32, end: impl Fn(&Channel) -> Option<EdgeEnd>) -> Result<usize> {
        let mut channels = self.channels.iter().filter(|channel| channel.member == member && channel.index == index);
        Ok(channels.find_map(end).ok_or(PrdmaError::Damaged { member: self.me })?.slot)
    }

    fn pack(
        &self,
        packs: &mut Vec<Packed>,
        edges: &[Edge],
        neighbour: usize,
        start: impl Fn(&Edge) -> u64,
        slot: impl Fn(&Edge) -> Result<usize>,
    ) -> Result<()> {
        for edge in edges {
            packs.push(Packed { slot: slot(edge)?, neighbour, start: start(edge) });
        }
        Ok(())
    }

    /// Plans a channel that sends bytes of the message between two nodes, each piece from an offset
    /// here to an offset there.
    fn sends(
        &self,
        member: usize,
        index: u32,
        pair: &Pair,
        moves: &[(u64, u64, u64)],
        relay: Option<Relay>,
        backing: Backing,
    ) -> PlannedChannel {
        let cut = |(from, at, bytes): &(u64, u64, u64)| -> Vec<Piece> {
            let (from, at) = (Layout::range(*from, *bytes), Layout::range(*at, *bytes));
            pieces(&from, &at, self.longest).unwrap_or_default()
        };
        let pieces: Vec<Piece> = moves.iter().flat_map(cut).collect();
        let demand = Demand { relay, ..Demand::new(Some(Data::slots(&pieces)), false) };
        let bytes = moves.iter().map(|(_, _, bytes)| bytes).sum();
        let agreed =
            Agreed { out: Some(Outgoing { packed: None, pieces, bytes, width: pair.width }), ..Agreed::default() };
        PlannedChannel { channel: leg_channel(member, index, true), agreed, demand, backing }
    }
}

/// Plans a channel that receives the data that the other end [sends](Planner::sends).
fn receives(
    member: usize,
    index: u32,
    pair: &Pair,
    relay: Option<Relay>,
    notice: bool,
    backing: Backing,
) -> PlannedChannel {
    let demand = Demand { relay, notice, ..Demand::new(None, true) };
    let inn = Incoming { packed: None, bytes: pair.bytes(), width: pair.width };
    PlannedChannel {
        channel: leg_channel(member, index, false),
        agreed: Agreed { inn: Some(inn), ..Agreed::default() },
        demand,
        backing,
    }
}

/// Makes a channel without a slot, in one direction. Its place and its rank are not yet known.
fn leg_channel(member: usize, index: u32, out: bool) -> Channel {
    let end = Some(EdgeEnd { slot: 0, label: 0 });
    let (out, inn) = if out { (end, None) } else { (None, end) };
    Channel { member, rank: Rank::new(0), place: 0, index, out, inn }
}
