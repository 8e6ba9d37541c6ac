//! The allocator of a rank's own memory, private to the rank.

#![deny(clippy::arithmetic_side_effects)]

use super::{
    existing::{Dismantled, HeldBuffer},
    heap::{Extent, GRAIN, Heap},
    inside::RegionId,
    mapping::Mapping,
    pages::Unchecked,
    regions::{self, RegionKind},
    retired::Retired,
    symmetric::Symmetric,
};
use crate::job::Job;
use core::fmt;
use rdma_fabric::{FabricError, OwnedMemory, Rank, RegionKey, error::OutOfMemory};

pub(crate) use super::pages::Pages;

/// Registers the bytes at an offset of the heap with the network, before a region has them.
pub(crate) type Export = Box<dyn Fn(usize, usize) -> Result<(), FabricError> + Send + Sync>;

/// Registers extents with the network between nodes, if there is one.
#[derive(Default)]
pub(crate) struct Exporter(Option<Export>);

impl Exporter {
    /// Sets the function that registers extents.
    #[cfg(target_os = "linux")]
    pub(crate) fn set(&mut self, export: Export) {
        self.0 = Some(export);
    }
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Exporter" } else { "no Exporter" })
    }
}

/// Allocator state of one rank, protected by the endpoint's lock.
#[derive(Debug)]
pub(crate) struct Allocator {
    pub(crate) heap: Heap,
    /// Freed local table entries.
    free: Vec<usize>,
    /// Local table entries from here on have never been used.
    next: usize,
    pub(crate) symmetric: Symmetric,
    /// Freed extents whose grace period has not ended, each with the terms of its access policy, if
    /// any.
    retired: Retired<(Extent, Option<[u64; 3]>)>,
    /// Adopted memory that was dropped while operations were in progress inside it, each with its
    /// owner.
    pub(super) leaving: Vec<(Rank, HeldBuffer)>,
    pub(super) pages: Pages,
    #[cfg(target_os = "linux")]
    pub(super) program: super::program::ProgramMemory,
    pub(super) unchecked: Unchecked,
    pub(crate) exporter: Exporter,
}

impl Drop for Allocator {
    /// Leaks memory inside which operations are still in progress: they may outlive this rank's
    /// memory.
    fn drop(&mut self) {
        self.leaving.drain(..).for_each(|(_, held)| held.leak());
    }
}

impl Allocator {
    /// Makes the allocator of a rank that shares its machine's memory with the others of `ranks`.
    pub(crate) fn new(heap_bytes: usize, pages: Pages, ranks: usize) -> Self {
        Allocator {
            heap: Heap::new(heap_bytes),
            free: Vec::new(),
            next: regions::LOCAL.start,
            symmetric: Symmetric::default(),
            retired: Retired::default(),
            leaving: Vec::new(),
            pages,
            #[cfg(target_os = "linux")]
            program: super::program::ProgramMemory::default(),
            unchecked: Unchecked::new(ranks),
            exporter: Exporter::default(),
        }
    }

    /// Frees memory inside which no operation is in progress any longer.
    pub(crate) fn settle(&mut self, job: &Job, segment: &Mapping) {
        let heap = &mut self.heap;
        self.retired.reclaim(job, |(extent, terms)| match terms {
            None => heap.give_back_local(extent),
            Some(terms) => heap.give_back_policy(extent, terms),
        });
        if self.leaving.iter().any(|(me, held)| held.is_quiet(job, *me)) {
            let (quiet, leaving) =
                std::mem::take(&mut self.leaving).into_iter().partition(|(me, held)| held.is_quiet(job, *me));
            self.leaving = leaving;
            let quiet: Vec<(Rank, HeldBuffer)> = quiet;
            quiet.into_iter().for_each(|(_, held)| drop(self.dismantle(segment, held)));
        }
    }

    /// Returns when the grace periods of all retired extents will have ended, if some have not.
    pub(crate) fn grace_end(&self) -> Option<std::time::Instant> {
        self.retired.until()
    }

