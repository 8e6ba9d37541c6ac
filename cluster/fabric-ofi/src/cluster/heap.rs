//! The heap of a rank's segment as memory of libfabric.
//!
//! A [`Heap`] stays mapped as long as its `keep` lives. It is accessed only by atomics or
//! `rdma_fabric::access`, because ranks of the node write it at any time. [`Domain::region_over`]
//! requires nothing else.
#![allow(unsafe_code)]

use crate::{Domain, Region, Result};
use core::ops::Range;
use tofu2_shm::part::Heap;

/// Registers a range of a heap, which is not empty, starts at a multiple of 8 and ends in the heap.
///
/// # Errors
/// Those of [`Domain::region_over`]; [`crate::OfiError::OutOfBounds`] for another range.
pub(super) fn register(domain: &Domain, heap: &Heap, range: Range<usize>) -> Result<Region> {
    let Range { start, end } = range;
    if start > end || end > heap.len() {
        let (offset, len) = (start as u64, end.saturating_sub(start));
        return Err(crate::OfiError::OutOfBounds { whose: "own", key: 0, offset, len, size: heap.len() as u64 });
    }
    // SAFETY: the range is in the heap, as checked above; for the rest see above: `keep` is kept as
    // long as the region is.
    unsafe { domain.region_over(heap.start().add(start), end - start, heap.keep()) }
}
