//! The parameters of a coordinator, and why a job can't be started.

use std::{io, net::SocketAddr, time::Duration};

/// The parameters of a coordinator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The number of ranks of the job.
    pub ranks: usize,
    /// The time, from the coordinator's start, within which all ranks have to join.
    pub join_within: Duration,
    /// The time that a rank may be silent, or may take to answer, before it is considered lost; the
    /// same holds for the coordinator. At least some tens of milliseconds; seconds where hosts are
    /// busy.
    pub lease: Duration,
    /// Bytes that every rank receives when it joins.
    pub segment: Vec<u8>,
    /// When ranks that have lost this coordinator elect another one among themselves.
    pub succession: Succession,
}

/// When ranks that have lost their coordinator elect another one among themselves, provided that
/// they are the larger part of the job. An elected coordinator is succeeded in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Succession {
    /// Never: a rank that has lost the coordinator ends.
    Never = 0,
    /// If the coordinator is silent for the lease: the job may be partitioned. If the coordinator's
    /// connections end, its process has ended too, and all ranks end.
    AfterSilence = 1,
    /// Also if its connections end.
    AfterAnyEnd = 2,
}

/// A coordinator could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A job has 1 to `limit` ranks.
    #[error("a job has 1 to {limit} ranks, not {ranks}")]
    Ranks {
        /// The requested number of ranks.
        ranks: usize,
        /// The maximum number of ranks.
        limit: usize,
    },
    /// The segment exceeds the limit of a message.
    #[error("a segment of {size} bytes exceeds the limit of {limit}")]
    Segment {
        /// Its size in bytes.
        size: usize,
        /// The maximum size in bytes.
        limit: usize,
    },
    /// The system refused a call, such as one to listen at this address.
    #[error("{call} for {listen}: {cause}")]
    System {
        /// The call.
        call: &'static str,
        /// The address.
        listen: SocketAddr,
        /// The reason.
        cause: io::Error,
    },
}

/// The maximum number of ranks of a job.
const RANK_LIMIT: usize = 1 << 16;

/// The maximum size of a segment in bytes.
const SEGMENT_LIMIT: usize = 1 << 20;

impl Plan {
    pub(crate) fn check(&self) -> Result<(), StartError> {
        if !(1..=RANK_LIMIT).contains(&self.ranks) {
            return Err(StartError::Ranks { ranks: self.ranks, limit: RANK_LIMIT });
        }
        if self.segment.len() > SEGMENT_LIMIT {
            return Err(StartError::Segment { size: self.segment.len(), limit: SEGMENT_LIMIT });
        }
        Ok(())
    }
}
