//! What a coordinator has to know of its job, and why one can't be started.

use std::{io, net::SocketAddr, time::Duration};

/// What a coordinator has to know of its job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// How many ranks the job has.
    pub ranks: usize,
    /// Within which time of the coordinator's start all of them have to come.
    pub join_within: Duration,
    /// For how long a rank may be silent, or owe an answer, before it is held for lost; and the same
    /// for the coordinator. At least some tens of milliseconds; seconds where hosts are busy.
    pub lease: Duration,
    /// Bytes that are told to every rank when it joins.
    pub segment: Vec<u8>,
    /// When ranks that have lost this coordinator find another one among themselves.
    pub succession: Succession,
}

/// When ranks that have lost their coordinator find another one among themselves, if they are the
/// larger part of the job. A coordinator that they have found is succeeded in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Succession {
    /// Never: whoever has lost the coordinator ends.
    Never = 0,
    /// When nothing is heard of it for the lease: the job may be cut. If its connections end, so has
    /// its process, and everybody ends.
    AfterSilence = 1,
    /// Also when its connections end.
    AfterAnyEnd = 2,
}

/// A coordinator could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A job has 1 to `limit` ranks.
    #[error("a job has 1 to {limit} ranks, not {ranks}")]
    Ranks {
        /// How many were asked for.
        ranks: usize,
        /// The most there may be.
        limit: usize,
    },
    /// The segment is more than a message takes.
    #[error("a segment of {size} bytes is more than the {limit} that are told")]
    Segment {
        /// Its bytes.
        size: usize,
        /// How many may be.
        limit: usize,
    },
    /// The system refused a call, such as to listen at this address.
    #[error("{call} for {listen}: {cause}")]
    System {
        /// The call.
        call: &'static str,
        /// The address.
        listen: SocketAddr,
        /// Why.
        cause: io::Error,
    },
}

/// The most ranks of a job.
const RANK_LIMIT: usize = 1 << 16;

/// The most bytes of a segment.
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