    /// Takes a free local table entry.
    pub(crate) fn take_index(&mut self, me: Rank) -> Result<usize, FabricError> {
        if let Some(index) = self.free.pop() {
            return Ok(index);
        }
        if self.next == regions::LOCAL.end {
            return Err(FabricError::TooManyRegions { rank: me, limit: regions::LOCAL.len() });
        }
        let index = self.next;
        self.next = index.saturating_add(1);
        Ok(index)
    }

    pub(crate) fn give_index(&mut self, index: usize) {
        self.free.push(index);
    }

    /// Takes a local extent of `bytes` bytes, calls `fill` with its offset, and registers it.
    pub(crate) fn alloc(
        &mut self,
        segment: &Mapping,
        me: Rank,
        bytes: usize,
        kind: RegionKind,
        fill: impl FnOnce(usize),
    ) -> Result<RegisteredExtent, FabricError> {
        let index = self.take_index(me)?;
        let extent = match self.heap.take_local(bytes) {
            Ok(extent) => extent,
            Err(available) => {
                self.give_index(index);
                return Err(out_of_memory(segment, me, bytes, available));
            }
        };
        if let Err(error) = self.prepare(segment, me, bytes, extent) {
            self.give_index(index);
            self.heap.give_back_local(extent);
            return Err(error);
        }
        fill(extent.offset);
        Ok(RegisteredExtent { key: regions::register(segment, index, extent.offset, bytes, kind), extent, terms: None })
    }

    /// Takes a local extent for a region of an access policy, and registers it behind its terms.
    pub(crate) fn alloc_policy(
        &mut self,
        segment: &Mapping,
        me: Rank,
        bytes: usize,
        terms: [u64; 3],
    ) -> Result<RegisteredExtent, FabricError> {
        let index = self.take_index(me)?;
        let (whole, kind) = (bytes.saturating_add(GRAIN), RegionKind::Policy);
        let taken = self
            .heap
            .take_for_policy(whole, terms)
            .map_err(|available| out_of_memory(segment, me, bytes, available.saturating_sub(GRAIN)));
        let prepared = taken.and_then(|extent| match self.prepare(segment, me, whole, extent) {
            Ok(()) => Ok(extent),
            Err(error) => {
                self.heap.give_back_policy(extent, terms);
                Err(error)
            }
        });
        let extent = prepared.inspect_err(|_| self.give_index(index))?;
        regions::write_terms(segment, extent.offset, terms);
        // The extent has a grain for the terms besides the region.
        let key = regions::register(segment, index, extent.offset.saturating_add(GRAIN), bytes, kind);
        Ok(RegisteredExtent { key, extent, terms: Some(terms) })
    }

    /// Deregisters an extent taken by [`Allocator::alloc`] and retires it.
    pub(crate) fn free(&mut self, segment: &Mapping, me: Rank, taken: &RegisteredExtent) {
        let index = taken.key.index as usize;
        if regions::deregister(segment, index) {
            self.give_index(index);
        }
        self.retired.retire(RegionId::new(me, taken.key), (taken.extent, taken.terms));
    }

    /// Deregisters an extent and never reuses it: an operation may stay inside forever.
    pub(crate) fn leak(&mut self, segment: &Mapping, taken: &RegisteredExtent) {
        let index = taken.key.index as usize;
        if regions::deregister(segment, index) {
            self.give_index(index);
        }
    }

    /// Takes apart adopted memory inside which no operation is in progress.
    pub(crate) fn dismantle(&mut self, segment: &Mapping, held: HeldBuffer) -> Option<OwnedMemory> {
        let Dismantled { memory, index, extent } = held.dismantle(segment);
        if let Some(index) = index {
            self.give_index(index);
        }
        if let Some(extent) = extent {
            // Every operation on it was announced.
            self.heap.give_back_local(extent);
        }
        memory
    }

