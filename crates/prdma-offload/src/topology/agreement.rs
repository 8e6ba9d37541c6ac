//! Checks whether both ends list every edge, and agrees on one result for all members of a call
//! that can fail at any of them.

use super::{Edge, Record, Side, Topology, TopologyError};
use crate::{
    init::compiled_here,
    publish::{TableHeader, publish},
};
use bytemuck::{Pod, Zeroable};
use rdma_fabric::Group;
use std::collections::HashSet;

impl Topology {
    /// Compares this member's edges with those at the other ends: each destination must have the
    /// edge among its sources with the same label, each source among its destinations. Collective
    /// over the group to which the topology applies.
    ///
    /// If edges are inconsistent, every member receives the same error. It contains the
    /// lowest-numbered member that has an edge whose other end lacks it, and its first such
    /// destination or, if there is none, its first such source. After an error the group remains
    /// usable.
    ///
    /// During the call a member holds only the tables of its neighbours.
    ///
    /// # Errors
    /// [`TopologyError::Unmatched`]. [`TopologyError::NoSuchMember`] at a member that has such an
    /// edge because its topology is for a larger group; that and other errors of one member are
    /// [`TopologyError::Failed`] at the others. As [`Group::memory`], [`Group::barrier`].
    pub fn check<'a>(&'a self, group: &'a mut Group) -> impl Future<Output = Result<(), TopologyError>> {
        compiled_here(self.check_edges(group))
    }

    async fn check_edges(&self, group: &mut Group) -> Result<(), TopologyError> {
        let headers = group.memory(TableHeader::BYTES).await?;
        let members = group.len();
        let inside = self.outside(members).map_or(Ok(()), Err);
        let both = self.sources.iter().chain(&self.destinations).flatten().map(|edge| edge.member);
        let mut peers: Vec<usize> = both.filter(|member| *member < members).collect();
        peers.sort_unstable();
        peers.dedup();
        let tables = publish(group, &headers, &self.records(), &peers).await;
        let found = match (inside, tables) {
            (Ok(()), Ok(tables)) => self.unmatched(group.me(), &peers, &tables).map_or(Ok(()), Err),
            (Ok(()), Err(error)) => Err(error.into()),
            (outside, _) => outside,
        };
        agreed(group, found).await
    }

    /// Returns the first edge to a member that is not in the group.
    fn outside(&self, members: usize) -> Option<TopologyError> {
        [Side::Destination, Side::Source].into_iter().find_map(|side| {
            let mut edges = self.side(side).iter().enumerate();
            edges.find_map(|(slot, edge)| {
                let member = edge.filter(|edge| edge.member >= members)?.member;
                Some(TopologyError::NoSuchMember { side, slot, member, members })
            })
        })
    }

    /// Returns the first edge that is missing from the tables of the peers.
    fn unmatched(&self, me: usize, peers: &[usize], tables: &[Vec<Record>]) -> Option<TopologyError> {
        let labels = |(peer, table): (&usize, &Vec<Record>)| {
            let peer = *peer;
            let mine = table.iter().filter_map(move |record| {
                let edge = record.edge().filter(|edge| edge.member == me)?;
                Some((record.side(), Edge { member: peer, label: edge.label }))
            });
            mine.collect::<Vec<_>>()
        };
        // The edges as listed at the other ends, with the two members exchanged.
        let theirs: HashSet<(Side, Edge)> = peers.iter().zip(tables).flat_map(labels).collect();
        [Side::Destination, Side::Source].into_iter().find_map(|side| {
            let mut edges = self.side(side).iter().enumerate();
            edges.find_map(|(slot, edge)| {
                let edge = edge.filter(|edge| !theirs.contains(&(side.other(), *edge)))?;
                Some(TopologyError::Unmatched { member: me, side, slot, label: edge.label, peer: edge.member })
            })
        })
    }
}

/// An error in the form in which it is sent to other members.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct ErrorRecord {
    /// See [`ErrorRecord::UNMATCHED`]; all other kinds are failures.
    kind: u32,
    label: u32,
    destination: u64,
    slot: u64,
    peer: u64,
}

impl ErrorRecord {
    const UNMATCHED: u32 = 1;
    const NO_SUCH_END: u32 = 2;

    fn new(error: Option<&TopologyError>) -> ErrorRecord {
        match error {
            Some(TopologyError::Unmatched { side, slot, label, peer, .. }) => ErrorRecord {
                kind: ErrorRecord::UNMATCHED,
                label: *label,
                destination: u64::from(*side == Side::Destination),
                slot: *slot as u64,
                peer: *peer as u64,
            },
            Some(TopologyError::NoSuchEnd { named, .. }) => {
                ErrorRecord { kind: ErrorRecord::NO_SUCH_END, peer: *named as u64, ..ErrorRecord::zeroed() }
            }
            _ => ErrorRecord::zeroed(),
        }
    }

    fn error(self, member: usize, members: usize) -> TopologyError {
        let side = if self.destination == 0 { Side::Source } else { Side::Destination };
        let (slot, peer) = (self.slot as usize, self.peer as usize);
        match self.kind {
            ErrorRecord::UNMATCHED => TopologyError::Unmatched { member, side, slot, label: self.label, peer },
            ErrorRecord::NO_SUCH_END => TopologyError::NoSuchEnd { contributor: member, named: peer, members },
            _ => TopologyError::Failed { member },
        }
    }
}

/// Returns `mine` if no member has an error. Otherwise all members receive the error of the
/// lowest-numbered member that has one, except that a member keeps an error that is meaningful only
/// to itself. Collective over the group.
pub(super) async fn agreed<T>(group: &mut Group, mine: Result<T, TopologyError>) -> Result<T, TopologyError> {
    let vote = if mine.is_ok() { u64::MAX } else { group.me() as u64 };
    let first = !group.greatest(!vote).await?;
    if first == u64::MAX {
        return mine;
    }
    let first = first as usize;
    let record = group.broadcast(first, ErrorRecord::new(mine.as_ref().err())).await?;
    let own = ErrorRecord::new(mine.as_ref().err());
    match mine {
        Err(error) if own.kind == 0 => Err(error),
        _ => Err(record.error(first, group.len())),
    }
}
