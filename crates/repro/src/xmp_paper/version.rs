//! The versions that the paper compares, and ours.

use crate::{
    simulate::Shape,
    workloads::reflects::{Library, Meeting, Order},
};
use std::fmt;
use tofu2_sim::virt::Platform;
use xmp_reflect::Transport;

/// How the shadows are updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// MPI by hand.
    Mpi,
    /// XMP-dt: derived datatypes, whose blocks the message layer gathers.
    Datatypes,
    /// XMP-pack.
    Pack,
    /// XMP-async: asynchronous, nothing computed meanwhile.
    Async,
    /// XMP-async-olap: as much as possible computed meanwhile.
    Overlap,
    /// MPI-RDMA: by hand, neighbours wait for each other.
    RdmaByHand,
    /// XMP-RDMA: two barriers of all nodes, which are made of puts.
    Rdma,
    /// The same with barriers of the barrier unit.
    RdmaUnit,
    /// XMP-dt, if the message layer puts block after block instead.
    Scattered,
    /// XMP-async, if so.
    ScatteredAsync,
    /// XMP-async-olap, if so.
    ScatteredOverlap,
    /// Our prediction: the runtime's RDMA with neighbours that wait for each other.
    Blocks,
    /// Our prediction: the same, asynchronous, as much as possible computed meanwhile.
    BlocksOverlap,
}

impl Version {
    /// All of them.
    pub const ALL: [Version; 13] = [
        Version::Mpi,
        Version::Datatypes,
        Version::Pack,
        Version::Async,
        Version::Overlap,
        Version::RdmaByHand,
        Version::Rdma,
        Version::RdmaUnit,
        Version::Scattered,
        Version::ScatteredAsync,
        Version::ScatteredOverlap,
        Version::Blocks,
        Version::BlocksOverlap,
    ];
    /// Those that are run flat-parallel.
    pub const FLAT: [Version; 4] = [Version::Mpi, Version::Datatypes, Version::Scattered, Version::Pack];

    /// Returns the paper's name, or what ours is.
    pub const fn name(self) -> &'static str {
        match self {
            Version::Mpi => "MPI",
            Version::Datatypes => "XMP-dt",
            Version::Pack => "XMP-pack",
            Version::Async => "XMP-async",
            Version::Overlap => "XMP-async-olap",
            Version::RdmaByHand => "MPI-RDMA",
            Version::Rdma => "XMP-RDMA",
            Version::RdmaUnit => "XMP-RDMA, barrier unit",
            Version::Scattered => "XMP-dt, block by block",
            Version::ScatteredAsync => "XMP-async, block by block",
            Version::ScatteredOverlap => "XMP-async-olap, block by block",
            Version::Blocks => "neighbours",
            Version::BlocksOverlap => "neighbours, olap",
        }
    }

    /// Returns whether it is a curve of the paper.
    pub const fn is_papers(self) -> bool {
        !matches!(
            self,
            Version::RdmaUnit
                | Version::Scattered
                | Version::ScatteredAsync
                | Version::ScatteredOverlap
                | Version::Blocks
                | Version::BlocksOverlap
        )
    }

    /// Returns who exchanges.
    pub(super) const fn library(self) -> Library {
        match self {
            Version::Mpi => Library::Messages,
            Version::Pack => Library::Arrays(Transport::Packed),
            Version::Datatypes | Version::Async | Version::Overlap => Library::Gathered,
            Version::Scattered | Version::ScatteredAsync | Version::ScatteredOverlap => Library::Scattered,
            Version::RdmaByHand => Library::ByHand(Meeting::Neighbours),
            Version::Rdma => Library::Arrays(Transport::Barriers),
            Version::RdmaUnit => Library::ByHand(Meeting::Barriers),
            Version::Blocks | Version::BlocksOverlap => Library::Arrays(Transport::Blocks),
        }
    }

    pub(super) const fn order(self) -> Order {
        match self {
            Version::Async | Version::ScatteredAsync => Order::Apart,
            Version::Overlap | Version::ScatteredOverlap | Version::BlocksOverlap => Order::Overlapped,
            _ => Order::InTurn,
        }
    }

    /// Returns whether all nodes wait for all.
    pub(super) const fn has_barriers(self) -> bool {
        matches!(self, Version::Rdma | Version::RdmaUnit)
    }

    /// Returns the machine as this version uses it.
    pub(super) fn machine(self, platform: &Platform) -> Platform {
        let (name, value) = match self.library() {
            // What messages cost is charged where they are sent and received.
            Library::Messages | Library::Arrays(Transport::Packed) => return platform.clone(),
            // The message layer does not know that there are other threads.
            Library::Gathered => ("copy_threads", Some(1)),
            // Every command passes through a layer of software.
            Library::Scattered => ("software.descriptor", platform.value("software.mpi.block")),
            Library::Arrays(_) | Library::ByHand(_) => ("software.descriptor", platform.value("software.fjmpi")),
        };
        platform.clone().with(name, value.unwrap_or(0)).unwrap_or_else(|_| platform.clone())
    }

    /// Returns whether faces are packed, by several threads if there are any.
    pub(super) const fn packs(self) -> bool {
        matches!(self, Version::Mpi | Version::Pack)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// So many nodes, as many in i as in j.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Nodes {
    /// Nodes in i and in j.
    pub shape: Shape,
    /// Ranks in i and in j, with eight ranks on each node.
    pub flat: [u32; 2],
    /// The nodes of these ranks: consecutive ranks, so eight in i, share one.
    pub flat_shape: Shape,
}

impl Nodes {
    /// Those of the runs, 1 to 1024.
    pub const ALL: [Nodes; 6] = [
        Nodes::new(&[1, 1], [8, 1], &[1, 1]),
        Nodes::new(&[2, 2], [8, 4], &[1, 4]),
        Nodes::new(&[4, 4], [16, 8], &[2, 8]),
        Nodes::new(&[8, 8], [32, 16], &[4, 16]),
        Nodes::new(&[16, 16], [64, 32], &[8, 32]),
        Nodes::new(&[32, 32], [128, 64], &[16, 64]),
    ];

    const fn new(shape: &'static [u32], flat: [u32; 2], flat_shape: &'static [u32]) -> Nodes {
        Nodes { shape: Shape::new(shape), flat, flat_shape: Shape::new(flat_shape) }
    }

    /// Returns the number of nodes.
    pub fn many(self) -> u32 {
        self.shape.nodes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flat_ranks_fill_the_nodes() {
        for nodes in Nodes::ALL {
            assert_eq!(nodes.flat.iter().product::<u32>(), 8 * nodes.many());
            assert_eq!(nodes.flat_shape.nodes(), nodes.many());
        }
    }
}
