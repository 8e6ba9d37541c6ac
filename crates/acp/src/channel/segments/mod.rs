//! Segmented buffers: slots that the program fills and takes itself.
//!
//! The counters never decrease, and `head <= sent <= tail <= head + segments`: the tail counts the
//! segments that the source has filled, **sent* counts those known to be visible at the
//! destination, and the head those that the destination has returned.

mod creation;
mod destination;
mod sides;
mod source;

pub(super) use destination::Destination;
pub use sides::{SegmentDestination, SegmentSource};
pub(super) use source::Source;

use super::link::LocalSide;
use crate::{AcpError, Result, SegmentsDiffer};
use rdma_fabric::RemoteAddr;

/// The memory of one side.
#[derive(Clone, Copy, Debug)]
pub(in crate::channel) struct Buffer {
    pub(in crate::channel) at: RemoteAddr,
    pub(in crate::channel) segment_bytes: usize,
    pub(in crate::channel) segments: u64,
}

#[deny(clippy::arithmetic_side_effects)]
impl Buffer {
    pub(in crate::channel) fn bytes(&self) -> usize {
        // All segments were resolved when it was created.
        self.segment_bytes.saturating_mul(self.segments as usize)
    }

    /// Checks that the other side has the same segments.
    fn check(&self, local: &LocalSide, bytes: u64, segments: u64) -> Result<()> {
        let (here, there) = ((self.segment_bytes as u64, self.segments), (bytes, segments));
        if here == there {
            return Ok(());
        }
        Err(AcpError::SegmentsDiffer(Box::new(SegmentsDiffer { peer: local.peer, here, there })))
    }
}
