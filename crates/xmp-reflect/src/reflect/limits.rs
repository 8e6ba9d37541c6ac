//! Limits of a machine's interface for remote memory access.

use super::Transport;
use crate::{NodeSet, Result, XmpError};
use core::ops::RangeInclusive;

/// Limits that a machine's RDMA interface sets to reflects, where the transport puts blocks by it:
/// [`Transport::Blocks`], [`Transport::Fast`], [`Transport::Mrc`] and [`Transport::Barriers`].
/// Messages ([`Transport::Packed`], [`Transport::Datatypes`]) and windows have none. A reflect
/// outside the limits is refused before anything is moved.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RdmaLimits {
    /// The ids of asynchronous reflects, which the interface gets as tags. Each node checks its own
    /// id, which is the same at all nodes that take part in a reflect.
    pub ids: RangeInclusive<u64>,
    /// Whether only node sets of all ranks are possible, because ranks are those of the whole job.
    pub world_only: bool,
}

impl Default for RdmaLimits {
    fn default() -> Self {
        RdmaLimits::NONE
    }
}

impl RdmaLimits {
    /// No limits: this crate's protocols need neither tags nor numbers of the whole job.
    pub const NONE: RdmaLimits = RdmaLimits { ids: 0..=u64::MAX, world_only: false };

    /// The extended RDMA interface of the K computer (paper, section 5.1): tags 0 to 14, and ranks
    /// of `MPI_COMM_WORLD`.
    pub const K: RdmaLimits = RdmaLimits { ids: 0..=14, world_only: true };
}

impl NodeSet {
    /// Checks that a transport can be used by this node set.
    ///
    /// # Errors
    /// [`XmpError::NotWorld`].
    pub(super) fn admits(&self, transport: Transport) -> Result<()> {
        let (nodes, ranks) = (self.group.len(), self.fabric().ranks());
        if self.limits.world_only && transport.is_rdma() && nodes < ranks {
            return Err(XmpError::NotWorld { transport: transport.to_string(), nodes, ranks });
        }
        Ok(())
    }

    /// Checks that an asynchronous reflect by a transport can have an id.
    ///
    /// # Errors
    /// [`XmpError::AsyncId`].
    pub(super) fn admits_id(&self, transport: Transport, id: u64) -> Result<()> {
        if transport.is_rdma() && !self.limits.ids.contains(&id) {
            let allowed = self.limits.ids.clone();
            return Err(XmpError::AsyncId { transport: transport.to_string(), id, allowed });
        }
        Ok(())
    }
}
