//! Memory of a rank as elements.

use super::GlobalSlice;
use crate::{Acp, AcpError, Key, RegisterError, Result, address::MAX_REGION_BYTES};
use core::future::Future;
use rdma_fabric::{Pod, Rank};

/// Registered memory as elements.
impl Acp {
    /// Registers `len` zeroed elements. Local. [`Acp::free_slice`] unregisters them.
    ///
    /// # Errors
    /// As [`Acp::allocate`].
    pub fn allocate_slice<T: Pod>(&self, len: usize, colour: usize) -> Result<GlobalSlice<T>> {
        let bytes = len.checked_mul(size_of::<T>()).ok_or_else(|| self.too_many())?;
        let key = self.allocate(bytes, colour)?;
        GlobalSlice::new(self.address(key, 0)?, len)
    }

    /// Registers elements of the program. [`Acp::take_slice`] returns them.
    ///
    /// # Errors
    /// As [`Acp::register`].
    pub fn register_slice<T: Pod + Send + Sync>(
        &self,
        memory: Vec<T>,
        colour: usize,
    ) -> Result<GlobalSlice<T>, RegisterError<T>> {
        let len = memory.len();
        let key = self.register(memory, colour)?;
        let slice = self.address(key, 0).and_then(|start| GlobalSlice::new(start, len));
        slice.map_err(|error| RegisterError { error, memory: Vec::new() })
    }

    /// Unregisters the region at whose start a slice of this rank's memory is; see
    /// [`Acp::unregister`].
    ///
    /// # Errors
    /// [`AcpError::NoSuchRegion`] if no region of this rank starts there.
    pub fn free_slice<T: Pod>(&self, slice: GlobalSlice<T>) -> Result<()> {
        self.unregister(self.key_of(slice)?)
    }

    /// Unregisters the vector at whose start a slice is, and returns the vector; see [`Acp::take`].
    ///
    /// # Errors
    /// As [`Acp::take`].
    pub fn take_slice<T: Pod + Send + Sync>(&self, slice: GlobalSlice<T>) -> impl Future<Output = Result<Vec<T>>> {
        let key = self.key_of(slice);
        async move { self.take(key?).await }
    }

    fn key_of<T: Pod>(&self, slice: GlobalSlice<T>) -> Result<Key> {
        match self.query(slice.address()) {
            Some((key, 0)) => Ok(key),
            _ => Err(AcpError::NoSuchRegion { address: slice.address() }),
        }
    }

    /// Returns a rank's starter memory as elements, as many as fit.
    ///
    /// # Errors
    /// [`AcpError::NoSuchRank`].
    pub fn starter_slice<T: Pod>(&self, rank: Rank) -> Result<GlobalSlice<T>> {
        let bytes = self.options().starter_bytes;
        GlobalSlice::new(self.starter(rank)?, bytes.checked_div(size_of::<T>()).unwrap_or(bytes))
    }

    #[cold]
    fn too_many(&self) -> AcpError {
        // There is no region yet, so the error contains the rank's first address.
        match self.starter(self.rank()) {
            Ok(address) => AcpError::out_of_bounds(address, u64::MAX, MAX_REGION_BYTES),
            Err(error) => error,
        }
    }
}
