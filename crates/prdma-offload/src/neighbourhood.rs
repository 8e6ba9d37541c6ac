//! A group whose members know their neighbours.

use crate::{
    Result,
    init::{self, Channel},
    publish::Published,
    topology::Topology,
    transient::Mailboxes,
};
use core::fmt;
use rdma_fabric::{Group, GroupMemory, SessionFabric};

/// A group of ranks with a topology (MPI: a communicator with one): what requests are made on.
///
/// All members make the same collective calls on it in the same order.
pub struct Neighbourhood<F: SessionFabric> {
    pub(crate) group: Group<F>,
    pub(crate) topology: Topology,
    pub(crate) channels: Vec<Channel>,
    /// Where members publish tables to each other.
    pub(crate) headers: GroupMemory<F>,
    /// Of exchanges that are not persistent; made by the first of them.
    pub(crate) mailboxes: Option<Mailboxes<F>>,
}

impl<F: SessionFabric> fmt::Debug for Neighbourhood<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Neighbourhood({:?}, {} channels)", self.group, self.channels.len())
    }
}

impl<F: SessionFabric> Neighbourhood<F> {
    /// Give the members of `group` the neighbours that each names. Collective.
    ///
    /// # Errors
    /// As [`Group::memory`]; [`rdma_fabric::FabricError::NoSuchRank`] for an edge to nobody.
    pub async fn new(mut group: Group<F>, topology: Topology) -> Result<Self> {
        let headers = group.memory(Published::BYTES).await?;
        let channels = init::channels(&topology, &group)?;
        Ok(Neighbourhood { group, topology, channels, headers, mailboxes: None })
    }

    /// The group.
    pub fn group(&self) -> &Group<F> {
        &self.group
    }

    /// The group, for collective calls between requests.
    pub fn group_mut(&mut self) -> &mut Group<F> {
        &mut self.group
    }

    /// The own neighbours.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }
}
