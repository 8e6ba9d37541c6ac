//! Topologies of exchanges: MPI's process topologies (MPI 4.1, chapter 8).
//!
//! A member of a group has *slots*: sources to receive from and destinations to send to, in the
//! order in which a program passes its blocks. The edge of a slot identifies the other member and
//! has a *label*, which distinguishes several edges between the same two members: an edge from `a`
//! to `b` has the same label at both.
//!
//! | MPI | here |
//! |---|---|
//! | `MPI_Dist_graph_create_adjacent` (8.5.4) | [`Topology::graph`], [`Topology::with_weights`] |
//! | `MPI_Dist_graph_create` (8.5.4) | [`Topology::from_edges`] |
//! | `reorder = true` | [`Topology::reordered`], [`Cartesian::reordered`]; the new number is [`Group::me`] |
//! | `MPI_Dist_graph_neighbors` (8.5.5) | [`Topology::sources`], [`Topology::destinations`] and their weights |
//! | `MPI_Cart_create` (8.5.1), `MPI_Cart_coords`, `MPI_Cart_rank` (8.5.5) | [`Cartesian`] |
//! | `MPI_Cart_shift` (8.5.6), `MPI_Cart_sub` (8.5.7) | [`Cartesian::shift`], [`Cartesian::sub`] |
//! | `MPI_Dims_create` (8.5.2) | [`dims_create`] |
//! | `MPI_PROC_NULL` | a slot that is `None` |
//!
//! In MPI, the program is responsible for the agreement of both ends of an edge.
//! [`Topology::check`] verifies it.
//!
//! [`Group::me`]: rdma_fabric::Group::me

mod agreement;
mod cartesian;
mod error;
mod gather;
mod reorder;

pub use cartesian::{Cartesian, dims_create};
pub use error::{Side, TopologyError};

use bytemuck::{Pod, Zeroable};
use std::collections::HashMap;

/// One end of an edge, from a member's perspective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge {
    /// The member at the other end.
    pub member: usize,
    /// The number of this edge among those with the same source and destination.
    pub label: u32,
}

/// Sources and destinations of one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// The sources by slot; `None` where there is no member (beyond a border).
    pub(crate) sources: Box<[Option<Edge>]>,
    /// The destinations by slot.
    pub(crate) destinations: Box<[Option<Edge>]>,
    /// The number of weights equals the number of slots.
    weights: Option<Weights>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Weights {
    sources: Box<[u32]>,
    destinations: Box<[u32]>,
}

impl Topology {
    /// Makes a topology of these slots, without weights. Edges must have the same label at both
    /// ends.
    #[doc(hidden)]
    pub fn of(sources: Box<[Option<Edge>]>, destinations: Box<[Option<Edge>]>) -> Self {
        Topology { sources, destinations, weights: None }
    }

    /// Returns the edges along which blocks arrive, by slot; `None` beyond a border, where nothing
    /// arrives and the block is unchanged.
    pub fn sources(&self) -> &[Option<Edge>] {
        &self.sources
    }

    /// Returns the edges along which blocks leave, by slot; `None` beyond a border.
    pub fn destinations(&self) -> &[Option<Edge>] {
        &self.destinations
    }

    /// Returns the weights of the sources, by slot; `None` if the topology is unweighted
    /// (`MPI_UNWEIGHTED`).
    pub fn source_weights(&self) -> Option<&[u32]> {
        self.weights.as_ref().map(|weights| &*weights.sources)
    }

    /// Returns the weights of the destinations, by slot.
    pub fn destination_weights(&self) -> Option<&[u32]> {
        self.weights.as_ref().map(|weights| &*weights.destinations)
    }

    fn side(&self, side: Side) -> &[Option<Edge>] {
        match side {
            Side::Source => &self.sources,
            Side::Destination => &self.destinations,
        }
    }
}