    /// Provides an extent with its pages, registers it with the network, and clears it.
    ///
    /// Pages are requested for the whole extent: bytes count as used once they are taken, even if
    /// the system refused their pages then.
    pub(crate) fn prepare(
        &mut self,
        segment: &Mapping,
        me: Rank,
        bytes: usize,
        extent: Extent,
    ) -> Result<(), FabricError> {
        self.pages
            .take(segment, &mut self.unchecked, (me, bytes), extent)
            .map_err(|error| error.unwrap_or_else(|| out_of_memory(segment, me, bytes, 0)))?;
        if let Exporter(Some(export)) = &self.exporter {
            export(extent.offset, extent.len)?;
        }
        extent.used_before().into_iter().for_each(|(offset, len)| segment.zero(offset, len));
        Ok(())
    }
}

/// A local extent and its key.
#[derive(Debug)]
pub(crate) struct RegisteredExtent {
    pub(crate) key: RegionKey,
    /// All bytes, including the terms in front of the region.
    pub(crate) extent: Extent,
    /// The terms of the access policy under which the region was allocated, which are in front of
    /// it.
    pub(crate) terms: Option<[u64; 3]>,
}

pub(crate) fn out_of_memory(segment: &Mapping, rank: Rank, requested: usize, available: usize) -> FabricError {
    FabricError::from(OutOfMemory { rank, requested, available, segment: segment.heap_len() })
}

#[cfg(all(test, target_os = "linux", not(miri)))]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::*;
    use crate::{
        memory::{layout, mapping::MappedFile},
        processes::memory_file,
    };

    /// Returns a file whose every page the system refuses for lack of memory; prints that the test
    /// is skipped if there is no such file.
    fn no_huge_pages() -> Option<std::os::fd::OwnedFd> {
        use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
        let made = memfd_create("onesided-test", MemfdFlags::CLOEXEC | MemfdFlags::HUGETLB)
            .and_then(|file| ftruncate(&file, 1 << 30).map(|()| file))
            .ok();
        let free = std::fs::read_to_string("/proc/meminfo").ok()?;
        let none = free.lines().any(|line| line.replace(' ', "") == "HugePages_Free:0");
        let file = made.filter(|_| none);
        if file.is_none() {
            println!("skipped: no file without memory here");
        }
        file
    }

    #[test]
    fn an_extent_whose_pages_were_refused_asks_for_them_again() {
        const HEAP: usize = 8 * layout::PAGE;
        let whole = memory_file::create("onesided-test", layout::HEAP + HEAP, layout::HEAP).unwrap();
        let map = MappedFile::new(&whole, layout::HEAP + HEAP).unwrap();
        let segment = Mapping::of_file(&map, 0, layout::HEAP + HEAP, layout::HEAP);
        let pages = |file| Pages::File { file, heap_at: layout::HEAP };
        // Sealed at its size, so it has no page for any byte of the heap.
        let refusing = memory_file::create("onesided-test", layout::HEAP, layout::HEAP).unwrap();
        let mut allocator = Allocator::new(HEAP, pages(refusing), 1);
        for _ in 0..2 {
            let error =
                allocator.alloc(&segment, Rank::new(0), 3 * layout::PAGE, RegionKind::Heap, |_| ()).unwrap_err();
            assert!(matches!(error, FabricError::System { call: &"fallocate", .. }), "{error}");
            let limit = allocator.heap.promise_symmetric(64);
            let extent = allocator.heap.take_symmetric(64, limit).unwrap();
            assert!(allocator.prepare(&segment, Rank::new(0), 64, extent).is_err());
            allocator.heap.give_back_symmetric(extent);
        }
        // A file of huge pages, none of which are left.
        if let Some(empty) = no_huge_pages() {
            allocator.pages = pages(empty);
            let error =
                allocator.alloc(&segment, Rank::new(0), 3 * layout::PAGE, RegionKind::Heap, |_| ()).unwrap_err();
            let none = FabricError::from(OutOfMemory {
                rank: Rank::new(0),
                requested: 3 * layout::PAGE,
                available: 0,
                segment: HEAP,
            });
            assert_eq!(error, none);
        }
        allocator.pages = pages(whole);
        let taken = allocator.alloc(&segment, Rank::new(0), 3 * layout::PAGE, RegionKind::Heap, |_| ()).unwrap();
        assert_eq!(taken.extent.len, 3 * layout::PAGE);
    }
}
