//! Regions over callers' memory, whose safety depends on the caller's guarantee alone.

use super::Memory;
use crate::{Domain, OfiError, Region, Result};
use std::{any::Any, ptr::NonNull, sync::Arc};

impl Domain {
    /// Registers the `len` bytes at `start`, which is a multiple of 8: existing memory, such as a
    /// mapped file.
    ///
    /// `keep` is dropped when the region has been dropped, no operation of this process uses it,
    /// and all endpoints of the domain that were open then are closed, because bytes may arrive
    /// late. It is never dropped if an operation on the memory was in flight when its endpoint was
    /// closed.
    ///
    /// # Errors
    /// [`OfiError::Memory`] for 0 bytes or another start; [`OfiError::Random`], [`OfiError::Call`].
    ///
    /// # Safety
    /// The bytes stay mapped, readable and writable as long as `keep` lives. All other code in this
    /// and other processes accesses them by atomics or [`rdma_fabric::access`] alone.
    pub unsafe fn region_over(
        &self,
        start: NonNull<u8>,
        len: usize,
        keep: Arc<dyn Any + Send + Sync>,
    ) -> Result<Region> {
        // SAFETY: guaranteed by the caller.
        let memory = unsafe { Memory::lent(start, len, keep) };
        self.region_of(memory.map_err(|source| OfiError::Memory { bytes: len, source })?)
    }
}
