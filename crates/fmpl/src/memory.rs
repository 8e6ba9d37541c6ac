//! The memory consumption of a communicator on this rank.

#![deny(clippy::arithmetic_side_effects)]

use crate::{Communicator, Result, state::Peer};
use rdma_fabric::Rank;

/// Bytes that a communicator uses on this rank ([`Communicator::memory`]), excluding the spool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Memory {
    /// Registered: the matching areas for the maximum number of [peers](crate::Options::peers).
    pub areas: usize,
    /// Registered: one of these areas. Those of peers that are never used are never written to.
    pub area: usize,
    /// Registered: the buffers of hardware broadcasts, if any.
    pub staging: usize,
    /// The number of peers contacted so far.
    pub met: usize,
    /// Not registered: the state kept for these peers, and the list of members unless they are all
    /// ranks of the job.
    pub kept: usize,
}

impl Communicator {
    /// Returns the memory that the communicator currently uses on this rank.
    ///
    /// # Errors
    /// [`FmplError::OtherThread`](crate::FmplError::OtherThread).
    #[expect(clippy::arithmetic_side_effects, reason = "sizes of memory that is there")]
    pub fn memory(&self) -> Result<Memory> {
        let (met, channels, staging) = self.with(|state| {
            let channels = state.peers.iter().map(|peer| peer.channels.bytes()).sum::<usize>();
            (state.peers.len(), channels, state.collectives.staging_bytes())
        })?;
        let list = self.listed.as_ref().map_or(0, |ranks| size_of::<Rank>() * ranks.len());
        let kept = met * size_of::<Peer>() + channels + list;
        Ok(Memory { areas: self.layout.bytes(), area: self.layout.area_bytes(), staging, met, kept })
    }
}
