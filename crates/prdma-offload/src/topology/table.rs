//! A topology as it travels to other members: a record for each slot.

use super::{Edge, Side, Topology, Weights};
use bytemuck::{Pod, Zeroable};

/// A slot. Those of sources come before those of destinations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Record {
    /// The other end; [`NOBODY`] beyond a border.
    member: u64,
    label: u32,
    /// 0 of an unweighted topology.
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

    /// How much it counts.
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

    /// The inverse of [`Topology::records`], but that a topology without slots is unweighted.
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
