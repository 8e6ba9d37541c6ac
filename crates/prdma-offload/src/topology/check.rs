//! Whether both ends know of every edge.

use super::{Edge, Side, Topology, TopologyError, table::Record, verdict::agreed};
use crate::publish::{Published, publish};
use rdma_fabric::Group;
use std::collections::BTreeSet;

impl Topology {
    /// Compare this member's edges with those of the other ends: each destination must have it among its sources with
    /// the same label, each source among its destinations. Collective over the group that the topology is for.
    ///
    /// If edges are inconsistent, every member is told the same one: of the least member that has an edge whose other
    /// end lacks it, its first such destination, or if there is none its first such source. After an error the group
    /// can still be used.
    ///
    /// A member holds the tables of its neighbours while this goes on, and no other.
    ///
    /// # Errors
    /// [`TopologyError::Unmatched`]. [`TopologyError::NoSuchMember`] at who has such an edge, because its topology is
    /// of a greater group; that and other errors of one member are [`TopologyError::Failed`] at the others. As
    /// [`Group::memory`], [`Group::barrier`].
    pub async fn check(&self, group: &mut Group) -> Result<(), TopologyError> {
        let headers = group.memory(Published::BYTES).await?;
        let members = group.len();
        let inside = self.outside(members).map_or(Ok(()), Err);
        let both = self.sources.iter().chain(&self.destinations).flatten().map(|edge| edge.member);
        let peers: BTreeSet<usize> = both.filter(|member| *member < members).collect();
        let peers: Vec<usize> = peers.into_iter().collect();
        let tables = publish(group, &headers, &self.records(), &peers).await;
        let found = match (inside, tables) {
            (Ok(()), Ok(tables)) => self.unmatched(group.me(), &peers, &tables).map_or(Ok(()), Err),
            (Ok(()), Err(error)) => Err(error.into()),
            (outside, _) => outside,
        };
        agreed(group, found).await
    }

    /// The first edge to a member that there is not.
    fn outside(&self, members: usize) -> Option<TopologyError> {
        [Side::Destination, Side::Source].into_iter().find_map(|side| {
            let mut edges = self.side(side).iter().enumerate();
            edges.find_map(|(slot, edge)| {
                let member = edge.filter(|edge| edge.member >= members)?.member;
                Some(TopologyError::NoSuchMember { side, slot, member, members })
            })
        })
    }

    /// The first edge that the tables of the peers do not have.
    fn unmatched(&self, me: usize, peers: &[usize], tables: &[Vec<Record>]) -> Option<TopologyError> {
        let labels = |(peer, table): (&usize, &Vec<Record>)| {
            let peer = *peer;
            let mine = table.iter().filter_map(move |record| {
                let edge = record.edge().filter(|edge| edge.member == me)?;
                Some((record.side(), Edge { member: peer, label: edge.label }))
            });
            mine.collect::<Vec<_>>()
        };
        // As the other ends have them, this member's numbers in them replaced by theirs.
        let theirs: BTreeSet<(Side, Edge)> = peers.iter().zip(tables).flat_map(labels).collect();
        [Side::Destination, Side::Source].into_iter().find_map(|side| {
            let mut edges = self.side(side).iter().enumerate();
            edges.find_map(|(slot, edge)| {
                let edge = edge.filter(|edge| !theirs.contains(&(side.other(), *edge)))?;
                Some(TopologyError::Unmatched { member: me, side, slot, label: edge.label, peer: edge.member })
            })
        })
    }
}
