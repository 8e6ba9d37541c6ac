//! Resolved places and the location of their bytes.
//!
//! Bytes of a segment are mapped and mostly accessed without this provider: see
//! [`rdma_fabric::provider::Place`]. This module handles only accesses that are long, intercepted,
//! refused, or outside all segments.

use super::{
    adopted::Outside,
    mapping::{Mapping, Piece},
    regions,
};
use crate::job::{Job, abort};
use rdma_fabric::{
    FabricError, RemoteAddr, Result,
    provider::{KeepAlive, Place},
};
use std::sync::Arc;

/// Content of the keep-alive of a place outside all segments. The keep-alive of any other place
/// holds its segment, an `Arc<Mapping>`.
struct OutsidePlace {
    /// The segment whose table registers the bytes.
    target: Arc<Mapping>,
    /// Offset in the region at which `outside` starts.
    first: u64,
    outside: Outside,
}

/// Returns the place of existing memory that is registered in `target`'s table.
pub(crate) fn outside_of(target: &Arc<Mapping>, addr: RemoteAddr, outside: Outside) -> Place {
    let len = outside.len();
    let apart = OutsidePlace { target: target.clone(), first: addr.offset, outside };
    Place::remote(addr, len, KeepAlive::new(apart))
}

/// Wakes the owner of a place if it is parked and waits for bytes of the place.
pub(crate) fn ring(place: &Place) {
    // Only places in segments are written without this provider.
    if let Some(segment) = place.keep_alive::<Arc<Mapping>>() {
        segment.ring_for(place.start(), place.len());
    }
}

/// A place of this provider, with its bytes located.
pub(crate) struct LocatedPlace<'a> {
    pub(crate) addr: RemoteAddr,
    pub(crate) len: usize,
    /// The segment whose table registers the bytes.
    pub(crate) target: &'a Arc<Mapping>,
    pub(crate) bytes: Bytes<'a>,
}

/// The location of the bytes of a place.
pub(crate) enum Bytes<'a> {
    Segment(Piece<&'a Mapping>),
    Outside(Outside),
}

impl<'a> LocatedPlace<'a> {
    /// Locates a place of a job.
    ///
    /// An operation is announced under the address of its place, in the job of the rank that posts
    /// it. So the memory that is accessed must be that of the address, and of this job: a place of
    /// another job would be accessed without its owner noticing.
    ///
    /// # Errors
    /// [`FabricError::Unsupported`] for a place of another provider or job.
    pub(crate) fn of(job: &Job, place: &'a Place) -> Result<Self> {
        Self::find(job, place).ok_or(FabricError::Unsupported { feature: &"a place of another provider" })
    }

    fn find(job: &Job, place: &'a Place) -> Option<Self> {
        let (addr, len) = (place.addr(), place.len());
        let is_of_job = |target| job.segment_of(addr.rank).is_some_and(|segment| Arc::ptr_eq(segment, target));
        if let Some(target) = place.keep_alive::<Arc<Mapping>>().filter(|target| is_of_job(target)) {
            let generation_at = regions::entry_at(addr.region)?;
            let piece = target.piece_from(place.start(), len, generation_at, addr.region.generation.into())?;
            return Some(LocatedPlace { addr, len, target, bytes: Bytes::Segment(piece) });
        }
        let OutsidePlace { target, first, outside } =
            place.keep_alive().filter(|place: &&OutsidePlace| is_of_job(&place.target))?;
        let at = usize::try_from(addr.offset.checked_sub(*first)?).ok()?;
        Some(LocatedPlace { addr, len, target, bytes: Bytes::Outside(outside.part(at, len)?) })
    }

    /// Returns the `len` bytes starting at `offset`; `None` if they are not inside.
    pub(crate) fn part(&self, offset: usize, len: usize) -> Option<Self> {
        let bytes = match &self.bytes {
            Bytes::Segment(piece) => Bytes::Segment(piece.part(offset, len)?),
            Bytes::Outside(outside) => Bytes::Outside(outside.part(offset, len)?),
        };
        let addr = RemoteAddr { offset: self.addr.offset + offset as u64, ..self.addr };
        Some(LocatedPlace { addr, len, target: self.target, bytes })
    }

    pub(crate) fn outside(&self) -> Option<&Outside> {
        match &self.bytes {
            Bytes::Segment(_) => None,
            Bytes::Outside(outside) => Some(outside),
        }
    }

    /// Returns the value of its segment's [`super::layout::LOST`].
    fn lost(&self) -> u64 {
        match &self.bytes {
            Bytes::Segment(piece) => piece.lost(),
            Bytes::Outside(outside) => outside.life().lost(),
        }
    }

    fn is_stale(&self) -> bool {
        match &self.bytes {
            Bytes::Segment(piece) => piece.is_stale(),
            Bytes::Outside(outside) => outside.life().is_stale(),
        }
    }

    /// Returns whether the place's rank is not lost and its region is registered.
    pub(crate) fn is_fit(&self) -> bool {
        self.lost() == 0 && !self.is_stale()
    }

    /// Returns why an access of `len` bytes, aligned to `align`, was refused.
    #[cold]
    pub(crate) fn refusal(&self, len: usize, align: usize) -> FabricError {
        let RemoteAddr { rank, region, .. } = self.addr;
        let lost = self.lost();
        if lost != 0 {
            abort::loss(rank, lost)
        } else if self.is_stale() {
            FabricError::StaleRegion { rank, region }
        } else if self.len != len {
            FabricError::length_mismatch(len, self.len)
        } else {
            FabricError::misaligned(self.addr, align)
        }
    }

    /// Returns the offset that a wait for the bytes watches: their offset in the segment, or 0
    /// outside it, which represents everything.
    pub(crate) fn watched_at(&self) -> usize {
        match &self.bytes {
            Bytes::Segment(piece) => piece.offset(),
            Bytes::Outside(_) => 0,
        }
    }

    /// Wakes the owner if it is parked and waits for the bytes.
    pub(crate) fn ring(&self) {
        match &self.bytes {
            Bytes::Segment(piece) => piece.ring(),
            Bytes::Outside(_) => self.target.ring_for_anything(),
        }
    }

    /// Wakes the owner if it is parked and waits for notices, or for the bytes.
    pub(crate) fn ring_with_notice(&self) {
        match &self.bytes {
            Bytes::Segment(piece) => piece.ring_with_notice(),
            Bytes::Outside(_) => {
                self.target.ring_for_anything();
                self.target.ring_for_notice();
            }
        }
    }
}
