//! Locked regions: symmetric memory that only the handles that allocated it can resolve, and local
//! memory that only handles of the same access policy can resolve.
//!
//! [`super::regions`] denies access to other handles; [`super::heap`] explains why no earlier
//! operation hits the bytes. Symmetric locked regions stay mapped and are not reused until every
//! rank has dropped its part, which a rank that holds a reference has not. Once a rank is lost, no
//! further symmetric memory is allocated, so nothing is reused at all. Local locked regions are
//! reused for the next region of the same access policy, whose discipline ensures that no operation
//! on them is in flight when they are dropped.

#![allow(unsafe_code)]

use super::{heap::GRAIN, registration::Registration, symmetric};
use crate::endpoint::Endpoint;
use rdma_fabric::{FabricError, Mapped, Rank, Region, Result};

/// Allocates symmetric memory; a locked region if the handle has a keyring.
pub(crate) async fn alloc_symmetric(endpoint: &Endpoint, bytes: usize) -> Result<Region> {
    let Some(ring) = endpoint.keyring() else { return symmetric::alloc(endpoint, bytes, None).await };
    let region = symmetric::alloc(endpoint, bytes, Some(ring.next_terms())).await?;
    ring.add(region.key());
    Ok(region)
}

/// Returns the location at which `rank`'s part of `region` is mapped.
pub(crate) fn mapped(endpoint: &Endpoint, region: &Region, rank: Rank) -> Result<Mapped> {
    let (target, key) = (endpoint.job().segment(rank)?, region.key());
    let not_mapped = FabricError::NotMapped { rank, region: key };
    let opens = endpoint.keyring().is_some_and(|ring| ring.allows_references() && ring.opens(key));
    let of_this =
        region.registration::<Registration>().is_some_and(|registration| endpoint.is_of(registration.endpoint()));
    if let Some(mapped) = mapped_local(endpoint, region, rank) {
        return Ok(mapped);
    }
    if !opens || !of_this {
        return Err(not_mapped);
    }
    // Looked up in private memory; the extent is the same on every rank.
    let extent = endpoint.allocator().symmetric.extent(key).filter(|extent| extent.len >= region.len());
    if endpoint.job().is_lost(rank) {
        return Err(endpoint.job().loss_of(rank));
    }
    // SAFETY: this is the extent of a region that this handle allocated, together with others whose
    // terms were the same; the borrow keeps it.
    let mapped = extent.and_then(|extent| unsafe { target.mapped(extent.offset, region.len()) });
    debug_assert!(mapped.is_some(), "{region:?} of {}", endpoint.me());
    mapped.ok_or(not_mapped)
}

/// Returns the location of a region that this rank allocated by itself under the handle's access
/// policy.
fn mapped_local(endpoint: &Endpoint, region: &Region, rank: Rank) -> Option<Mapped> {
    let ring = endpoint.keyring().filter(|ring| ring.allows_references() && rank == endpoint.me())?;
    let registration =
        region.registration::<Registration>().filter(|registration| endpoint.is_of(registration.endpoint()))?;
    let (extent, _) = registration.of_policy().filter(|(_, terms)| *terms == ring.local_terms())?;
    let segment = endpoint.job().segment(rank).ok()?;
    // SAFETY: this is the part after the terms of the extent of a region of the handle's access
    // policy, which allows references.
    unsafe { segment.mapped(extent.offset + GRAIN, region.len()) }
}
