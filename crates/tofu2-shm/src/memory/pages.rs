//! The sources of the pages of a segment's heap, and the check whether pages are available.
//!
//! A region has its pages when it is allocated, so that no access to it fails: a system that
//! overcommits memory kills a process when memory runs out. Pages are taken in pieces, each of
//! which is first compared with the memory left in the machine and in the control group.

#![deny(clippy::arithmetic_side_effects)]

use super::{heap::Extent, mapping::Mapping};
use rdma_fabric::{FabricError, Rank, error::OutOfMachineMemory};
use tofu2_job::available::{self, Left, STEP};

/// The number of bytes taken at a time. Other ranks may take as many between the comparison and the
/// allocation.
const PIECE: usize = 4 << 20;

/// The bytes that each of many ranks may take between two comparisons.
const SHARE: usize = 64 << 10;

/// The source of the segment's pages.
#[derive(Debug)]
pub(crate) enum Pages {
    /// From the process's own memory.
    Private,
    /// From a memory file.
    #[cfg(target_os = "linux")]
    File {
        file: std::os::fd::OwnedFd,
        /// Offset in the file where the segment's heap starts.
        heap_at: usize,
    },
}

/// Counts the bytes that were taken without a comparison.
#[derive(Debug)]
pub(super) struct Unchecked {
    bytes: usize,
    /// The number of ranks that use memory of this machine.
    ranks: usize,
}

impl Unchecked {
    pub(super) fn new(ranks: usize) -> Self {
        Unchecked { bytes: 0, ranks }
    }

    /// Returns the number of ranks that use memory of this machine.
    pub(super) fn ranks(&self) -> usize {
        self.ranks
    }

    /// Returns whether a comparison is due before `bytes` more are taken.
    pub(super) fn is_due(&self, bytes: usize) -> bool {
        self.bytes.saturating_add(bytes) >= STEP.checked_div(self.ranks).unwrap_or(STEP).max(SHARE)
    }

    /// Counts bytes that are about to be taken. Returns whether a comparison is due.
    fn count(&mut self, bytes: usize) -> bool {
        let due = self.is_due(bytes);
        self.bytes = if due { 0 } else { self.bytes.saturating_add(bytes) };
        due
    }
}

impl Pages {
    /// Ensures that an extent of the heap has pages. `Err(None)` means that none are left; the
    /// extent then has no more pages than before.
    pub(super) fn take(
        &self,
        segment: &Mapping,
        unchecked: &mut Unchecked,
        (rank, requested): (Rank, usize),
        extent: Extent,
    ) -> Result<(), Option<FabricError>> {
        // Bytes that have been in use before already have their pages, unless these were refused.
        let (start, end) = (extent.fresh_start, extent.fresh_end);
        let fresh = end.saturating_sub(start);
        if unchecked.count(fresh) {
            let mut at = start;
            while at < end {
                let left = end.saturating_sub(at);
                let taken = available::check(left as u64, available::memory())
                    .map_err(|left| {
                        let Left { amount: available, limit } = left;
                        Some(FabricError::from(OutOfMachineMemory { rank, requested, ranks: 1, available, limit }))
                    })
                    .and_then(|()| self.reserve(segment, at, PIECE.min(left)));
                taken.inspect_err(|_| self.release(start, at))?;
                at = at.saturating_add(PIECE).min(end);
            }
        } else if matches!(self, Pages::Private) {
            self.reserve(segment, start, fresh)?;
        }
        match self {
            Pages::Private => Ok(()),
            #[cfg(target_os = "linux")]
            Pages::File { .. } => self.reserve(segment, extent.offset, extent.len),
        }
    }

    /// Provides `len` bytes of the heap with pages. The bytes keep their contents in a file, and
    /// are zeroed otherwise.
    fn reserve(&self, segment: &Mapping, offset: usize, len: usize) -> Result<(), Option<FabricError>> {
        match self {
            Pages::Private => {
                segment.zero(offset, len);
                Ok(())
            }
            #[cfg(target_os = "linux")]
            Pages::File { file, heap_at } => {
                crate::processes::memory_file::reserve(file, heap_at.saturating_add(offset), len)
            }
        }
    }

    /// Returns the whole pages between two offsets of the heap to the system.
    fn release(&self, start: usize, end: usize) {
        match self {
            // The system has refused nothing here; the pages stay with the process.
            Pages::Private => {}
            #[cfg(target_os = "linux")]
            Pages::File { file, heap_at } => {
                let [start, end] = [start, end].map(|at| heap_at.saturating_add(at));
                crate::processes::memory_file::release(file, start, end);
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::*;

    #[test]
    fn many_small_pieces_are_compared_as_one_large_one() {
        let mut alone = Unchecked::new(1);
        assert!(!alone.count(STEP - 1) && alone.is_due(1) && !alone.is_due(0));
        assert!(alone.count(1) && !alone.is_due(STEP - 1) && alone.is_due(usize::MAX));
        // Sixteen ranks and more: a sixteenth each.
        for ranks in [16, 1000] {
            let mut one_of_many = Unchecked::new(ranks);
            assert!(!one_of_many.count(SHARE - 1) && one_of_many.count(1), "{ranks}");
        }
    }
}
