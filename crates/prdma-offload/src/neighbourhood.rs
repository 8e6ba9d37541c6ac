//! A group whose members know their neighbours.

use crate::{
    Result,
    init::{self, Channel},
    publish::Published,
    topology::Topology,
    transient::Mailboxes,
};
use core::fmt;
use rdma_fabric::{Group, GroupMemory};

/// A group of ranks with a topology (MPI: a communicator with one): what requests are made on.
///
/// All members make the same collective calls on it in the same order.
pub struct Neighbourhood {
    pub(crate) group: Group,
    pub(crate) topology: Topology,
    pub(crate) channels: Vec<Channel>,
    /// Where members publish tables to each other.
    pub(crate) headers: GroupMemory,
    /// Of exchanges that are not persistent; made by the first of them.
    pub(crate) mailboxes: Option<Mailboxes>,
}

impl fmt::Debug for Neighbourhood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Neighbourhood({:?}, {} channels)", self.group, self.channels.len())
    }
}

impl Neighbourhood {
    /// Give the members of `group` the neighbours that each names. Collective.
    ///
    /// # Errors
    /// As [`Group::memory`]; [`rdma_fabric::FabricError::NoSuchRank`] for an edge to nobody.
    pub async fn new(mut group: Group, topology: Topology) -> Result<Self> {
        let headers = group.memory(Published::BYTES).await?;
        let channels = init::channels(&topology, &group)?;
        Ok(Neighbourhood { group, topology, channels, headers, mailboxes: None })
    }

    /// The group.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// The group, for collective calls between requests.
    pub fn group_mut(&mut self) -> &mut Group {
        &mut self.group
    }

    /// The own neighbours.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }
}
