//! Creating the sides of segmented buffers.

#![deny(clippy::arithmetic_side_effects)]

use super::{Buffer, SegmentDestination, SegmentSource};
use crate::{Acp, AcpError, GlobalAddress, Result};
use core::future::Future;
use rdma_fabric::{Rank, provider::Boxed};

impl Acp {
    /// Creates the source of a segmented buffer for the destination at rank `to`: `segments`
    /// segments of `segment_bytes` bytes each, starting at an address of this rank; the memory must
    /// stay registered. Local; the k-th source for a rank belongs to the k-th destination that rank
    /// `to` creates for this rank.
    ///
    /// # Errors
    /// [`AcpError::NotOwn`], [`AcpError::NoSuchRegion`], [`AcpError::OutOfBounds`];
    /// [`AcpError::Option`] if there are no segments or no bytes; as [`Acp::sender`].
    pub fn segment_source(
        &self,
        to: Rank,
        buffer: GlobalAddress,
        segment_bytes: usize,
        segments: usize,
    ) -> impl Future<Output = Result<SegmentSource>> {
        let created: Boxed<'_, Result<SegmentSource>> = Box::pin(async move {
            let own = self.own_buffer(buffer, segment_bytes, segments).await?;
            let number = self.create(to, |channels, peer| channels.create_source(peer, own))?;
            Ok(SegmentSource { acp: self.clone(), number, peer: to, buffer, segment_bytes })
        });
        created
    }

    /// Creates the destination of a segmented buffer for the source at rank `from`, as
    /// [`Acp::segment_source`] does the source.
    ///
    /// # Errors
    /// As [`Acp::segment_source`].
    pub fn segment_destination(
        &self,
        from: Rank,
        buffer: GlobalAddress,
        segment_bytes: usize,
        segments: usize,
    ) -> impl Future<Output = Result<SegmentDestination>> {
        let created: Boxed<'_, Result<SegmentDestination>> = Box::pin(async move {
            let own = self.own_buffer(buffer, segment_bytes, segments).await?;
            let number = self.create(from, |channels, peer| channels.create_destination(peer, own))?;
            Ok(SegmentDestination { acp: self.clone(), number, peer: from, buffer, segment_bytes })
        });
        created
    }

    async fn own_buffer(&self, buffer: GlobalAddress, segment_bytes: usize, segments: usize) -> Result<Buffer> {
        if buffer.rank() != self.rank() {
            return Err(AcpError::NotOwn { address: buffer });
        }
        let bytes = segment_bytes.checked_mul(segments);
        match bytes {
            Some(0) if segments == 0 => return Err(AcpError::option("segments", "at least 1", 0)),
            Some(0) => return Err(AcpError::option("segment_bytes", "at least 1", 0)),
            _ => {}
        }
        let at = self.span(buffer, bytes.unwrap_or(usize::MAX)).await?.addr();
        Ok(Buffer { at, segment_bytes, segments: segments as u64 })
    }
}
