//! Virtual time has an end.

use rdma_fabric::Time;
use std::time::Duration;

/// A rank wanted to compute longer than there is virtual time: 64 bits of picoseconds reach 213 days. What its
/// [`RankFailed`](crate::JobError::RankFailed) holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("virtual time ends at {}: at {at} there is not enough left to compute for {} s", Time::MAX, .lasts.as_secs_f64())]
pub struct EndOfTime {
    /// When it began.
    pub at: Time,
    /// How long it wanted to compute.
    pub lasts: Duration,
}
