//! The heap of a rank's segment as memory of libfabric.
//!
//! A [`Heap`] stays mapped as long as its `keep` lives. It is accessed only by atomics or
//! `rdma_fabric::access`, because ranks of the node write it at any time. [`Domain::region_over`]
//! requires nothing else.
#![allow(unsafe_code)]

use crate::{Domain, Region, Result};
use tofu2_shm::part::Heap;

/// Registers a heap.
///
/// # Errors
/// Those of [`Domain::region_over`].
pub(super) fn register(domain: &Domain, heap: &Heap) -> Result<Region> {
    // SAFETY: as above: `keep` is kept as long as the region is.
    unsafe { domain.region_over(heap.start(), heap.len(), heap.keep()) }
}