impl Topology {
    /// Makes the topology of member `me` of `members` from its neighbours, in this order
    /// (`MPI_Dist_graph_create_adjacent`). Local.
    ///
    /// A member may be listed more than once, and `me` may list itself: the *k*-th slot of a
    /// destination matches the *k*-th slot of `me` among that member's sources. The program must
    /// ensure that the other end lists `me` the same number of times; [`Topology::check`] verifies
    /// that.
    ///
    /// # Errors
    /// [`TopologyError::NotAMember`] for `me`, [`TopologyError::NoSuchMember`].
    pub fn graph(
        members: usize,
        me: usize,
        sources: &[usize],
        destinations: &[usize],
    ) -> Result<Topology, TopologyError> {
        if me >= members {
            return Err(TopologyError::NotAMember { member: me, members });
        }
        Ok(Topology {
            sources: labelled(members, Side::Source, sources)?,
            destinations: labelled(members, Side::Destination, destinations)?,
            weights: None,
        })
    }

    /// Adds weights: the amount of data along each edge, in any unit. They are hints for
    /// [`Topology::reordered`] and change nothing else.
    ///
    /// # Errors
    /// [`TopologyError::Weights`] if their number differs from that of the slots of their side.
    pub fn with_weights(self, sources: &[u32], destinations: &[u32]) -> Result<Topology, TopologyError> {
        let sides = [(Side::Source, sources), (Side::Destination, destinations)];
        for (side, weights, slots) in sides.map(|(side, weights)| (side, weights.len(), self.side(side).len())) {
            if weights != slots {
                return Err(TopologyError::Weights { side, weights, slots });
            }
        }
        Ok(Topology { weights: Some(Weights { sources: sources.into(), destinations: destinations.into() }), ..self })
    }
}

/// Returns edges to `named`, each labelled with the number of earlier edges to the same member.
fn labelled(members: usize, side: Side, named: &[usize]) -> Result<Box<[Option<Edge>]>, TopologyError> {
    let mut labels = HashMap::new();
    let edge = |(slot, member): (usize, &usize)| {
        let member = *member;
        if member >= members {
            return Err(TopologyError::NoSuchMember { side, slot, member, members });
        }
        let next: &mut u32 = labels.entry(member).or_default();
        let label = *next;
        *next += 1;
        Ok(Some(Edge { member, label }))
    };
    named.iter().enumerate().map(edge).collect()
}

/// A slot. Records of sources come before those of destinations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Record {
    /// The other end; [`NOBODY`] beyond a border.
    member: u64,
    label: u32,
    /// 0 for an unweighted topology.
    weight: u32,
    destination: u32,
    weighted: u32,
}

const NOBODY: u64 = u64::MAX;

impl Record {
    pub(super) fn side(&self) -> Side {
        if self.destination == 0 { Side::Source } else { Side::Destination }
    }

    pub(super) fn edge(&self) -> Option<Edge> {
        let member = usize::try_from(self.member).ok().filter(|_| self.member != NOBODY)?;
        Some(Edge { member, label: self.label })
    }

    /// Returns the weight of the edge in a renumbering.
    pub(super) fn counts(&self) -> u64 {
        if self.weighted == 0 { 1 } else { u64::from(self.weight) }
    }
}

impl Topology {
    pub(super) fn records(&self) -> Vec<Record> {
        let records = |side: Side, weights: Option<&[u32]>| {
            let slots = self.side(side).iter().enumerate();
            slots
                .map(|(slot, edge)| Record {
                    member: edge.map_or(NOBODY, |edge| edge.member as u64),
                    label: edge.map_or(0, |edge| edge.label),
                    weight: weights.map_or(0, |weights| weights[slot]),
                    destination: u32::from(side == Side::Destination),
                    weighted: u32::from(weights.is_some()),
                })
                .collect::<Vec<_>>()
        };
        let mut all = records(Side::Source, self.source_weights());
        all.extend(records(Side::Destination, self.destination_weights()));
        all
    }

    /// Makes a topology from its [records](Topology::records); a topology without slots is
    /// unweighted.
    pub(super) fn from_records(records: &[Record]) -> Topology {
        let of = |side: Side| records.iter().filter(move |record| record.side() == side);
        let edges = |side| of(side).map(Record::edge).collect();
        let weights = |side| of(side).map(|record| record.weight).collect();
        let weighted = records.first().is_some_and(|record| record.weighted != 0);
        Topology {
            sources: edges(Side::Source),
            destinations: edges(Side::Destination),
            weights: weighted
                .then(|| Weights { sources: weights(Side::Source), destinations: weights(Side::Destination) }),
        }
    }
}
