//! Regions over memory of callers, whose promise about it is all that makes them safe.

use super::Memory;
use crate::{Domain, OfiError, Region, Result};
use std::{any::Any, ptr::NonNull, sync::Arc};

impl Domain {
    /// Registers the `len` bytes at `start`, which is a multiple of 8: memory that is there, such
    /// as a mapped file.
    ///
    /// `keep` is dropped when the region is, no operation of this process uses it, and all
    /// endpoints of the domain that were open then are closed, since bytes may come late. It is
    /// never dropped if an operation on the memory was under way when its endpoint was closed.
    ///
    /// # Errors
    /// [`OfiError::Memory`] for 0 bytes or another start; [`OfiError::Random`], [`OfiError::Call`].
    ///
    /// # Safety
    /// The bytes stay mapped, readable and writable as long as `keep` lives. All others in this and
    /// other processes access them by atomics or [`rdma_fabric::access`] alone.
    pub unsafe fn region_over(
        &self,
        start: NonNull<u8>,
        len: usize,
        keep: Arc<dyn Any + Send + Sync>,
    ) -> Result<Region> {
        // SAFETY: as the caller promises.
        let memory = unsafe { Memory::lent(start, len, keep) };
        self.region_of(memory.map_err(|source| OfiError::Memory { bytes: len, source })?)
    }
}
