//! The versions compared in the paper, and ours.

use crate::{
    shape::Shape,
    workloads::reflects::{Library, Meeting, Order},
};
use std::fmt;
use tofu2_sim::virt::Platform;
use xmp_reflect::Transport;

/// A way to update the shadows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// MPI by hand.
    Mpi,
    /// XMP-dt: derived datatypes, whose blocks the message layer gathers.
    Datatypes,
    /// XMP-pack.
    Pack,
    /// XMP-async: asynchronous, without overlapped computation.
    Async,
    /// XMP-async-olap: asynchronous, with as much overlapped computation as possible.
    Overlap,
    /// MPI-RDMA: by hand; neighbours wait for each other.
    RdmaByHand,
    /// XMP-RDMA: two barriers of all nodes, which consist of puts.
    Rdma,
    /// The same with barriers of the barrier unit.
    RdmaUnit,
    /// XMP-dt, if the message layer puts block after block instead.
    Scattered,
    /// XMP-async, in the same case.
    ScatteredAsync,
    /// XMP-async-olap, in the same case.
    ScatteredOverlap,
    /// Our prediction: the runtime's RDMA with neighbours that wait for each other.
    Blocks,
    /// Our prediction: the same, asynchronous, with as much overlapped computation as possible.
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
    /// The versions of the flat-parallel runs.
    pub const FLAT: [Version; 4] = [Version::Mpi, Version::Datatypes, Version::Scattered, Version::Pack];

    /// Returns the paper's name, or our own.
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

    /// Returns the library that exchanges.
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

    /// Returns whether all nodes wait for each other.
    pub(super) const fn has_barriers(self) -> bool {
        matches!(self, Version::Rdma | Version::RdmaUnit)
    }

    /// Returns the machine as used by this version.
    pub(super) fn machine(self, platform: &Platform) -> Platform {
        let (name, value) = match self.library() {
            // The costs of messages are charged at sends and receives.
            Library::Messages | Library::Arrays(Transport::Packed) => return platform.clone(),
            // The message layer has no access to other threads.
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

/// A number of nodes, with equal numbers in i and j.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Nodes {
    /// The numbers of nodes in i and j.
    pub shape: Shape,
    /// The numbers of ranks in i and j, with eight ranks on each node.
    pub flat: [u32; 2],
    /// The nodes of these ranks: eight consecutive ranks in i share one node.
    pub flat_shape: Shape,
}

impl Nodes {
    /// The numbers of nodes of the runs, 1 to 1024.
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
