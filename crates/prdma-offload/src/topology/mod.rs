//! Who exchanges with whom: MPI's process topologies (MPI 4.1, chapter 8).
//!
//! A member of a group has *slots*: sources to receive from and destinations to send to, in the order in which a
//! program gives its blocks. The edge of a slot names the other member and a *label*, which tells apart several edges
//! between the same two: an edge from `a` to `b` has the same label at both.
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
//! MPI leaves it to the program that both ends of an edge know of it. [`Topology::check`] finds out.
//!
//! [`Group::me`]: rdma_fabric::Group::me

mod cartesian;
mod check;
mod dims;
mod error;
mod gather;
mod graph;
mod place;
mod reorder;
mod table;
mod verdict;

pub use cartesian::Cartesian;
pub use dims::dims_create;
pub use error::{Side, TopologyError};

/// One end of an edge, as a member sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge {
    /// The member at the other end.
    pub member: usize,
    /// Which of the edges with the same source and destination it is.
    pub label: u32,
}

/// Sources and destinations of one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// By slot; `None` where there is nobody (beyond a border).
    pub(crate) sources: Box<[Option<Edge>]>,
    /// By slot.
    pub(crate) destinations: Box<[Option<Edge>]>,
    /// As many as slots.
    weights: Option<Weights>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Weights {
    sources: Box<[u32]>,
    destinations: Box<[u32]>,
}

impl Topology {
    /// Slots without weights.
    pub(crate) fn of(sources: Box<[Option<Edge>]>, destinations: Box<[Option<Edge>]>) -> Self {
        Topology { sources, destinations, weights: None }
    }

    /// Whom blocks come from, by slot; `None` beyond a border, where nothing comes and the block stays as it is.
    pub fn sources(&self) -> &[Option<Edge>] {
        &self.sources
    }

    /// Whom blocks go to, by slot.
    pub fn destinations(&self) -> &[Option<Edge>] {
        &self.destinations
    }

    /// The weights of the sources, by slot; `None` if the topology is unweighted (`MPI_UNWEIGHTED`).
    pub fn source_weights(&self) -> Option<&[u32]> {
        self.weights.as_ref().map(|weights| &*weights.sources)
    }

    /// The weights of the destinations, by slot.
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
