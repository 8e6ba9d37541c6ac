//! Fabric memory that programs have allocated (`blacs_fmpl_alloc`).

use crate::virtual_time;
use rdma_fabric::{Fabric, FabricError, LocalSpan, Region, Result};

/// All allocations, sorted by address.
#[derive(Debug, Default)]
pub(crate) struct Allocations(Vec<Allocation>);

#[derive(Debug)]
struct Allocation {
    /// All bytes of the allocation, mapped at `start`.
    span: LocalSpan<u8>,
    start: usize,
    /// Keeps the memory registered.
    _region: Region,
}

impl Allocations {
    /// Allocates `bytes` bytes, at least one, and returns their address.
    ///
    /// # Errors
    /// [`FabricError::NotMapped`] if the fabric's memory has no address; those of [`Fabric::alloc`].
    pub(crate) fn add(&mut self, fabric: &Fabric, bytes: usize) -> Result<*mut u8> {
        let region = fabric.alloc(bytes.max(1))?;
        let span = region.span::<u8>(fabric, 0, region.len())?;
        if !span.place().admits(span.len()) && !virtual_time::is_of(fabric) {
            return Err(FabricError::NotMapped { rank: fabric.rank(), region: region.key() });
        }
        let at = span.place().start();
        let start = at.addr().get();
        let place = self.0.partition_point(|other| other.start < start);
        self.0.insert(place, Allocation { span, start, _region: region });
        Ok(at.as_ptr())
    }

    /// Frees the memory that begins at `start`. Returns whether there was an allocation.
    pub(crate) fn remove(&mut self, start: usize) -> bool {
        let found = self.0.binary_search_by_key(&start, |allocation| allocation.start);
        found.map(|at| self.0.remove(at)).is_ok()
    }

    /// Returns the `bytes` bytes at `start`, if all of them are in one allocation.
    #[inline]
    pub(crate) fn span(&self, start: usize, bytes: usize) -> Option<LocalSpan<u8>> {
        if self.0.is_empty() { None } else { self.find(start, bytes) }
    }

    fn find(&self, start: usize, bytes: usize) -> Option<LocalSpan<u8>> {
        let after = self.0.partition_point(|other| other.start <= start);
        let allocation = self.0.get(after.checked_sub(1)?)?;
        let offset = start - allocation.start;
        allocation.span.slice(offset..offset.checked_add(bytes)?).ok()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use tofu2_shm::Threads;

    #[test]
    fn addresses_inside_are_found() {
        let ran = Threads::new(1).segment_bytes(1 << 20).run_with(|fabric| {
            let mut all = Allocations::default();
            assert!(all.span(64, 1).is_none());
            let starts = [100, 4096, 0].map(|bytes| all.add(&fabric, bytes).expect("there is room").addr());
            for (start, bytes) in starts.into_iter().zip([100, 4096, 1]) {
                let whole = all.span(start, bytes).expect("all of it");
                assert_eq!((whole.place().start().addr().get(), whole.len()), (start, bytes));
                let part = all.span(start + bytes / 2, bytes - bytes / 2).expect("a part of it");
                assert_eq!(part.place().start().addr().get(), start + bytes / 2);
                assert!(all.span(start + bytes / 2, bytes + 1).is_none(), "beyond its end");
                assert!(all.span(start, usize::MAX).is_none());
            }
            assert!(!all.remove(starts[0] + 1) && all.remove(starts[0]) && !all.remove(starts[0]));
            assert!(all.span(starts[0], 1).is_none() && all.span(starts[1], 1).is_some());
            assert!(matches!(all.add(&fabric, 2 << 20), Err(FabricError::OutOfMemory(_))));
            Ok(())
        });
        ran.expect("one rank");
    }
}
