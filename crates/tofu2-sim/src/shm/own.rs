//! What a rank knows about its own memory; private to the rank.

use super::{
    endpoint::Endpoint,
    heap::{Extent, Heap},
    mapping::Mapping,
    regions,
    symmetric::Symmetric,
};
use rdma_fabric::{FabricError, Rank, RegionKey};
use std::fmt;

/// Allocator state of one rank, under the endpoint's lock.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) heap: Heap,
    /// Local table entries that were freed.
    free: Vec<usize>,
    /// Local table entries from here on were never used.
    next: usize,
    pub(super) symmetric: Symmetric,
    pages: Pages,
}

/// Where the segment's pages come from.
#[derive(Debug)]
pub(super) enum Pages {
    /// From the process's own memory, when they are touched.
    Private,
    /// From a memory file: reserved when a region is allocated, so that no access can find none left.
    #[cfg(target_os = "linux")]
    File(std::os::fd::OwnedFd),
}

impl Own {
    pub(super) fn new(heap_bytes: usize, pages: Pages) -> Self {
        Own {
            heap: Heap::new(heap_bytes),
            free: Vec::new(),
            next: regions::LOCAL.start,
            symmetric: Symmetric::default(),
            pages,
        }
    }

    /// Take and register a local extent of `bytes` bytes.
    pub(super) fn alloc(&mut self, segment: &Mapping, me: Rank, bytes: usize) -> Result<Taken, FabricError> {
        let too_many = FabricError::TooManyRegions { rank: me, limit: regions::LOCAL.len() };
        if self.free.is_empty() && self.next == regions::LOCAL.end {
            return Err(too_many);
        }
        let extent = self.heap.take_local(bytes).map_err(|available| out_of_memory(segment, me, bytes, available))?;
        if let Err(error) = self.prepare(segment, me, bytes, extent) {
            self.heap.give_back_local(extent);
            return Err(error);
        }
        let index = self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        });
        Ok(Taken { key: regions::register(segment, index, extent.offset, bytes), extent })
    }

    /// The opposite of [`Own::alloc`].
    pub(super) fn free(&mut self, segment: &Mapping, taken: &Taken) {
        let index = taken.key.index as usize;
        if regions::deregister(segment, index) {
            self.free.push(index);
        }
        self.heap.give_back_local(taken.extent);
    }

    /// Give an extent its pages and clear it.
    ///
    /// Pages are asked for under the whole extent: bytes count as used from when they are taken, even if their pages
    /// were refused then.
    pub(super) fn prepare(
        &mut self,
        segment: &Mapping,
        me: Rank,
        bytes: usize,
        extent: Extent,
    ) -> Result<(), FabricError> {
        self.pages
            .reserve(extent.offset, extent.len)
            .map_err(|error| error.unwrap_or_else(|| out_of_memory(segment, me, bytes, 0)))?;
        extent.used_before().into_iter().for_each(|(offset, len)| segment.zero(offset, len));
        Ok(())
    }
}

/// A local extent and its key.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) key: RegionKey,
    pub(super) extent: Extent,
}

pub(super) fn out_of_memory(segment: &Mapping, rank: Rank, requested: usize, available: usize) -> FabricError {
    FabricError::OutOfMemory { rank, requested, available, segment: segment.heap_len() }
}

impl Pages {
    /// Make sure that bytes of the heap have pages. `Err(None)` means that there are none left.
    #[cfg_attr(not(target_os = "linux"), allow(unused_variables))]
    fn reserve(&self, offset: usize, len: usize) -> Result<(), Option<FabricError>> {
        match self {
            Pages::Private => Ok(()),
            #[cfg(target_os = "linux")]
            Pages::File(file) => super::processes::memory_file::reserve(file, super::layout::HEAP + offset, len),
        }
    }
}

/// Memory that a rank registered; deregistered when dropped.
///
/// An operation that a peer posted just before may still be under way then, and may reach the region that gets
/// this place next: deregister after a barrier with those who use it.
pub struct Region {
    endpoint: Endpoint,
    key: RegionKey,
    /// Length in bytes, as asked for.
    len: usize,
    /// `None` for symmetric regions, whose place is freed by agreement.
    taken: Option<Taken>,
}

impl Region {
    pub(super) fn local(endpoint: Endpoint, len: usize, taken: Taken) -> Self {
        Region { endpoint, key: taken.key, len, taken: Some(taken) }
    }

    pub(super) fn symmetric(endpoint: Endpoint, len: usize, key: RegionKey) -> Self {
        Region { endpoint, key, len, taken: None }
    }
}

impl rdma_fabric::Region for Region {
    fn key(&self) -> RegionKey {
        self.key
    }

    fn len(&self) -> usize {
        self.len
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.taken.is_some() { "local" } else { "symmetric" };
        write!(f, "Region({:?} of {}, {} bytes, {kind})", self.key, self.endpoint.me(), self.len)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let mut own = self.endpoint.own();
        let segment = self.endpoint.segment();
        match &self.taken {
            Some(taken) => own.free(segment, taken),
            None => own.symmetric.drop_part(segment, self.key),
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::shm::{layout, processes::memory_file};

    #[test]
    fn an_extent_whose_pages_were_refused_asks_for_them_again() {
        const HEAP: usize = 8 * layout::PAGE;
        let whole = memory_file::create("onesided-test", layout::HEAP + HEAP, layout::HEAP).unwrap();
        let segment = Mapping::of_file(&whole, layout::HEAP + HEAP, layout::HEAP).unwrap();
        // Sealed at its size, so that it has no page for any byte of the heap.
        let refusing = memory_file::create("onesided-test", layout::HEAP, layout::HEAP).unwrap();
        let mut own = Own::new(HEAP, Pages::File(refusing));
        for _ in 0..2 {
            let error = own.alloc(&segment, Rank::new(0), 3 * layout::PAGE).unwrap_err();
            assert!(matches!(error, FabricError::System { call: "fallocate", .. }), "{error}");
            let grow = own.heap.promise_symmetric(64);
            let extent = own.heap.take_symmetric(64, grow).unwrap();
            assert!(own.prepare(&segment, Rank::new(0), 64, extent).is_err());
            own.heap.give_back_symmetric(extent);
        }
        own.pages = Pages::File(whole);
        let taken = own.alloc(&segment, Rank::new(0), 3 * layout::PAGE).unwrap();
        assert_eq!(taken.extent.len, 3 * layout::PAGE);
    }
}
